"""Faithfulness and alignment error rate of every attribution method on the embedded captions.

    seq2see demo
    python benchmarks/attribution.py --model runs/demo

Attributes the references of captions, under teacher forcing. Erases the source tokens that a method
ranks first for a target token, and as many drawn at random; aligns words by the largest value of a
row. Variants (plain or both ways, and the layer or head) are chosen on val and reported on test.
Times a sentence of 20 words, too. Writes `results/attribution.json`.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2see.batches import IdPair
from seq2see.scoring.card import machine
from seq2see.see import alignment
from seq2see.see.attention_flow import norms_by_layer
from seq2see.see.attribution import METHODS, attribute
from seq2see.see.faithfulness import error_rates, fall_at_random, fall_when_erased, ids_of
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.captions import Caption

RESULTS = Path(__file__).parent / "results"
COUNTS = (1, 2, 3)  # source tokens erased
WORDS = 20  # of the sentence that is timed
REPEATS = 7


def falls_by_count(
    translator: Translator, pairs: list[IdPair], attributions: list[Tensor]
) -> dict[str, float]:
    """Measure the fall of log p for each number of erased tokens."""
    return {
        str(count): fall_when_erased(translator, pairs, attributions, count) for count in COUNTS
    }


def of_split(translator: Translator, examples: list[Caption]) -> dict[str, Any]:
    """Measure every method, every layer of `norm` and every head on the captions of a split."""
    pairs = [ids_of(translator, caption) for caption in examples]
    methods = {}
    for name in METHODS:
        attributions = [attribute(translator, *pair, name) for pair in pairs]
        methods[name] = {
            "alignment_error_rate": error_rates(translator, examples, attributions),
            "fall": falls_by_count(translator, pairs, attributions),
        }
        print(len(examples), name, methods[name], flush=True)
    norms = [norms_by_layer(translator.model, *pair) for pair in pairs]
    by_head = alignment.head_error_rates(translator, examples)
    return {
        "captions": len(examples),
        "target_tokens": sum(len(target) for _, target in pairs),
        "methods": methods,
        "random": {str(count): fall_at_random(translator, pairs, count) for count in COUNTS},
        "norm_layers": [
            error_rates(translator, examples, list(layer)) for layer in zip(*norms, strict=True)
        ],
        "heads": {f"{name}.{head}": rate for (name, head), rate in by_head.items()},
    }


def seconds(translator: Translator) -> dict[str, Any]:
    """Time each method on the first test caption of 20 words; medians."""
    caption = next(
        caption
        for caption in captions.generate("test", 5000)
        if len(captions.words(caption.source)) == WORDS
    )
    source, target = ids_of(translator, caption)
    medians = {}
    for method in METHODS:
        times = []
        for _ in range(1 + REPEATS):  # the first warms up
            start = time.perf_counter()
            attribute(translator, source, target, method)
            times.append(time.perf_counter() - start)
        medians[method] = statistics.median(times[1:])
    return {
        "words": WORDS,
        "source_tokens": len(source),
        "target_tokens": len(target),
        "median": medians,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a model of the captions")
    parser.add_argument("--val", type=int, default=200, help="captions to choose variants on")
    parser.add_argument("--test", type=int, default=500, help="captions to report")
    parser.add_argument("--out", type=Path, default=RESULTS / "attribution.json")
    options = parser.parse_args()
    torch.set_num_threads(1)  # a sentence leaves little for a second one to do
    translator = load(options.model, "cpu")
    result = {
        "recipe": translator.recipe.model_dump(mode="json", exclude_unset=True),
        "seconds": seconds(translator),
        "val": of_split(translator, captions.generate("val", options.val)),
        "test": of_split(translator, captions.generate("test", options.test)),
        "machine": machine(),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
