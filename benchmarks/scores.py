"""BLEU of every score function on the embedded corpus, after the same number of updates.

    python benchmarks/scores.py --runs runs/scores --steps 1000

Finished runs are reused, interrupted ones are resumed. Each score function trains with the recipe
`captions` as shipped; those that are not divided by √d train once more at a lower learning rate,
beside the paper's. The test set is generated, so nothing is tuned on it. Writes
`results/scores.json`.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from torch import nn

import seq2see
from seq2see.batches import collate
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.models.build import build
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine
from seq2see.text import captions
from seq2see.text.tokenizers import Tokenizers

RESULTS = Path(__file__).parent / "results"
LOWER = 0.001  # than the learning rate of the recipe
AT_LOWER = ("scaled_dot", "dot", "unscaled")
CAPTIONS = 60  # on which sharpness is measured


@torch.no_grad()
def sharpness(model: nn.Module, tokenizers: Tokenizers) -> float:
    """Return the largest attention weight of a row, averaged over rows and heads; 1 is one-hot."""
    largest = []
    for caption in captions.generate("test", CAPTIONS):
        source = tokenizers.source.encode(caption.source)
        target = tokenizers.target.encode(caption.target)
        trace = Trace()
        model(collate([(source, target)], [0]), trace)
        largest += [weights.amax(-1).mean().item() for weights in trace.weights.values()]
    return statistics.mean(largest)


def measure(runs: Path, steps: int, score: str, rate: float, seed: int) -> dict[str, Any]:
    """Train one score function at one learning rate with one seed."""
    keys = [
        f"train.steps={steps}",
        f"train.seed={seed}",
        f"model.score={score}",
        f"train.lr={rate}",
    ]
    recipe = Recipe.load("captions", keys)
    folder = runs / f"{score}-lr{rate}-seed{seed}"
    trained = seq2see.train(recipe, out=folder, resume=True)
    pair = trained.tokenizers
    torch.manual_seed(seed)
    fresh = build(recipe, len(pair.source), len(pair.target)).eval()
    card = json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))
    test = card["tests"]["test"]
    return {
        "score": score,
        "lr": rate,
        "seed": seed,
        "bleu": test["bleu"],
        "signature": test["signature"],
        "accuracy": test["accuracy"],
        "parameters": card["parameters"],
        "sharpness": {"fresh": sharpness(fresh, pair), "trained": sharpness(trained.model, pair)},
        "seconds": card["training"]["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--steps", type=int, required=True, help="updates of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=RESULTS / "scores.json")
    options = parser.parse_args()
    shipped = Recipe.load("captions").train.lr
    settings = [(score, shipped) for score in SCORES] + [(score, LOWER) for score in AT_LOWER]
    rows = [
        measure(options.runs, options.steps, score, rate, seed)
        for score, rate in settings
        for seed in options.seeds
    ]
    result = {
        "recipe": "captions",
        "steps": options.steps,
        "rows": rows,
        "machine": machine(),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
