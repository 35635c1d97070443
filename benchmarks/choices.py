"""Worth of each choice of the pipeline, as BLEU on Multi30k's validation set.

    python benchmarks/choices.py --runs runs/choices --steps 2500

The choices are averaging, beam, length penalty, subword sampling and label smoothing. Trains the
recipe `multi30k` as shipped, and once more for each choice made in training, for every seed and
always for the same number of updates; finished runs are reused, interrupted ones are resumed. Then
every model translates all of val, and `results/choices.json` holds BLEU per seed. Test sets decide
nothing here.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import seq2see
from seq2see.models.weights import copy_into
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.scoring.card import machine
from seq2see.tasks.translator import Translator
from seq2see.text import corpora
from seq2see.training import checkpoint

RESULTS = Path(__file__).parent / "results"
TRAINED = {
    "as shipped": [],
    "label smoothing 0": ["train.label_smoothing=0.0"],
    "subword sampling 0.5": ["tokenizer.sampling=0.5"],
}
BEAMS = (1, 2, 4, 8, 16)
LENGTH_PENALTIES = (0.0, 0.6, 1.0, 1.4, 2.0)

Choice = tuple[str, str, Translator]  # kind of choice, its value, the model under it


def train(runs: Path, steps: int, seed: int, name: str) -> tuple[Path, Translator]:
    budget = [f"train.steps={steps}", f"train.seed={seed}"]
    recipe = Recipe.load("multi30k", [*budget, *TRAINED[name]])
    folder = runs / f"{name.replace(' ', '-')}-seed{seed}"
    return folder, seq2see.train(recipe, out=folder, resume=True)


def searches(translator: Translator) -> Iterator[Choice]:
    """Yield the same weights under other searches."""
    recipe = translator.recipe
    shipped = recipe.decode
    for kind, key, values in (
        ("beam", "beam", BEAMS),
        ("length penalty", "length_penalty", LENGTH_PENALTIES),
    ):
        for value in sorted({*values, getattr(shipped, key)}):
            decode = shipped.model_copy(update={key: value})
            other = recipe.model_copy(update={"decode": decode})
            model = Translator(other, translator.tokenizers, translator.model, translator.device)
            yield kind, f"{value:g}", model


def averages(folder: Path, translator: Translator) -> Iterator[Choice]:
    """Yield the last checkpoint, and the average of the last few, under the shipped search."""
    saved = checkpoint.saved_in(folder / "checkpoints")[-translator.recipe.train.average :]
    for count in (1, len(saved)):
        weights = checkpoint.average(saved[-count:], "weights")
        copy_into(translator.model, weights, folder)
        yield "checkpoints averaged", str(count), translator


def choices(runs: Path, steps: int, seed: int) -> Iterator[Choice]:
    for name in TRAINED:
        folder, translator = train(runs, steps, seed, name)
        yield "training", name, translator
        if name == "as shipped":
            # In this order: averaging replaces the weights of the model that all of them share.
            yield from chain(searches(translator), averages(folder, translator))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--steps", type=int, required=True, help="updates of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS / "choices.json")
    options = parser.parse_args()
    val = corpora.load(Recipe.load("multi30k").data, None).val
    sources = [source for source, _ in val.pairs]
    references = [target for _, target in val.pairs]
    rows: dict[tuple[str, str], dict[int, float]] = {}
    signature = ""
    for seed in options.seeds:
        for kind, value, translator in choices(options.runs, options.steps, seed):
            scores = score(translator.translate(sources), references)
            signature = scores.signature
            rows.setdefault((kind, value), {})[seed] = scores.bleu
            print(f"seed {seed}, {kind} {value}: {scores.bleu:.2f}", flush=True)
    result = {
        "on": {
            "corpus": "multi30k",
            "split": "val",
            "sentences": len(sources),
            "sha256": val.digest,
        },
        "steps": options.steps,
        "recipe": Recipe.load("multi30k", [f"train.steps={options.steps}"]).model_dump(),
        "signature": signature,
        "rows": [
            {"what": kind, "value": value, "bleu": bleu} for (kind, value), bleu in rows.items()
        ],
        "machine": machine(),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
