"""The published Multi30k run of The Annotated Transformer beside ours.

    seq2see train multi30k-annotated        # hours; --resume continues an interrupted run
    python benchmarks/reproduction.py --run runs/multi30k-annotated

Reads the run's log and score card, translates three validation sentences greedily as the published
notebook does, and writes `results/reproduction.json` and the figures of docs/reproduction.md. An
unfinished run gives its curve so far.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine
from seq2see.see import attention, figures
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import corpora
from seq2see.text.specials import UNKNOWN

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
PUBLISHED: dict[str, Any] = {
    "first_loss": 7.61,
    "validation_loss": {"1": 3.90, "8": 1.4455},
    "target_tokens_per_second": 4100,
    "hours": 0.25,
    "machine": "one RTX 3090",
}
SAMPLES = 3
DRAWN = "Ein Mann schläft in einem grünen Raum auf einem Sofa."  # the second sentence of val


def curve(run: Path) -> dict[str, Any]:
    """Read losses and speed from the log; updates that a resumed run repeats count once."""
    first = None
    training = {}
    validation = {}
    tokens = 0.0
    seconds = 0.0
    for line in (run / "log.jsonl").read_text(encoding="utf-8", errors="replace").split("\n"):
        if not line.endswith("}"):
            continue  # the end, or a line truncated when the process was killed
        event = json.loads(line)
        if event["event"] == "update":
            first = event["loss"] if first is None else first
            training[event["update"]] = {"epoch": event["epoch"], "loss": event["loss"]}
        elif event["event"] == "epoch":
            tokens = event["tokens"]
            seconds = event["seconds"]
        elif event["event"] == "validation":
            kept = {key: event[key] for key in ("update", "loss", "perplexity", "bleu", "seconds")}
            kept["epoch"] = event["epoch"] - 1  # logged when the next epoch has begun
            validation[event["update"]] = kept
    return {
        "first_loss": first,
        "training": [{"update": update, **rest} for update, rest in sorted(training.items())],
        "validation": [validation[update] for update in sorted(validation)],
        "target_tokens_per_second": tokens / seconds,
        "hours": seconds / 3600,
    }


def drawing(ours: dict[str, Any]) -> Figure:
    """Plot our training and validation loss by epoch, and the published points."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    updates = [row["update"] for row in ours["training"]]
    per_epoch = ours["validation"][0]["update"]
    axes.plot(
        [u / per_epoch for u in updates],
        [row["loss"] for row in ours["training"]],
        color="0.75",
        label="training",
    )
    epochs = [row["epoch"] for row in ours["validation"]]
    axes.plot(epochs, [row["loss"] for row in ours["validation"]], "o-", label="validation")
    published = {int(epoch): loss for epoch, loss in PUBLISHED["validation_loss"].items()}
    axes.plot(
        list(published),
        list(published.values()),
        "r*",
        markersize=12,
        label="validation, published",
    )
    axes.plot([0], [PUBLISHED["first_loss"]], "rx", label="first batch, published")
    axes.set(xlabel="epoch", ylabel="loss per target token", ylim=(0, 8))
    axes.legend()
    return figure


def sample(translator: Translator, source: str, target: str) -> dict[str, str]:
    """Format a sentence like the published notebook: out-of-vocabulary words are <unk>."""

    def shown(ids: list[int], side: str) -> str:
        tokenizer = getattr(translator.tokenizers, side)
        pieces = ["<unk>" if id == UNKNOWN else tokenizer.piece(id) for id in ids]
        return " ".join(["<s>", *pieces, "</s>"])

    output = translator.translate([source], beam=1)[0]
    return {
        "Source Text (Input)": shown(translator.tokenizers.source.encode(source), "source"),
        "Target Text (Ground Truth)": shown(translator.tokenizers.target.encode(target), "target"),
        "Model Output": shown(translator.tokenizers.target.encode(output), "target"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--run", type=Path, required=True, help="the run directory of multi30k-annotated"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "reproduction.json")
    options = parser.parse_args()
    ours = curve(options.run)
    figures.save(drawing(ours), IMAGES / "reproduction-curve.png")
    result: dict[str, Any] = {"published": PUBLISHED, "ours": ours, "machine": machine()}
    if (options.run / "scorecard.json").exists():
        result["scorecard"] = json.loads((options.run / "scorecard.json").read_bytes())
        translator = load(options.run)
        val = corpora.load(Recipe.load("multi30k-annotated").data, None).val
        result["samples"] = [sample(translator, *pair) for pair in val.pairs[:SAMPLES]]
        picture = IMAGES / "reproduction-attention.png"
        figures.save(attention.on_one_page(translator.explain(DRAWN)), picture)
        half = Image.open(picture).convert("RGB").reduce(2)  # 144 maps make a large file
        half.quantize(dither=Image.Dither.NONE).save(picture, optimize=True)
    options.out.write_text(
        json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
