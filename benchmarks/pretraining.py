"""What pre-training is worth with a hundred labels: singular or plural, with and without a masked model's weights.

    python benchmarks/pretraining.py --init runs/captions-masked --runs runs/pretraining

Trains `captions-classify` three times a seed: from nothing, with a vocabulary of its own hundred sentences; from a
masked model of the same size after one update, which gives the large vocabulary and next to nothing else; and from the
pre-trained one. A run that is there already is taken as it is, a broken one goes on. `results/pretraining.json` gets
accuracy and perplexity on the test sets, per seed.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine

HERE = Path(__file__).parent


def tests_of(folder: Path) -> dict[str, Any]:
    card = json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))
    return {
        name: {key: test[key] for key in ("accuracy", "perplexity")}
        for name, test in card["tests"].items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--init", type=Path, required=True, help="the pre-trained masked model")
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go, or are")
    parser.add_argument("--labels", type=int, default=100, help="sentences with a label")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "pretraining.json")
    given = parser.parse_args()
    untrained = given.runs / "untrained"
    seq2see.train(Recipe.load("captions-masked", ["train.steps=1"]), out=untrained, resume=True)
    origins = {"from nothing": None, "vocabulary alone": untrained, "pre-trained": given.init}
    rows = []
    for name, origin in origins.items():
        for seed in given.seeds:
            folder = given.runs / f"{name.replace(' ', '-')}-{given.labels}-seed{seed}"
            recipe = Recipe.load(
                "captions-classify", [f"data.limit={given.labels}", f"train.seed={seed}"]
            )
            seq2see.train(recipe, out=folder, init=origin, resume=True)
            rows.append({"begun": name, "seed": seed, "tests": tests_of(folder)})
    for name in origins:
        found = [row["tests"]["test"]["accuracy"] for row in rows if row["begun"] == name]
        print(
            f"{name}: {statistics.mean(found):.1%} right on test ({min(found):.1%} to {max(found):.1%})"
        )
    recipe = Recipe.load("captions-classify", [f"data.limit={given.labels}"]).model_dump(
        mode="json"
    )
    result = {"labels": given.labels, "recipe": recipe, "rows": rows, "machine": machine()}
    given.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
