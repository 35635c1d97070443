"""Recurrent, convolutional and attentional models on Multi30k: the same data, the same minutes, the same axes.

    python benchmarks/architectures.py --runs runs/architectures --minutes 25 --epochs 2 --seeds 2 3

Trains every recipe below twice, once for the same wall-clock and once for the same epochs; and the two in front with
further seeds for the same wall-clock, since one seed does not tell them apart. A run that is there already is taken as
it is, a broken one goes on, and `--only` trains some of them and stops, for a core each. Then all translate
test_2016_flickr, and `results/architectures.json` and the figures of docs/before.md are made of what they wrote.
"""

import argparse
import json
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import seq2see
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine
from seq2see.scoring.compare import compare
from seq2see.see import figures
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import corpora
from seq2see.text.corpora import Parallel

HERE = Path(__file__).parent
IMAGES = HERE.parent / "docs" / "images"
RECIPES = {  # the baseline first, then in the order of their years
    "Transformer": "multi30k-transformer",
    "RNN": "multi30k-rnn",
    "LSTM": "multi30k-lstm",
    "GRU": "multi30k-gru",
    "LSTM with attention": "multi30k-lstm-attention",
    "convolutional": "multi30k-conv",
}
FRONT = ("Transformer", "convolutional")  # the two that further seeds are for
COLOURS = ("#d55e00", "#999999", "#56b4e9", "#0072b2", "#009e73", "#cc79a7")
TEST = "test_2016_flickr"
FEWEST = 20  # sentences of a length, for a BLEU of their own
SENTENCE = "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt."  # the first of the test set
REFERENCE = "A man in an orange hat starring at something."


def train(runs: Path, budget: str, value: float, name: str, seed: int | None = None) -> Path:
    """The run of a recipe within a budget, `minutes` or `epochs`, with its own seed or another."""
    table = Recipe.load(RECIPES[name]).model_dump(exclude_unset=True)
    table["train"].pop("minutes")
    table["train"] |= {budget: value} | ({} if seed is None else {"seed": seed})
    folder = (
        runs / f"{budget}-{value:g}" / (RECIPES[name] + ("" if seed is None else f"-seed-{seed}"))
    )
    if not (folder / "scorecard.json").exists():
        seq2see.train(Recipe.model_validate(table), out=folder, resume=True)
    return folder


