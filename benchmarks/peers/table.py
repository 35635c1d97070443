"""The tables of the comparison, from the raw JSON that `run.py` writes; nothing in them is typed by hand."""

import json
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"
NOT_RUN = "Not run yet."
TRIAL = "tiny"  # tries the workers out, and says nothing of speed

Record = dict[str, Any]
Rows = list[tuple[str, ...]]


def training(path: Path = RESULTS / "peers-train.json") -> str:
    """Target tokens a second of every system, a table for each model size."""
    return _tables(path, "target tokens/s", _size)


def translation(path: Path = RESULTS / "peers-translate.json") -> str:
    """Sentences a second of every system with the same weights, and BLEU."""
    return _tables(path, "sentences/s", _search)


def _tables(path: Path, unit: str, head: Any) -> str:
    if not path.exists():
        return NOT_RUN
    found = json.loads(path.read_text(encoding="utf-8"))
    records = [record for name, record in found.items() if name != TRIAL]
    tables = [
        f"{head(record)}\n\n{_table(record, unit)}\n\n{_signed(record)}" for record in records
    ]
    return "\n\n".join(tables) or NOT_RUN


def _size(record: Record) -> str:
    size = record["model"]
    return (
        f"**{record['of'].capitalize()}** ({size['layers']}+{size['layers']} layers, width {size['width']}, "
        f"feed-forward {size['feed_forward']}, {size['heads']} heads; vocabularies {size['source_size']:,} and "
        f"{size['target_size']:,}; {size['accumulate']} batches of {size['batch_sentences']} pairs an update, "
        f"{size['padding']:.0%} padding)"
    )


def _search(record: Record) -> str:
    size = record["model"]
    return (
        f"**{record['of'].capitalize()}**, {record['sentences']:,} sentences of {record['test']} "
        f"({size['layers']}+{size['layers']} layers, width {size['width']}, vocabulary {size['vocabulary']:,})"
    )


def _table(record: Record, unit: str) -> str:
    systems, ratios = record["systems"], record.get("ratios", {})
    own = [name for name, entry in systems.items() if entry["ours"]]
    scored = any("bleu" in entry for entry in systems.values())
    ahead = (
        ["seq2see is"]
        if len(own) == 1
        else [f"{systems[name]['label'].removeprefix('seq2see, ')} is" for name in own]
    )
    rows: Rows = [("system", unit, *ahead, "peak memory", *(["BLEU"] if scored else []), "set up")]
    for name, entry in systems.items():
        faster = [
            f"{ratios[one][name]['median']:.2f} ×" if name in ratios.get(one, {}) else ""
            for one in own
        ]
        rate, memory, bleu, note = "not measured", "", "", entry["setup"]
        if "median" in entry:
            rate, memory = _number(entry["median"]), f"{entry['peak_memory_mb']:,.0f} MB"
            bleu = f"{entry['bleu']:.2f}" if "bleu" in entry else ""
            padding = [row["target_padding"] for row in entry["rounds"] if "target_padding" in row]
            note += (
                f"; {statistics.median(padding):.0%} of the target is padding" if padding else ""
            )
        if "failed" in entry:
            note = f"{note}; failed: {entry['failed']}".replace("|", "\\|").replace("\n", " ")
        rows.append((_named(entry), rate, *faster, memory, *([bleu] if scored else []), note))
    return "\n".join(
        f"| {' | '.join(row)} |" for row in (rows[0], ("---",) * len(rows[0]), *rows[1:])
    )


def _named(entry: Record) -> str:
    """The label and the version behind it."""
    versions = dict(entry["rounds"][0]["versions"]) if entry["rounds"] else {}
    for shared in ("python", "sentencepiece"):
        versions.pop(shared, None)
    if len(versions) > 1:
        versions.pop("torch", None)
    return f"{entry['label']} ({', '.join(f'{name} {version}' for name, version in versions.items())})".replace(
        " ()", ""
    )


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def _rounds(record: Record) -> str:
    """How many were really done, of the systems that were measured."""
    counts = {len(entry["rounds"]) for entry in record["systems"].values()} - {0} or {0}
    return " to ".join(map(str, sorted({min(counts), max(counts)}))) + (
        " round" if counts == {1} else " rounds"
    )


def _signed(record: Record) -> str:
    machine = record["machine"]
    torch = {
        row["versions"].get("torch")
        for entry in record["systems"].values()
        for row in entry["rounds"]
    } - {None}
    text = (
        f"Medians of {_rounds(record)} in turn, {record['seconds']:g} s each, {record['date'][:10]}; "
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads; "
        f"torch {', '.join(sorted(torch))}."
    )
    left_out = [f"{reason}." for reason in record.get("left_out", {}).values()]
    return " ".join([text, *left_out])
