"""Labelled sentences derived from a parallel corpus, for `task = "classify"`."""

from seq2see.recipe.schema import DataConfig
from seq2see.text import captions
from seq2see.text.corpora import Parallel
from seq2see.text.vocab import Vocab


def vocabulary(data: DataConfig) -> Vocab:
    """Return the labels as a vocabulary; their ids follow those of the special symbols."""
    return Vocab(["singular", "plural"] if data.labels == "number" else [data.source, data.target])


def labelled(parallel: Parallel, data: DataConfig) -> list[tuple[str, str]]:
    """Turn each pair into one sentence and its label.

    `language` takes the two sides in turn; `number`, that of the subject, takes the target side.
    """
    if data.labels == "language":
        languages = (data.source, data.target)
        return [(pair[line % 2], languages[line % 2]) for line, pair in enumerate(parallel.pairs)]
    # The captions are a function of split and count, so this generates the same ones again, and
    # those that were left out.
    generated = captions.generate(parallel.name, len(parallel.pairs) + parallel.seen)
    german = 0 if data.source == "de" else 1
    numbers = {caption.source: "plural" if caption.plural else "singular" for caption in generated}
    return [(pair[1], numbers[pair[german]]) for pair in parallel.pairs]
