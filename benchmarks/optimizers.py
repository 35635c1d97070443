"""Muon against Adam on Multi30k: the same model, the same minutes, val alone.

    python benchmarks/optimizers.py --runs runs/optimizers --minutes 6

Trains the recipe `multi30k-transformer` with each of them for each seed, at the learning rate in `RATES`. A run that
is there already is taken as it is, a broken one goes on, and `--seeds` with `--only` trains some of them and
stops. Then each translates all of val, and `results/optimizers.json` and docs/images/optimizers.png are made of it.
"""

import argparse
import json
from pathlib import Path

from architectures import IMAGES, curve, speed
from matplotlib.figure import Figure

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.see import figures
from seq2see.tasks.table import load
from seq2see.text import corpora

HERE = Path(__file__).parent
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


def drawing(rows: list[dict[str, object]]) -> Figure:
    """Loss and BLEU on val over the minutes, a line for each run."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    for row in rows:
        points, name = row["curve"], str(row["optimizer"])
        look = {"color": COLOURS[name], "label": name if row["seed"] == rows[0]["seed"] else None}
        for axes, key in ((losses, "loss"), (scores, "bleu")):
            axes.plot(
                [each["seconds"] / 60 for each in points], [each[key] for each in points], **look
            )
    figures.label(losses, "Loss", "minutes", "loss on val")
    figures.label(scores, "BLEU", "minutes", "BLEU on 500 sentences of val, greedy")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go, or are")
    parser.add_argument("--minutes", type=float, required=True, help="wall-clock of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=RATES, help="train with this one and stop")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "optimizers.json")
    given = parser.parse_args()
    names = [given.only] if given.only else list(RATES)
    runs = {
        (name, seed): train(given.runs, given.minutes, name, seed)
        for seed in given.seeds
        for name in names
    }
    if given.only:
        return
    val = corpora.load(Recipe.load("multi30k-transformer").data, None).val
    sources, references = [source for source, _ in val.pairs], [target for _, target in val.pairs]
    rows, signature = [], ""
    first = next(iter(runs.values()))
    machine = json.loads((first / "scorecard.json").read_text(encoding="utf-8"))[
        "machine"
    ]  # as it was in training
    for (name, seed), run in runs.items():
        scores = score(load(run).translate(sources), references)
        signature = scores.signature
        settings = {"optimizer": name, "lr": RATES[name], "seed": seed}
        measured = {
            "target_tokens_per_second": speed(run),
            "bleu": scores.bleu,
            "curve": curve(run),
        }
        rows.append(settings | measured)
        print(f"{name}, seed {seed}: {scores.bleu:.2f} BLEU on val, {speed(run):,.0f} tokens/s")
    result = {"minutes": given.minutes, "rows": rows, "signature": signature, "machine": machine}
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    figures.save(drawing(rows), IMAGES / "optimizers.png")


if __name__ == "__main__":
    main()