def curve(run: Path) -> list[dict[str, float]]:
    """What each validation saw: when, after how much text, and the score."""
    events = [
        json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    found, tokens = [], 0.0
    for event in events:
        if event["event"] == "update":
            tokens = event["tokens"]
        elif event["event"] == "validation":
            found.append(
                {"tokens": tokens}
                | {key: event[key] for key in ("seconds", "update", "loss", "bleu")}
            )
    return found


def speed(run: Path) -> float:
    """Target tokens per second of training alone, in the middle of what the log says."""
    events = [
        json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return statistics.median(
        event["tokens_per_second"]
        for event in events
        if event["event"] == "update" and event["tokens_per_second"]
    )


def row(name: str, run: Path) -> dict[str, Any]:
    card = json.loads((run / "scorecard.json").read_text(encoding="utf-8"))
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
    """Every model's translations against the Transformer's: paired tests, and BLEU by the length of the source."""
    sources, references = [source for source, _ in test.pairs], [target for _, target in test.pairs]
    found = compare(
        {name: load(run).translate(sources) for name, run in runs.items()}, references, sources
    )
    return {
        "verdicts": {system.name: system.verdict for system in found.systems},
        "p": {system.name: system.bleu.p_bootstrap for system in found.systems},
        "by_length": [asdict(bucket) for bucket in found.by_length if bucket.sentences >= FEWEST],
    }


def again(seed: int, runs: dict[str, Path], test: Parallel) -> dict[str, Any]:
    """The two in front with another seed: how they score, and whether the difference is more than chance."""
    cards = {
        name: json.loads((run / "scorecard.json").read_text(encoding="utf-8"))
        for name, run in runs.items()
    }
    found = compared(runs, test)
    return {
        "seed": seed,
        "bleu": {
            name: {test: of["bleu"] for test, of in card["tests"].items()}
            for name, card in cards.items()
        },
        "training": {name: card["training"] for name, card in cards.items()},
        "verdicts": found["verdicts"],
        "p": found["p"],
    }


def drawing(result: dict[str, Any]) -> Figure:
    """Curves over minutes, curves over epochs, and BLEU by the length of the source."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    minutes, epochs, lengths = figure.subplots(1, 3)
    in_epoch = (
        result["rows"]["epochs"][0]["training"]["target_tokens"] / result["budgets"]["epochs"]
    )
    for row, colour in zip(result["rows"]["minutes"], COLOURS, strict=True):
        points = [(point["seconds"] / 60, point["bleu"]) for point in row["curve"]]
        minutes.plot(*zip(*points, strict=True), color=colour, label=row["name"])
        points = [(bucket["bucket"], bucket["bleu"][row["name"]]) for bucket in result["by_length"]]
        lengths.plot(*zip(*points, strict=True), "o-", markersize=3, color=colour)
    for row, colour in zip(result["rows"]["epochs"], COLOURS, strict=True):
        points = [(point["tokens"] / in_epoch, point["loss"]) for point in row["curve"]]
        epochs.plot(*zip(*points, strict=True), color=colour)
    figures.label(minutes, "The same minutes", "minutes", "BLEU on 500 sentences of val, greedy")
    figures.label(epochs, "The same epochs", "epochs", "loss on val")
    figures.label(lengths, "By length", "words of the source", f"BLEU on {TEST}, beam 4")
    return figure


def attention(translators: dict[str, Translator]) -> Figure:
    """Who looks where while the same translation is read: a row of layers for each model, the heads' mean in each."""
    explained = {name: each.explain(SENTENCE, REFERENCE) for name, each in translators.items()}
    deepest = max(each.recipe.model.decoder_layers for each in translators.values())
    figure = Figure(figsize=(1.0 + 3.2 * deepest, 3.3 * len(explained)), layout="constrained")
    for block, (name, found) in zip(
        figure.subfigures(len(explained), 1), explained.items(), strict=True
    ):
        block.suptitle(name, fontsize=9, fontweight="bold")
        axes = block.subplots(1, deepest)
        for layer, place in enumerate(axes):
            weights = found.weights.get(f"decoder.{layer}.cross")
            if weights is None:
                place.axis("off")
                continue
            figures.panel(place, weights.mean(0), found.target_out, found.source_tokens)
            place.set_xlabel(f"layer {layer + 1}, {len(weights)} head(s)", fontsize=7)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go, or are")
    parser.add_argument("--minutes", type=float, required=True, help="wall-clock of each run")
    parser.add_argument(
        "--epochs", type=int, required=True, help="epochs of each run of the second kind"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[], help=f"further seeds of {' and '.join(FRONT)}"
    )
    parser.add_argument("--only", nargs="+", choices=RECIPES, help="train these and stop")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "architectures.json")
    given = parser.parse_args()
    budgets = {"minutes": given.minutes, "epochs": given.epochs}
    runs = {
        budget: {name: train(given.runs, budget, value, name) for name in given.only or RECIPES}
        for budget, value in budgets.items()
    }
    seeds = {
        seed: {
            name: train(given.runs, "minutes", given.minutes, name, seed)
            for name in FRONT
            if name in (given.only or FRONT)
        }
        for seed in given.seeds
    }
    if given.only:
        return
    test = corpora.load(Recipe.load("multi30k").data, None).tests[TEST]
    rows = {budget: [row(name, run) for name, run in of.items()] for budget, of in runs.items()}
    result = {
        "budgets": budgets,
        "rows": rows,
        **compared(runs["minutes"], test),
        "machine": machine(),
    }
    result["seeds"] = [again(seed, of, test) for seed, of in seeds.items()]
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    figures.save(drawing(result), IMAGES / "architectures.png")
    looking = {
        name: load(runs["minutes"][name])
        for name in ("LSTM with attention", "convolutional", "Transformer")
    }
    figures.save(attention(looking), IMAGES / "architectures-attention.png")


if __name__ == "__main__":
    main()
