"""The tables of docs/speed.md that are not the peers', from the raw JSON of `seq2see bench` and `optimizers.py`."""

import statistics

from figures import NOT_YET, computer, raw, table

SIZES = {"base": "6+6 layers, width 512", "small": "3+3 layers, width 256"}


def utilisation() -> str:
    """How much of the machine's own limit training uses."""
    rows, machines = (
        [("size", "target tokens/s", "of the matrix peak", "matrix peak", "peak memory")],
        set[str](),
    )
    for size, name in SIZES.items():
        if (result := raw(f"bench-{size}")) is not None:
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
    return f"{table(*rows)}\n\n{'; '.join(sorted(machines))}" if machines else NOT_YET


def frontier() -> str:
    """Every way to translate with one model, by `seq2see bench translate`."""
    if (result := raw("frontier")) is None:
        return NOT_YET
    head = (
        "engine",
        "precision",
        "beam",
        "workers × threads",
        "sentences/s",
        "p50, ms",
        "p99, ms",
        "memory",
        "BLEU",
    )
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
    machine = computer(result)
    note = f"{result['sentences']:,} sentences of {result['text']}, medians of {result['rounds']} round(s); {machine}; "
    picture = "![Throughput against the latency of one sentence](images/frontier.png)"
    return f"{table(head, *rows)}\n\n{note}{result['signature']}\n\n{picture}"


def optimizers() -> str:
    """Muon and Adam after the same minutes, a column for each seed."""
    if (result := raw("optimizers")) is None:
        return NOT_YET
    seeds = sorted({row["seed"] for row in result["rows"]})
    rows = []
    for name in dict.fromkeys(row["optimizer"] for row in result["rows"]):
        runs = {row["seed"]: row for row in result["rows"] if row["optimizer"] == name}
        speed = statistics.mean(run["target_tokens_per_second"] for run in runs.values())
        bleu = [runs[seed]["bleu"] for seed in seeds]
        rows.append(
            (
                name,
                f"{speed:,.0f}",
                *(f"{each:.2f}" for each in bleu),
                f"{statistics.mean(bleu):.2f}",
            )
        )
    head = ("optimizer", "target tokens/s", *(f"seed {seed}" for seed in seeds), "mean")
    machine = f"{result['machine']['processor']}, {result['machine']['threads']} thread(s) each"
    note = f"BLEU on val after {result['minutes']:g} minutes; {machine}; {result['signature']}"
    return f"{table(head, *rows)}\n\n{note}\n\n![Loss and BLEU on val over the minutes](images/optimizers.png)"
