"""Speed-up by caching and batching: beam search against one sentence at a time without a cache.

    python benchmarks/decoding.py --model runs/multi30k --source test_2016_flickr.de.gz \\
        --out benchmarks/results/decoding.json

Both search with the same code, beam and weights, in turn, on one part of the sentences after the
other; the slow one takes sentences one by one and recomputes all target positions at each step.
Their translations are compared as well.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from seq2see.bench.rounds import ratios, turns
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import search
from seq2see.scoring.card import machine
from seq2see.tasks.table import load
from seq2see.text.lines import read_lines

PARTS = 5
FAST = "batched_and_cached_sentences_per_second"
SLOW = "one_by_one_uncached_sentences_per_second"


@dataclass(frozen=True)
class Prefix:
    """A decoding state that holds no keys and values, only the target tokens so far."""

    state: Any
    ids: Tensor | None = None

    def select(self, rows: Tensor) -> "Prefix":
        return Prefix(self.state.select(rows), None if self.ids is None else self.ids[rows])


@dataclass(frozen=True)
class Uncached:
    """The same model, made to recompute every target position at each step."""

    model: Any

    def encode(self, source: Tensor) -> Any:
        return self.model.encode(source)

    def start(self, memory: Any) -> Prefix:
        return Prefix(self.model.start(memory))

    def step(self, prefix: Prefix, ids: Tensor) -> tuple[Tensor, Prefix]:
        whole = ids if prefix.ids is None else torch.cat([prefix.ids, ids], dim=1)
        logits, _ = self.model.step(prefix.state, whole)
        return logits[:, -ids.shape[1] :], Prefix(prefix.state, whole)


def measure(model: Any, sources: list[list[int]], config: Search) -> dict[str, Any]:
    """Search each part both ways; return speeds, their ratios and the number of equal outputs."""
    rates: dict[str, dict[int, float]] = {FAST: {}, SLOW: {}}
    outputs: dict[str, list[list[Hypothesis]]] = {FAST: [], SLOW: []}
    for number, name in turns([FAST, SLOW], range(1, PARTS + 1)):
        part = sources[number - 1 :: PARTS]
        started = time.perf_counter()
        if name == FAST:
            outputs[name] += search(model, part, config)
        else:
            outputs[name] += [search(Uncached(model), [source], config)[0] for source in part]
        rates[name][number] = len(part) / (time.perf_counter() - started)
    speed_ups = ratios(rates[FAST], rates[SLOW])
    pairs = zip(outputs[FAST], outputs[SLOW], strict=True)
    return {
        FAST: median(rates[FAST].values()),
        SLOW: median(rates[SLOW].values()),
        "ratio": median(speed_ups),
        "ratios": speed_ups,
        "same_translations": sum(fast[0].ids == slow[0].ids for fast, slow in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    translator = load(options.model, "cpu")
    decode = translator.recipe.decode
    config = Search(options.beam, decode.length_penalty, decode.max_ratio, decode.min_length)
    sources = [translator.tokenizers.source.encode(line) for line in read_lines(options.source)]
    model: Any = translator.model.eval()
    search(model, sources[:8], config)  # warm-up
    result = {
        "sentences": len(sources),
        "beam": options.beam,
        **measure(model, sources, config),
        "model": translator.recipe.model.model_dump(),
        "machine": machine(),
        "versions": {"torch": torch.__version__},
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
