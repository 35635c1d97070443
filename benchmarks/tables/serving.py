"""Tables of servers: under load, asked at random, and looking inside a model."""

from typing import Any

from tables.raw import NOT_YET, computer, raw, table

Record = dict[str, Any]
OURS = "seq2see"
MANY = 64  # connections


def servers() -> str:
    """Compare servers with the same model under the same load."""
    if (result := (raw("serve") or {}).get("load")) is None:
        return NOT_YET
    rows = [_server(name, about, result) for name, about in result["servers"].items()]
    head = ("server", "sentences/s", "of offline", "seq2see is", "p50 / p99 at 1", "at 8")
    head += (f"at {MANY}, ms", "errors", "memory", "BLEU", "set up")
    (idle,) = (row for row in result["rows"] if row["rate"] is not None)
    note = (
        f"Sentences per second with {MANY} connections, one sentence in each request; medians of "
        f"{result['rounds']} round(s) in turn, {result['window_seconds']:g} s each, "
        f"{result['date'][:10]}; {result['text_sentences']:,} sentences of {result['text']}; "
        f"{computer(result)}. Offline, the same engine translates "
        f"{result['offline_sentences_per_second']:,.0f} sentences/s. A request to the idle server, "
        f"{idle['rate']:g} a second at random, takes {idle['p50_ms']:.1f} ms (p99 "
        f"{idle['p99_ms']:.1f}). The load generator took up to "
        f"{max(row['generator_share'] for row in result['rows']):.1%} of the processor. "
        f"{result['signature']}"
    )
    return f"{table(head, *rows)}\n\n{note}"


def _server(name: str, about: Record, result: Record) -> tuple[str, ...]:
    rows = {row["connections"]: row for row in result["rows"] if row["server"] == name}
    many = rows[MANY]
    versions = ", ".join(f"{library} {version}" for library, version in about["versions"].items())
    faster = many["ours_is"]
    failures = many["errors"] + (many["wrong"] or 0) + many["refused"]
    return (
        f"{about['label']} ({versions})" if versions else about["label"],
        f"{many['sentences_per_second']:,.0f}",
        f"{many['of_offline']:.0%}",
        "" if faster is None else f"{faster:.2f} ×",
        *(_latency(rows[count]) for count in (1, 8, MANY)),
        f"{failures}",
        f"{many['memory_mb']:,.0f} MB",
        f"{about['bleu']:.2f}",
        about["setup"],
    )


def fuzzed() -> str:
    """Count the answers to random requests."""
    if (result := raw("serve-fuzz")) is None:
        return NOT_YET
    rows = [
        (
            f"`{row['route']}`",
            f"{row['requests']:,}",
            ", ".join(f"{count:,} × {status}" for status, count in row["statuses"].items()),
            f"{len(row['failures'])}",
            f"{row['longest_seconds']:.2f} s",
        )
        for row in result["rows"]
    ]
    head = ("route", "requests", "answers", "failures", "slowest answer")
    note = f"{result['model']}; {computer(result)}; {result['date'][:10]}"
    return f"{table(head, *rows)}\n\n{note}"


def explorer() -> str:
    """Show how soon the explorer draws the attention of a large model, and how it scrolls."""
    if (result := raw("explorer")) is None:
        return NOT_YET
    head = ("tokens", "answer with all heads", "drawn after it", "slowest", "frames/s", "least")
    rows = [
        (
            f"{row['source_tokens']} + {row['target_tokens']}",
            f"{row['overview_bytes'] / 1000:,.0f} kB",
            f"{row['drawn_ms']:,.0f} ms, {row['head_ms']:,.0f} of them for one head exactly",
            f"{row['slowest_drawn_ms']:,.0f} ms",
            f"{row['frames_per_second']:.0f}",
            f"{row['least_frames_per_second']:.0f}",
        )
        for row in result["rows"]
    ]
    before, after = result["load_average_before"], result["load_average_after"]
    note = (
        f"Medians of {result['rounds']} rounds; {result['browser']}, headless, 1280 × 800; "
        f"{computer(result)}, shared with the server and whatever else ran: load average "
        f"{before:.1f} before, {after:.1f} after; {result['date'][:10]}"
    )
    return f"{table(head, *rows)}\n\n{note}"


def _latency(row: Record) -> str:
    digits = 1 if row["p50_ms"] < 100 else 0
    return f"{row['p50_ms']:,.{digits}f} / {row['p99_ms']:,.{digits}f}"


def several() -> str:
    """Show requests of several sentences, as `seq2see bench serve --json` prints them."""
    if (result := raw("serve-several")) is None:
        return NOT_YET
    head = ("server", "connections", "sentences/s", "of offline", "× batching off", "p50 / p99, ms")
    rows = [
        (
            row["server"],
            f"{row['connections']}",
            f"{row['sentences_per_second']:,.0f}",
            f"{row['of_offline']:.0%}",
            "" if row["of_batching_off"] is None else f"{row['of_batching_off']:.2f}",
            _latency(row),
        )
        for row in result["rows"]
    ]
    note = (
        f"{result['sentences_per_request']} sentences in each request; medians of "
        f"{result['rounds']} round(s) in turn, {result['window_seconds']:g} s each; "
        f"{computer(result)}. Offline, the same engine translates "
        f"{result['offline_sentences_per_second']:,.0f} sentences/s."
    )
    return f"{table(head, *rows)}\n\n{note}"


def sustained() -> str:
    """Show a minute of load without pause, and memory over many requests."""
    results = raw("serve") or {}
    if (load := results.get("sustained")) is None or (memory := results.get("memory")) is None:
        return NOT_YET
    text = (
        f"{load['connections']} connections for {load['seconds']:g} s: {load['requests']:,} "
        f"answers, {load['errors']} errors, {load['refused']} refused, {load['wrong']} wrong; "
        f"{load['sentences_per_second']:,.0f} sentences/s, {load['of_offline']:.0%} of offline; "
        f"p50 {load['p50_ms']:.0f} ms, p99 {load['p99_ms']:.0f} ms."
    )
    head = ("sentences", "requests", "failed", "memory at the start", "after 10 %", "after 20 %")
    head += ("after 50 %", "at the end", f"growth after {memory['settled']:.0%}")
    rows = [
        (
            row["sentences"],
            f"{row['requests']:,}",
            f"{row['errors']}",
            *(f"{row['resident_mb'][tenth]:,.0f} MB" for tenth in (0, 1, 2, 5, 10)),
            f"{row['growth_mb']:+.1f} MB",
        )
        for row in memory["rows"]
    ]
    return f"{text}\n\n{table(head, *rows)}\n\n{computer(memory)}"
