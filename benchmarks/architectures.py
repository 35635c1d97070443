"""Recurrent, convolutional and attentional models on Multi30k: equal data, equal minutes or epochs.

    python benchmarks/architectures.py --runs runs/architectures --minutes 25 --epochs 2 --seeds 2 3

Trains every recipe below twice, for equal wall-clock time and for equal epochs, and the two best
with further seeds, since one seed does not separate them. Finished runs are reused, interrupted
ones are resumed; `--only` trains some of them and stops, to run one per core. Then all translate
test_2016_flickr, and `results/architectures.json` and the figures of docs/before.md are written.
"""

import argparse
import json
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine
from seq2see.scoring.compare import compare
from seq2see.see import attention as maps
from seq2see.see import figures
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import corpora
from seq2see.text.corpora import Parallel

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
RECIPES = {  # the baseline first, then by year of publication
    "Transformer": "multi30k-transformer",
    "RNN": "multi30k-rnn",
    "LSTM": "multi30k-lstm",
    "GRU": "multi30k-gru",
    "LSTM with attention": "multi30k-lstm-attention",
    "convolutional": "multi30k-conv",
}
BEST = ("Transformer", "convolutional")  # trained with further seeds
STYLES = (  # a colour and a mark for each recipe
    ("#d55e00", "s"),
    ("#777777", "x"),
    ("#56b4e9", "v"),
    ("#0072b2", "o"),
    ("#009e73", "^"),
    ("#cc79a7", "D"),
)
TEST = "test_2016_flickr"
FEWEST = 20  # sentences in a bucket of lengths; BLEU of fewer means little
SENTENCE = "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt."  # the first of the test set
REFERENCE = "A man in an orange hat starring at something."


def train(runs: Path, budget: str, value: float, name: str, seed: int | None = None) -> Path:
    """Train a recipe within a budget, `minutes` or `epochs`, with its own seed or another."""
    table = Recipe.load(RECIPES[name]).model_dump(exclude_unset=True)
    table["train"].pop("minutes")
    table["train"][budget] = value
    folder = runs / f"{budget}-{value:g}" / RECIPES[name]
    if seed is not None:
        table["train"]["seed"] = seed
        folder = folder.with_name(f"{folder.name}-seed-{seed}")
    if not (folder / "scorecard.json").exists():
        seq2see.train(Recipe.model_validate(table), out=folder, resume=True)
    return folder


def events(run: Path) -> list[dict[str, Any]]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def card_of(run: Path) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((run / "scorecard.json").read_text(encoding="utf-8"))
    return card


def curve(run: Path) -> list[dict[str, float]]:
    """Return time, target tokens and scores of each validation."""
    points = []
    tokens = 0.0
    for event in events(run):
        if event["event"] == "update":
            tokens = event["tokens"]
        elif event["event"] == "validation":
            scores = {key: event[key] for key in ("seconds", "update", "loss", "bleu")}
            points.append({"tokens": tokens} | scores)
    return points


def speed(run: Path) -> float:
    """Return the median target tokens per second of training, without validation."""
    return statistics.median(
        event["tokens_per_second"]
        for event in events(run)
        if event["event"] == "update" and event["tokens_per_second"]
    )


def row(name: str, run: Path) -> dict[str, Any]:
    card = card_of(run)
    return {
        "name": name,
        "recipe": RECIPES[name],
        "parameters": card["parameters"],
        "training": card["training"],
        "target_tokens_per_second": speed(run),
        "bleu": {test: scores["bleu"] for test, scores in card["tests"].items()},
        "signature": card["tests"][TEST]["signature"],
        "settings": card["recipe"],
        "machine": card["machine"],
        "versions": card["versions"],
        "curve": curve(run),
    }


def compared(runs: dict[str, Path], test: Parallel) -> dict[str, Any]:
    """Compare every model with the Transformer: paired tests, and BLEU by source length."""
    sources = [source for source, _ in test.pairs]
    references = [target for _, target in test.pairs]
    outputs = {name: load(run).translate(sources) for name, run in runs.items()}
    comparison = compare(outputs, references, sources)
    buckets = [bucket for bucket in comparison.by_length if bucket.sentences >= FEWEST]
    return {
        "verdicts": {system.name: system.verdict for system in comparison.systems},
        "p": {system.name: system.bleu.p_bootstrap for system in comparison.systems},
        "by_length": [asdict(bucket) for bucket in buckets],
    }


def again(seed: int, runs: dict[str, Path], test: Parallel) -> dict[str, Any]:
    """Compare the two best with another seed."""
    cards = {name: card_of(run) for name, run in runs.items()}
    comparison = compared(runs, test)
    return {
        "seed": seed,
        "bleu": {
            name: {test: scores["bleu"] for test, scores in card["tests"].items()}
            for name, card in cards.items()
        },
        "training": {name: card["training"] for name, card in cards.items()},
        "verdicts": comparison["verdicts"],
        "p": comparison["p"],
    }


