"""Muon against Adam on Multi30k: the same model and minutes, scored on val alone.

    python benchmarks/optimizers.py --runs runs/optimizers --minutes 6

Trains the recipe `multi30k-transformer` with both for each seed, at the learning rate in `RATES`.
Finished runs are reused, interrupted ones are resumed; `--only` trains with one of them and stops.
Then each model translates all of val, and `results/optimizers.json` and docs/images/optimizers.png
are written.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from architectures import IMAGES, RESULTS, card_of, curve, speed
from matplotlib.figure import Figure

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.see import figures
from seq2see.tasks.table import load
from seq2see.text import corpora

RATES = {"adam": 0.003, "muon": 0.003}
COLOURS = {"adam": "#0072b2", "muon": "#d55e00"}


def train(runs: Path, minutes: float, optimizer: str, seed: int) -> Path:
    settings = {"optimizer": optimizer, "lr": RATES[optimizer], "seed": seed, "minutes": minutes}
    recipe = Recipe.load(
        "multi30k-transformer", [f"train.{key}={value}" for key, value in settings.items()]
    )
    folder = runs / f"{optimizer}-{minutes:g}-seed{seed}"
    if not (folder / "scorecard.json").exists():
        seq2see.train(recipe, out=folder, resume=True)
    return folder


def drawing(rows: list[dict[str, Any]]) -> Figure:
    """Plot loss and BLEU on val over the minutes, one line per run."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    for row in rows:
        name = row["optimizer"]
        label = name if row["seed"] == rows[0]["seed"] else None
        minutes = [point["seconds"] / 60 for point in row["curve"]]
        for axes, key in ((losses, "loss"), (scores, "bleu")):
            values = [point[key] for point in row["curve"]]
            axes.plot(minutes, values, color=COLOURS[name], label=label)
    figures.label(losses, "Loss", "minutes", "loss on val")
    figures.label(scores, "BLEU", "minutes", "BLEU on 500 sentences of val, greedy")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--minutes", type=float, required=True, help="wall-clock time of a run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=RATES, help="train with this one and stop")
    parser.add_argument("--out", type=Path, default=RESULTS / "optimizers.json")
    options = parser.parse_args()
    names = [options.only] if options.only else list(RATES)
    runs = {
        (name, seed): train(options.runs, options.minutes, name, seed)
        for seed in options.seeds
        for name in names
    }
    if options.only:
        return
    val = corpora.load(Recipe.load("multi30k-transformer").data, None).val
    sources = [source for source, _ in val.pairs]
    references = [target for _, target in val.pairs]
    rows = []
    for (name, seed), run in runs.items():
        scores = score(load(run).translate(sources), references)
        rows.append(
            {
                "optimizer": name,
                "lr": RATES[name],
                "seed": seed,
                "target_tokens_per_second": speed(run),
                "bleu": scores.bleu,
                "curve": curve(run),
            }
        )
        print(f"{name}, seed {seed}: {scores.bleu:.2f} BLEU on val, {speed(run):,.0f} tokens/s")
    result = {
        "minutes": options.minutes,
        "rows": rows,
        "signature": scores.signature,
        "machine": card_of(next(iter(runs.values())))["machine"],  # as it was in training
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    figures.save(drawing(rows), IMAGES / "optimizers.png")


if __name__ == "__main__":
    main()
