"""Labelled sentences derived from a parallel corpus, for `task = "classify"`."""

from collections.abc import Iterator

from seq2see.recipe.schema import DataConfig
from seq2see.text import captions
from seq2see.text.lines import Pair
from seq2see.text.parallel import Part
from seq2see.text.vocab import Vocab


def vocabulary(data: DataConfig) -> Vocab:
    """Return the labels as a vocabulary; their ids follow those of the special symbols."""
    return Vocab(names(data))


def names(data: DataConfig) -> list[str]:
    """Return the labels."""
    return ["singular", "plural"] if data.labels == "number" else [data.source, data.target]


def labelled(parallel: Part, data: DataConfig) -> Iterator[Pair]:
    """Turn each pair into one sentence and its label.

    `language` takes the two sides in turn; `number`, that of the subject, takes the target side.
    """
    if data.labels == "language":
        languages = (data.source, data.target)
        for line, pair in enumerate(parallel.pairs):
            yield pair[line % 2], languages[line % 2]
        return
    # The captions are a function of split and count, so this generates the same ones again, and
    # those that were left out.
    count = len(parallel.pairs) + parallel.seen
    generated = captions.generate(parallel.name, count, languages=(data.source, data.target))
    plural = {(caption.source, caption.target): caption.plural for caption in generated}
    for pair in parallel.pairs:
        yield pair[1], "plural" if plural[pair] else "singular"
