"""Worth of pre-training with a hundred labels: singular or plural, from scratch or a masked model.

    python benchmarks/pretraining.py --init runs/captions-masked --runs runs/pretraining

Trains `captions-classify` three times per seed: from scratch, with a vocabulary of its own hundred
sentences; from a masked model of the same size after one update, which contributes the large
vocabulary and little else; and from the pre-trained one. Finished runs are reused, interrupted ones
are resumed. `results/pretraining.json` holds accuracy and perplexity on the test sets, per seed.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine

RESULTS = Path(__file__).parent / "results"


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
    parser.add_argument("--runs", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--labels", type=int, default=100, help="sentences with a label")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--out", type=Path, default=RESULTS / "pretraining.json")
    options = parser.parse_args()
    untrained = options.runs / "untrained"
    seq2see.train(Recipe.load("captions-masked", ["train.steps=1"]), out=untrained, resume=True)
    origins = {"from nothing": None, "vocabulary alone": untrained, "pre-trained": options.init}
    limit = f"data.limit={options.labels}"
    rows = []
    for name, origin in origins.items():
        accuracies = []
        for seed in options.seeds:
            folder = options.runs / f"{name.replace(' ', '-')}-{options.labels}-seed{seed}"
            recipe = Recipe.load("captions-classify", [limit, f"train.seed={seed}"])
            seq2see.train(recipe, out=folder, init=origin, resume=True)
            tests = tests_of(folder)
            rows.append({"begun": name, "seed": seed, "tests": tests})
            accuracies.append(tests["test"]["accuracy"])
        spread = f"{min(accuracies):.1%} to {max(accuracies):.1%}"
        print(f"{name}: {statistics.mean(accuracies):.1%} right on test ({spread})", flush=True)
    result = {
        "labels": options.labels,
        "recipe": Recipe.load("captions-classify", [limit]).model_dump(mode="json"),
        "rows": rows,
        "machine": machine(),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
