"""Texts of examples → ids, here or in a worker process."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.text import tokenizers
from seq2see.text.lines import Pair
from seq2see.text.tokenizers import Tokenizer, Tokenizers
from seq2see.text.vocab import Vocab

Ids = list[int]
IdPair = tuple[Ids, Ids]


@dataclass(frozen=True)
class Encoder:
    """Encoding of both texts of an example."""

    tokenizers: Tokenizers
    reads: str = "source"  # the tokenizer of the first text: that of the source or the target
    labels: Sequence[str] = ()  # of which the second text is one, if there are any

    @property
    def reader(self) -> Tokenizer:
        return self.tokenizers.source if self.reads == "source" else self.tokenizers.target

    def encode(self, pairs: Iterable[Pair]) -> Iterator[IdPair]:
        read = self.reader
        labels = Vocab(self.labels)
        for source, target in pairs:
            ids = labels.ids([target]) if self.labels else self.tokenizers.target.encode(target)
            yield read.encode(source), ids

    @property
    def largest(self) -> int:
        """The largest vocabulary of the two sides."""
        return max(len(self.tokenizers.source), len(self.tokenizers.target), 4 + len(self.labels))

    def settings(self) -> dict[str, Any]:
        """The settings that, with the folder of the tokenizers, make this encoder again."""
        return {"reads": self.reads, "labels": list(self.labels)}

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> "Encoder":
        return cls(tokenizers.load(folder), **settings)
