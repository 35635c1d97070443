"""Does a masked model know the grammar? It fills one blank of each of 500 test captions, and agreement is counted.

    python benchmarks/blanks.py --model runs/captions-masked

Each caption has lost a determiner, an adjective or a finite verb whose form the sentence determines: gender, case and
number of a noun phrase, number of the subject, auxiliary of a participle (`text/blanks.py`). The likeliest
filling is right if the grammar has it among all that agree there. `results/blanks.json` gets the share, by kind, and
every filling that was wrong.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from seq2see.scoring.card import machine
from seq2see.tasks.table import load_language
from seq2see.text.captions.blanks import blanks

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="a masked model of the German captions, in words"
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "blanks.json")
    given = parser.parse_args()
    model = load_language(given.model, task="masked")
    data, tokenizer = model.recipe.data, model.recipe.tokenizer
    if (data.target, tokenizer.kind) != ("de", "words"):
        parser.error(
            f"{given.model}: reads {data.target!r} in {tokenizer.kind}; the blanks are German words"
        )
    asked, right, wrong = Counter[str](), Counter[str](), []
    for blank in blanks("test", given.count):
        best = model.fill(blank.text, top=1).blanks[0][0]
        asked[blank.kind] += 1
        if best.token in blank.answers:
            right[blank.kind] += 1
        else:
            filling = {"said": best.token, "probability": best.probability, "was": blank.word}
            wrong.append(
                {
                    "text": blank.text,
                    "kind": blank.kind,
                    **filling,
                    "answers": sorted(blank.answers),
                }
            )
    found = {
        "accuracy": right.total() / asked.total(),
        "kinds": {
            kind: {"asked": count, "right": right[kind]} for kind, count in sorted(asked.items())
        },
        "wrong": wrong,
        "recipe": model.recipe.model_dump(mode="json"),
        "machine": machine(),
    }
    given.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{found['accuracy']:.1%} of {asked.total()} fillings agree: {found['kinds']}")


if __name__ == "__main__":
    main()
