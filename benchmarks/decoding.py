"""What caching and batching are worth: beam search as it is, against one sentence at a time without a cache.

    python benchmarks/decoding.py --model runs/multi30k --source test_2016_flickr.de.gz \\
        --out benchmarks/results/decoding.json

Both search with the same code, the same beam and the same weights, in turn, part by part; the slow one sees every
sentence alone and computes all target positions anew at each step. Their translations are compared as well.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.scoring.card import machine
from seq2see.tasks.table import load
from seq2see.text.corpora import read_lines

PARTS = 5


@dataclass(frozen=True)
class Prefix:
    """A decoding state that remembers only what was written."""

    state: Any
    ids: Tensor | None = None

    def select(self, rows: Tensor) -> "Prefix":
        return Prefix(self.state.select(rows), None if self.ids is None else self.ids[rows])


@dataclass(frozen=True)
class Uncached:
    """The same model, made to compute every target position anew at each step."""

    model: Any

    def encode(self, source: Tensor) -> Any:
        return self.model.encode(source)

    def start(self, memory: Any) -> Prefix:
        return Prefix(self.model.start(memory))

    def step(self, prefix: Prefix, ids: Tensor) -> tuple[Tensor, Prefix]:
        whole = ids if prefix.ids is None else torch.cat([prefix.ids, ids], dim=1)
        logits, _ = self.model.step(prefix.state, whole)
        return logits[:, -ids.shape[1] :], Prefix(prefix.state, whole)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    translator = load(arguments.model, "cpu")
    decode = translator.recipe.decode
    how = Search(arguments.beam, decode.length_penalty, decode.max_ratio, decode.min_length)
    sources = [translator.tokenizers.source.encode(line) for line in read_lines(arguments.source)]
    model: Any = translator.model.eval()
    search(model, sources[:8], how)
    fast, slow, same = [], [], 0
    for part in range(PARTS):
        some = sources[part::PARTS]
        started = time.perf_counter()
        batched = search(model, some, how)
        fast.append(len(some) / (time.perf_counter() - started))
        started = time.perf_counter()
        alone = [search(Uncached(model), [source], how)[0] for source in some]
        slow.append(len(some) / (time.perf_counter() - started))
        same += sum(a[0].ids == b[0].ids for a, b in zip(batched, alone, strict=True))
    found = {
        "sentences": len(sources),
        "beam": arguments.beam,
        "batched_and_cached_sentences_per_second": statistics.median(fast),
        "one_by_one_uncached_sentences_per_second": statistics.median(slow),
        "ratio": statistics.median(a / b for a, b in zip(fast, slow, strict=True)),
        "ratios": [a / b for a, b in zip(fast, slow, strict=True)],
        "same_translations": same,
        "model": translator.recipe.model.model_dump(),
        "machine": machine(),
        "versions": {"torch": torch.__version__},
    }
    text = json.dumps(found, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
