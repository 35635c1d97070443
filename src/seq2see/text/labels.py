"""Sentences with a label, made out of a parallel corpus: what `task = "classify"` learns."""

from seq2see.recipe.schema import DataConfig
from seq2see.text import captions
from seq2see.text.corpora import Parallel
from seq2see.text.vocab import Vocab


def vocabulary(data: DataConfig) -> Vocab:
    """The labels as words, which a classifier writes one of; their ids follow those of the special symbols."""
    return Vocab(["singular", "plural"] if data.labels == "number" else [data.source, data.target])


def labelled(parallel: Parallel, data: DataConfig) -> list[tuple[str, str]]:
    """Each pair as one sentence and its label: `language`, of either side in turn; `number`, of the target side."""
    if data.labels == "language":
        languages = (data.source, data.target)
        return [(pair[line % 2], languages[line % 2]) for line, pair in enumerate(parallel.pairs)]
    drawn = captions.generate(
        parallel.name, len(parallel.pairs)
    )  # the same again: the corpus is a function of these
    numbers = ["plural" if caption.plural else "singular" for caption in drawn]
    return [(target, number) for (_, target), number in zip(parallel.pairs, numbers, strict=True)]
