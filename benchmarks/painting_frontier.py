"""Draw docs/images/painting-frontier.png from results/paint-64.json, of `seq2see bench paint`.

python benchmarks/painting_frontier.py
"""

import json
from pathlib import Path

from pydantic import TypeAdapter

from seq2see.bench.paint import Frontier
from seq2see.bench.paint_report import draw
from seq2see.see import figures

RESULT = Path(__file__).parent / "results" / "paint-64.json"
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "painting-frontier.png"


def frontier() -> Frontier:
    """Read the measurement."""
    return TypeAdapter(Frontier).validate_python(json.loads(RESULT.read_text(encoding="utf-8")))


if __name__ == "__main__":
    figures.save(draw(frontier()), IMAGE)