def drawing(result: dict[str, Any]) -> Figure:
    """Plot BLEU over minutes, the loss after each of few epochs, and BLEU by source length."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    minutes, epochs, lengths = figure.subplots(1, 3)
    for row, (colour, mark) in zip(result["rows"]["minutes"], STYLES, strict=True):
        style = {"color": colour, "marker": mark, "markersize": 4, "label": row["name"]}
        x = [point["seconds"] / 60 for point in row["curve"]]
        y = [point["bleu"] for point in row["curve"]]
        minutes.plot(x, y, **style)
        x = [bucket["bucket"] for bucket in result["by_length"]]
        y = [bucket["bleu"][row["name"]] for bucket in result["by_length"]]
        lengths.plot(x, y, **style)
    _losses(epochs, result)
    figures.label(minutes, "The same minutes", "minutes", "BLEU on 500 sentences of val, greedy")
    figures.label(lengths, "By length", "words of the source", f"BLEU on {TEST}, beam 4")
    for axes in (epochs, lengths):
        axes.get_legend().remove()
    return figure


def _losses(axes: Axes, result: dict[str, Any]) -> None:
    """Draw a dot for each epoch: so few points make no curve."""
    rows = sorted(result["rows"]["epochs"], key=lambda row: row["curve"][-1]["loss"])
    colours = dict(zip(RECIPES, STYLES, strict=True))
    for place, row in enumerate(rows):
        losses = [point["loss"] for point in row["curve"]]
        colour, mark = colours[row["name"]]
        axes.plot(losses, [place] * len(losses), "-", color=colour, alpha=0.4, linewidth=1)
        name = {"label": row["name"]}
        axes.plot(losses, [place] * len(losses), mark, color=colour, markersize=7, **name)
        for loss in losses:
            axes.annotate(
                f"{loss:.2f}",
                (loss, place),
                (0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )
    names = [row["name"] for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.margins(0.1, 0.12)
    figures.label(axes, "The same epochs: 1 on the right, 2 on the left", "loss on val", "")


def attention(translators: dict[str, Translator]) -> Figure:
    """Draw cross-attention under forced decoding: a row per model, the mean head of each layer."""
    explanations = {
        name: translator.explain(SENTENCE, REFERENCE) for name, translator in translators.items()
    }
    deepest = max(translator.recipe.model.decoder_layers for translator in translators.values())
    figure = Figure(figsize=(1.0 + 3.2 * deepest, 3.3 * len(explanations)), layout="constrained")
    blocks = figure.subfigures(len(explanations), 1)
    for block, (name, explanation) in zip(blocks, explanations.items(), strict=True):
        block.suptitle(name, fontsize=9, fontweight="bold")
        for layer, axes in enumerate(block.subplots(1, deepest)):
            weights = explanation.weights.get(f"decoder.{layer}.cross")
            if weights is None:
                axes.axis("off")
                continue
            mean = weights.mean(0)
            names = maps.AXES["decoder.cross"]
            maps.panel(axes, mean, explanation.target_out, explanation.source_tokens, names)
            axes.set_title(f"layer {layer + 1}, mean of {len(weights)} head(s)", fontsize=8)
    return figure


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--minutes", type=float, required=True, help="wall-clock time of a run")
    parser.add_argument(
        "--epochs", type=int, required=True, help="epochs of a run with equal epochs"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[], help=f"further seeds of {' and '.join(BEST)}"
    )
    parser.add_argument("--only", nargs="+", choices=RECIPES, help="train these and stop")
    parser.add_argument("--out", type=Path, default=RESULTS / "architectures.json")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    names = options.only or list(RECIPES)
    budgets = {"minutes": options.minutes, "epochs": options.epochs}
    runs = {
        budget: {name: train(options.runs, budget, value, name) for name in names}
        for budget, value in budgets.items()
    }
    further = {
        seed: {
            name: train(options.runs, "minutes", options.minutes, name, seed)
            for name in BEST
            if name in names
        }
        for seed in options.seeds
    }
    if options.only:
        return
    test = corpora.load(Recipe.load("multi30k").data, None).tests[TEST]
    result = {
        "budgets": budgets,
        "rows": {
            budget: [row(name, run) for name, run in trained.items()]
            for budget, trained in runs.items()
        },
        **compared(runs["minutes"], test),
        "machine": machine(),
        "seeds": [again(seed, trained, test) for seed, trained in further.items()],
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    figures.save(drawing(result), IMAGES / "architectures.png")
    attending = ("LSTM with attention", "convolutional", "Transformer")
    translators = {name: load(runs["minutes"][name]) for name in attending}
    figures.save(attention(translators), IMAGES / "architectures-attention.png")


if __name__ == "__main__":
    main()
