"""Every score function on the embedded corpus, for the same number of updates: BLEU, loss, and what an update costs.

    python benchmarks/scores.py --runs runs/scores --steps 1000

A run that is there already is taken as it is, a broken one goes on. The test set is the generated one, so nothing is
chosen here: each score trains with the recipe `captions` as shipped, and `results/scores.json` gets what came out.
"""

import argparse
import json
from pathlib import Path

import seq2see
from seq2see import evaluate
from seq2see.config import Recipe
from seq2see.layers.scores import SCORES

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go, or are")
    parser.add_argument("--steps", type=int, required=True, help="updates of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scores.json")
    given = parser.parse_args()
    rows = []
    for score in SCORES:
        for seed in given.seeds:
            recipe = Recipe.load(
                "captions", [f"train.steps={given.steps}", f"train.seed={seed}", f"model.score={score}"]
            )
            folder = given.runs / f"{score}-seed{seed}"
            seq2see.train(recipe, out=folder, resume=True)
            card = json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))
            test = card["tests"]["test"]
            rows.append(
                {
                    "score": score,
                    "seed": seed,
                    "bleu": test["bleu"],
                    "signature": test["signature"],
                    "accuracy": test["accuracy"],
                    "parameters": card["parameters"],
                    "seconds": card["training"]["seconds"],
                }
            )
    found = {"recipe": "captions", "steps": given.steps, "rows": rows, "machine": evaluate.machine()}
    given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
