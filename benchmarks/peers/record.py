"""Raw files of the comparison: one record per model size or beam, continued by later calls."""

import datetime
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from systems import System

from seq2see.bench.rounds import medians, ratios
from seq2see.files import write_text
from seq2see.scoring.bleu import score as evaluate

ALIKE = 0.5  # BLEU; the same weights should not differ by more

Record = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def raw(path: Path) -> Record:
    """Return the records of a raw file, or none if it does not exist."""
    records: Record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return records


def begin(
    systems: Sequence[System],
    everybody: Sequence[System],
    settings: Record,
    path: Path,
    fresh: bool,
) -> Record:
    """Start a record, or continue the raw file's record of the same settings.

    Systems that failed are tried again; those that do not take part this time are kept.
    """
    old = _old(settings, path, fresh)
    record = settings | {
        "date": old.get("date", now()),
        "load_before": old.get("load_before", 0.0),
        "systems": {},
    }
    entries = old.get("systems", {})
    for system in everybody:
        if system not in systems and system.name not in entries:
            continue
        entry = entries.get(system.name, {"rounds": []})
        if system in systems and entry.pop("failed", None) and not entry["rounds"]:
            entry.pop("tuning", None)  # the tuned setting may be why it failed
        record["systems"][system.name] = entry | {
            "label": system.label,
            "setup": system.setup,
            "ours": system.ours,
        }
    return record


def _old(settings: Record, path: Path, fresh: bool) -> Record:
    """Return the raw file's record if its settings are the same, else an empty one."""
    name = settings["of"]
    old: Record = raw(path).get(name, {})
    if not old:
        return {}
    changed = [key for key, value in settings.items() if old.get(key) != value]
    if changed or fresh:
        reason = "--fresh" if fresh else f"its settings differ ({', '.join(changed)})"
        say(f"{name}: starts anew and drops the rounds in {path}: {reason}")
        return {}
    say(f"{name}: continues the rounds in {path}; --fresh would start anew")
    return old


def fail(entry: Record, system: System, error: Exception) -> None:
    entry["failed"] = str(error)
    say(f"{system.name}: FAILED: {error}")


def saver(path: Path, record: Record) -> Callable[[], None]:
    """Return a function that writes the record into the raw file, beside its other records."""

    def save() -> None:
        summarise(record)
        records = raw(path) | {record["of"]: record}
        write_text(path, json.dumps(records, indent=1, ensure_ascii=False) + "\n")

    return save


def summarise(record: Record) -> None:
    """Add the medians of each system, and the ratios of each of ours to each peer by round."""
    unit = record["unit"]
    systems = record["systems"]
    rates: dict[str, dict[int, float]] = {}
    for name, entry in systems.items():
        rates[name] = {row["round"]: row[unit] for row in entry["rounds"]}
        if entry["rounds"]:
            figures = [
                {"median": row[unit], "peak_memory_mb": row["peak_memory_mb"]}
                for row in entry["rounds"]
            ]
            entry |= medians(figures)
    record["ratios"] = {}
    for own in (name for name, entry in systems.items() if entry["ours"]):
        for peer in (name for name, entry in systems.items() if not entry["ours"]):
            by_round = ratios(rates[own], rates[peer])
            if by_round:
                middle = medians([{"median": ratio} for ratio in by_round])
                record["ratios"].setdefault(own, {})[peer] = middle | {"rounds": by_round}


def score(record: Record, name: str, path: Path, references: list[str]) -> None:
    """Add BLEU of a first round, and warn where it differs from that of our torch engine."""
    systems = record["systems"]
    if "bleu" in systems[name]:
        return
    outputs = json.loads(path.read_text(encoding="utf-8"))
    systems[name]["bleu"] = evaluate(outputs, references[: len(outputs)]).bleu
    ours = systems["seq2see-torch"].get("bleu")
    for other, entry in systems.items():
        if ours is None or "bleu" not in entry or "bleu_difference" in entry:
            continue
        entry["bleu_difference"] = entry["bleu"] - ours
        if abs(entry["bleu_difference"]) > ALIKE:
            difference = f"BLEU {entry['bleu']:.2f} is more than {ALIKE} from seq2see-torch's"
            say(f"warning: {other}: {difference} {ours:.2f}")
