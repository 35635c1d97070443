"""Tables of the comparison with peers in docs/speed.md, from `peers/run.py`."""

import statistics
from collections.abc import Callable
from typing import Any

from tables.raw import NOT_YET, raw, table

TRIAL = "tiny"  # a size for trying the workers; its speeds mean nothing

Record = dict[str, Any]


def training(name: str = "peers-train") -> str:
    """Compare target tokens per second, one table per model size."""
    return _tables(name, "target tokens/s", _size)


def translation(name: str = "peers-translate") -> str:
    """Compare sentences per second with the same weights, and BLEU."""
    return _tables(name, "sentences/s", _search)


def _tables(name: str, unit: str, title: Callable[[Record], str]) -> str:
    records = [record for key, record in (raw(name) or {}).items() if key != TRIAL]
    tables = [f"{title(record)}\n\n{_table(record, unit)}\n\n{_note(record)}" for record in records]
    return "\n\n".join(tables) or NOT_YET


def _size(record: Record) -> str:
    size = record["model"]
    return (
        f"**{record['of'].capitalize()}** ({size['layers']}+{size['layers']} layers, "
        f"width {size['width']}, feed-forward {size['feed_forward']}, {size['heads']} heads; "
        f"vocabularies {size['source_size']:,} and {size['target_size']:,}; "
        f"{size['accumulate']} batches of {size['batch_sentences']} pairs an update, "
        f"{size['padding']:.0%} padding)"
    )


def _search(record: Record) -> str:
    size = record["model"]
    return (
        f"**{record['of'].capitalize()}**, {record['sentences']:,} sentences of {record['test']} "
        f"({size['layers']}+{size['layers']} layers, width {size['width']}, "
        f"vocabulary {size['vocabulary']:,})"
    )


def _table(record: Record, unit: str) -> str:
    systems = record["systems"]
    ours = [name for name, entry in systems.items() if entry["ours"]]
    scored = any("bleu" in entry for entry in systems.values())
    heads = ["seq2see is"]
    if len(ours) > 1:
        labels = [systems[name]["label"].removeprefix("seq2see, ") for name in ours]
        heads = [f"{label} is" for label in labels]
    bleu_head = ["BLEU"] if scored else []
    rows = [("system", unit, *heads, "peak memory", *bleu_head, "set up")]
    for name, entry in systems.items():
        ratios = [record.get("ratios", {}).get(own, {}).get(name) for own in ours]
        faster = [f"{ratio['median']:.2f} ×" if ratio else "" for ratio in ratios]
        rows.append(_row(entry, faster, scored))
    return table(*rows)


def _row(entry: Record, faster: list[str], scored: bool) -> tuple[str, ...]:
    rate = "not measured"
    memory = ""
    bleu = ""
    note = entry["setup"]
    if "median" in entry:
        median = entry["median"]
        rate = f"{median:,.0f}" if median >= 100 else f"{median:.1f}"
        memory = f"{entry['peak_memory_mb']:,.0f} MB"
        bleu = f"{entry['bleu']:.2f}" if "bleu" in entry else ""
        padding = [row["target_padding"] for row in entry["rounds"] if "target_padding" in row]
        if padding:
            note += f"; {statistics.median(padding):.0%} of the target is padding"
    if "failed" in entry:
        note = f"{note}; failed: {entry['failed']}".replace("|", "\\|").replace("\n", " ")
    return (_named(entry), rate, *faster, memory, *([bleu] if scored else []), note)


def _named(entry: Record) -> str:
    """Return the label with the versions of the libraries that set the system apart."""
    versions = dict(entry["rounds"][0]["versions"]) if entry["rounds"] else {}
    for shared in ("python", "sentencepiece"):
        versions.pop(shared, None)
    if len(versions) > 1:
        versions.pop("torch", None)
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{entry['label']} ({shown})" if shown else entry["label"]


def _rounds(record: Record) -> str:
    """Count the rounds of the systems that were measured."""
    counts = {len(entry["rounds"]) for entry in record["systems"].values()} - {0} or {0}
    numbers = " to ".join(map(str, sorted({min(counts), max(counts)})))
    return f"{numbers} round" if counts == {1} else f"{numbers} rounds"


def _note(record: Record) -> str:
    machine = record["machine"]
    rounds = [row for entry in record["systems"].values() for row in entry["rounds"]]
    torch = {row["versions"].get("torch") for row in rounds} - {None}
    text = (
        f"Medians of {_rounds(record)} in turn, {record['seconds']:g} s each, "
        f"{record['date'][:10]}; "
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads; "
        f"torch {', '.join(sorted(torch))}."
    )
    left_out = [f"{reason}." for reason in record.get("left_out", {}).values()]
    return " ".join([text, *left_out])
