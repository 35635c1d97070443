"""Tables of docs/speed.md other than the peers', from `seq2see bench` and scripts."""

import statistics

from tables.raw import NOT_YET, computer, raw, table

SIZES = {"base": "6+6 layers, width 512", "small": "3+3 layers, width 256"}
FRONTIER = "![Throughput against the latency of one sentence](images/frontier.png)"
OPTIMIZERS = "![Loss and BLEU on val over the minutes](images/optimizers.png)"


def utilisation() -> str:
    """Show the share of the machine's matrix peak that training reaches."""
    rows = []
    machines = set()
    for size, name in SIZES.items():
        if (result := raw(f"bench-{size}")) is None:
            continue
        machines.add(computer(result))
        rows.append(
            (
                f"{size} ({name})",
                f"{result['target_tokens_per_second']:,.0f}",
                f"{result['utilisation']:.0%}",
                f"{result['peak_gflops']:.0f} GFLOPS",
                f"{result['peak_memory_mb']:,.0f} MB",
            )
        )
    if not rows:
        return NOT_YET
    head = ("size", "target tokens/s", "of the matrix peak", "matrix peak", "peak memory")
    return f"{table(head, *rows)}\n\n{'; '.join(sorted(machines))}"


def frontier() -> str:
    """Show every way to translate with one model, measured by `seq2see bench translate`."""
    if (result := raw("frontier")) is None:
        return NOT_YET
    head = ("engine", "precision", "beam", "workers × threads")
    head += ("sentences/s", "p50, ms", "p99, ms", "memory", "BLEU")
    rows = [
        (
            row["engine"],
            row["precision"],
            f"{row['beam']}",
            f"{row['workers']} × {row['threads']}",
            f"{row['sentences_per_second']:,.0f}",
            f"{row['p50_ms']:.1f}",
            f"{row['p99_ms']:.1f}",
            f"{row['peak_memory_mb']:,.0f} MB",
            f"{row['bleu']:.2f}",
        )
        for row in result["rows"]
    ]
    note = (
        f"{result['sentences']:,} sentences of {result['text']}, "
        f"medians of {result['rounds']} round(s); {computer(result)}; {result['signature']}"
    )
    return f"{table(head, *rows)}\n\n{note}\n\n{FRONTIER}"


def busy() -> str:
    """Compare waiting policies beside other busy processes with the fair share of the machine."""
    if (result := raw("busy")) is None:
        return NOT_YET
    threads = result["machine"]["threads"]
    idle = next(row for row in result["rows"] if row["busy"] == 0)  # waiting as by default
    rows = []
    for row in result["rows"]:
        fair = idle["updates_per_second"] * threads / (threads + row["busy"])
        rows.append(
            (
                f"{row['busy']}",
                row["setting"],
                f"{row['updates_per_second']:.2f}",
                f"{row['updates_per_second'] / fair:.0%}",
                f"{row['validation_seconds']:.1f} s",
                f"{row['torch_sentences_per_second']:,.0f}",
                f"{row['ct2_sentences_per_second']:,.0f}",
            )
        )
    head = ("busy processes", "waiting", "updates/s", "of the fair share", "validation")
    head += ("sentences/s, torch", "sentences/s, ct2")
    note = (
        f"Medians of {result['rounds']} rounds in turn, {result['seconds']:g} s of training and "
        f"{result['sentences']} sentences each; {computer(result)}"
    )
    return f"{table(head, *rows)}\n\n{note}"


def optimizers() -> str:
    """Compare Muon and Adam after equal minutes, one column per seed."""
    if (result := raw("optimizers")) is None:
        return NOT_YET
    seeds = sorted({row["seed"] for row in result["rows"]})
    rows = []
    for name in dict.fromkeys(row["optimizer"] for row in result["rows"]):
        runs = {row["seed"]: row for row in result["rows"] if row["optimizer"] == name}
        rate = statistics.mean(run["target_tokens_per_second"] for run in runs.values())
        scores = [runs[seed]["bleu"] for seed in seeds]
        figures = [f"{score:.2f}" for score in (*scores, statistics.mean(scores))]
        rows.append((name, f"{rate:,.0f}", *figures))
    head = ("optimizer", "target tokens/s", *(f"seed {seed}" for seed in seeds), "mean")
    machine = f"{result['machine']['processor']}, {result['machine']['threads']} thread(s) each"
    note = f"BLEU on val after {result['minutes']:g} minutes; {machine}; {result['signature']}"
    return f"{table(head, *rows)}\n\n{note}\n\n{OPTIMIZERS}"
