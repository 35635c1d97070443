"""Table of docs/data.md, from `store.py`."""

from tables.raw import NOT_YET, computer, raw, table


def store() -> str:
    """Show memory and speed of small and large corpora."""
    if (result := raw("store")) is None:
        return NOT_YET
    rows = result["rows"]
    lines: dict[str, list[str]] = {
        "split, seconds": [times(row["prepare"], "read") for row in rows],
        "tokenizer, seconds": [f"{row['prepare']['tokenizer_seconds']:.1f}" for row in rows],
        "ids, pairs/s": [f"{row['prepare']['pairs_per_second']:,.0f}" for row in rows],
        "memory of all that": [memory(row["prepare"]) for row in rows],
        "first update, seconds": [to_first(row["train"]) for row in rows],
        "memory of training": [memory(row["train"]) for row in rows],
        "first update of a resumed run, seconds": [to_first(row["resume"]) for row in rows],
        "memory of that": [memory(row["resume"]) for row in rows],
    }
    head = ("", *(f"{row['pairs']:,} pairs" for row in rows))
    note = "Seconds by the clock, with those of the processor in brackets; memory at its peak, "
    note += f"anonymous and, in brackets, resident; {computer(result)}"
    return f"{table(head, *((name, *cells) for name, cells in lines.items()))}\n\n{note}"


def times(stage: dict[str, float], name: str) -> str:
    return f"{stage[f'{name}_seconds']:.1f} ({stage[f'{name}_processor_seconds']:.1f})"


def to_first(stage: dict[str, float]) -> str:
    seconds = stage["seconds_to_first_update"]
    return f"{seconds:.1f} ({stage['processor_seconds_to_first_update']:.1f})"


def memory(stage: dict[str, float]) -> str:
    anonymous, resident = stage["peak_anonymous_mb"], stage["peak_resident_mb"]
    return f"{anonymous:,.0f} MB ({resident:,.0f} MB)"
