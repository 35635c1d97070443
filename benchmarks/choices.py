"""What each choice of the pipeline is worth on Multi30k's validation set: averaging, beam, length penalty, subword
sampling, label smoothing.

    python benchmarks/choices.py --runs runs/choices --steps 2500

Trains the recipe `multi30k` once per seed as it is, and once more per seed for each choice that is made in training,
always for the same number of updates; a run that is there already is taken as it is, a broken one goes on. Then every
model translates all of val, and `results/choices.json` gets BLEU per seed. Test sets decide nothing here.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.scoring.card import machine
from seq2see.tasks.translator import Translator
from seq2see.text import corpora
from seq2see.training import checkpoint

HERE = Path(__file__).parent
TRAINED = {
    "as shipped": [],
    "label smoothing 0": ["train.label_smoothing=0.0"],
    "subword sampling 0.5": ["tokenizer.sampling=0.5"],
}
BEAMS = (1, 2, 4, 8, 16)
LENGTH_PENALTIES = (0.0, 0.6, 1.0, 1.4, 2.0)


def trained(runs: Path, steps: int, seed: int, name: str) -> tuple[Path, Translator]:
    budget = [f"train.steps={steps}", f"train.seed={seed}"]
    recipe = Recipe.load("multi30k", [*budget, *TRAINED[name]])
    folder = runs / f"{name.replace(' ', '-')}-seed{seed}"
    return folder, seq2see.train(recipe, out=folder, resume=True)


def decoded(translator: Translator) -> Iterator[tuple[str, str, Translator]]:
    """The same weights under other searches: what is varied, its value, the translator."""
    recipe = translator.recipe
    shipped = recipe.decode
    for what, key, values in (
        ("beam", "beam", BEAMS),
        ("length penalty", "length_penalty", LENGTH_PENALTIES),
    ):
        for value in sorted({*values, getattr(shipped, key)}):
            other = recipe.model_copy(update={"decode": shipped.model_copy(update={key: value})})
            yield (
                what,
                f"{value:g}",
                Translator(other, translator.tokenizers, translator.model, translator.device),
            )


def averaged(folder: Path, translator: Translator) -> Iterator[tuple[str, str, Translator]]:
    """The last checkpoint, and the average of the last few, under the shipped search."""
    saved = checkpoint.saved_in(folder / "checkpoints")[-translator.recipe.train.average :]
    for count in (1, len(saved)):
        checkpoint.copy_into(
            translator.model, checkpoint.average(saved[-count:], "weights"), folder
        )
        yield "checkpoints averaged", str(count), translator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go, or are")
    parser.add_argument("--steps", type=int, required=True, help="updates of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "choices.json")
    given = parser.parse_args()
    val = corpora.load(Recipe.load("multi30k").data, None).val
    sources, references = [source for source, _ in val.pairs], [target for _, target in val.pairs]
    rows: dict[tuple[str, str], dict[int, float]] = {}
    signature = ""

    def note(what: str, value: str, seed: int, translator: Translator) -> None:
        nonlocal signature
        scores = score(translator.translate(sources), references)
        signature = scores.signature
        rows.setdefault((what, value), {})[seed] = scores.bleu
        print(f"seed {seed}, {what} {value}: {scores.bleu:.2f}", flush=True)

    for seed in given.seeds:
        for name in TRAINED:
            folder, translator = trained(given.runs, given.steps, seed, name)
            note("training", name, seed, translator)
            if name == "as shipped":
                # One after the other: averaging puts other weights into the model that all of them share.
                for what, value, other in chain(decoded(translator), averaged(folder, translator)):
                    note(what, value, seed, other)
    shipped: dict[str, Any] = Recipe.load("multi30k", [f"train.steps={given.steps}"]).model_dump()
    result = {
        "on": {
            "corpus": "multi30k",
            "split": "val",
            "sentences": len(sources),
            "sha256": val.digest,
        },
        "steps": given.steps,
        "recipe": shipped,
        "signature": signature,
        "rows": [
            {"what": what, "value": value, "bleu": bleu} for (what, value), bleu in rows.items()
        ],
        "machine": machine(),
    }
    given.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
