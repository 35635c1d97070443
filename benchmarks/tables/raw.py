"""Raw JSON of the benchmarks, and rows of Markdown."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
NOT_YET = "Not run yet."


def raw(name: str) -> Any:
    """Return the JSON that a benchmark has written, or None if it has not been run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def cards(pattern: str) -> dict[str, Any]:
    """Return the score cards whose names match, sorted by name."""
    return {path.stem: raw(path.stem) for path in sorted(RESULTS.glob(f"{pattern}.json"))}


def table(*rows: tuple[str, ...]) -> str:
    """Format rows as Markdown; the first is the head."""
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rest))


def computer(result: Any) -> str:
    """Name the machine of a measurement."""
    return f"{result['machine']['processor']}, {result['machine']['cores']} cores"
