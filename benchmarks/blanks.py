"""Grammar of a masked model: it fills one blank in each of 500 test captions; agreement is counted.

    python benchmarks/blanks.py --model runs/captions-masked

Each caption lacks a determiner, an adjective or a finite verb whose form the sentence determines:
gender, case and number of a noun phrase, number of the subject, auxiliary of a participle
(`text/captions/blanks.py`). The most probable filling is right if the grammar lists it among all
that agree. `results/blanks.json` holds the accuracy by kind, and every wrong filling.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from seq2see.scoring.card import machine
from seq2see.tasks.table import load_language
from seq2see.text.captions.blanks import blanks

RESULTS = Path(__file__).parent / "results"


def fill(model: Any, count: int) -> dict[str, Any]:
    """Fill the blanks; return accuracy, counts by kind and wrong fillings."""
    asked = Counter[str]()
    right = Counter[str]()
    wrong = []
    for blank in blanks("test", count):
        best = model.fill(blank.text, top=1).blanks[0][0]
        asked[blank.kind] += 1
        if best.token in blank.answers:
            right[blank.kind] += 1
            continue
        wrong.append(
            {
                "text": blank.text,
                "kind": blank.kind,
                "said": best.token,
                "probability": best.probability,
                "was": blank.word,
                "answers": sorted(blank.answers),
            }
        )
    return {
        "accuracy": right.total() / asked.total(),
        "kinds": {
            kind: {"asked": number, "right": right[kind]} for kind, number in sorted(asked.items())
        },
        "wrong": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="a masked model of the German captions, in words"
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--out", type=Path, default=RESULTS / "blanks.json")
    options = parser.parse_args()
    model = load_language(options.model, task="masked")
    language = model.recipe.data.target
    kind = model.recipe.tokenizer.kind
    if (language, kind) != ("de", "words"):
        parser.error(f"{options.model}: reads {language!r} in {kind}; the blanks are German words")
    result = fill(model, options.count) | {
        "recipe": model.recipe.model_dump(mode="json"),
        "machine": machine(),
    }
    options.out.write_text(
        json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    asked = sum(counts["asked"] for counts in result["kinds"].values())
    print(f"{result['accuracy']:.1%} of {asked} fillings agree: {result['kinds']}")


if __name__ == "__main__":
    main()
