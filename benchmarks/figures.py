"""What the tables are made of: the raw JSON in `results`, and rows of Markdown."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NOT_YET = "Not run yet."


def raw(name: str) -> Any:
    """What a benchmark has written, or None if it was not run yet."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def cards(pattern: str) -> dict[str, Any]:
    """The score cards whose names fit, in the order of the names."""
    return {path.stem: raw(path.stem) for path in sorted(RESULTS.glob(f"{pattern}.json"))}


def table(*rows: tuple[str, ...]) -> str:
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rest))


def computer(found: Any) -> str:
    """Where it was measured."""
    return f"{found['machine']['processor']}, {found['machine']['cores']} cores"
