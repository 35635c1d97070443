"""Every score function on the embedded corpus, for the same number of updates: what BLEU each one reaches.

    python benchmarks/scores.py --runs runs/scores --steps 1000

A run that is there already is taken as it is, a broken one goes on. The test set is the generated one, so nothing is
chosen here: each score trains with the recipe `captions` as shipped, those whose scores are not divided by √d once more
at a lower rate beside the paper's, and `results/scores.json` gets what came out.
"""

import argparse
import json
import statistics
from pathlib import Path

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

HERE = Path(__file__).parent
LOWER = 0.001  # than the recipe's rate
AT_LOWER = ("scaled_dot", "dot", "unscaled")
LOOKED_AT = 60  # captions


@torch.no_grad()
def sharpness(model: nn.Module, tokenizers: Tokenizers) -> float:
    """The largest weight of a row, on average over all rows of all heads: 1 is a softmax that looks at one place."""
    found = []
    for caption in captions.generate("test", LOOKED_AT):
        ids = tokenizers.source.encode(caption.source), tokenizers.target.encode(caption.target)
        trace = Trace()
        model(collate([ids], [0]), trace)
        found += [weights.amax(-1).mean().item() for weights in trace.weights.values()]
    return statistics.mean(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go, or are")
    parser.add_argument("--steps", type=int, required=True, help="updates of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scores.json")
    given = parser.parse_args()
    rows = []
    shipped = Recipe.load("captions").train.lr
    for score, rate in [
        *((score, shipped) for score in SCORES),
        *((score, LOWER) for score in AT_LOWER),
    ]:
        for seed in given.seeds:
            keys = [
                f"train.steps={given.steps}",
                f"train.seed={seed}",
                f"model.score={score}",
                f"train.lr={rate}",
            ]
            folder = given.runs / f"{score}-lr{rate}-seed{seed}"
            recipe = Recipe.load("captions", keys)
            trained = seq2see.train(recipe, out=folder, resume=True)
            torch.manual_seed(seed)
            fresh = build(
                recipe, len(trained.tokenizers.source), len(trained.tokenizers.target)
            ).eval()
            card = json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))
            test = card["tests"]["test"]
            rows.append(
                {
                    "score": score,
                    "lr": rate,
                    "seed": seed,
                    "bleu": test["bleu"],
                    "signature": test["signature"],
                    "accuracy": test["accuracy"],
                    "parameters": card["parameters"],
                    "sharpness": {
                        "fresh": sharpness(fresh, trained.tokenizers),
                        "trained": sharpness(trained.model, trained.tokenizers),
                    },
                    "seconds": card["training"]["seconds"],
                }
            )
    found = {
        "recipe": "captions",
        "steps": given.steps,
        "rows": rows,
        "machine": machine(),
    }
    given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
