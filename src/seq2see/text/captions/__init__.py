"""German–English image captions out of a grammar, whose gold word alignments come out by construction."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from seq2see.text.captions.grammar import Author
from seq2see.text.captions.lexicon import HELD_OUT, STRUCTURES
from seq2see.text.captions.phrases import Links, Phrase, write_english, write_german

SPLITS = ("train", "val", "test", "test_structures")
# A pair belongs to the split its English hashes into: no seed and no count can make two splits overlap.
BUCKETS = dict(zip(SPLITS, (range(25, 100), range(0, 7), range(7, 15), range(15, 25)), strict=True))


@dataclass(frozen=True)
class Caption:
    """One sentence pair with its gold word alignment, its clause structure by name, and the number of its subject."""

    source: str
    target: str
    alignment: Links
    structure: str
    plural: bool = False  # the subject of the main clause, and so its verb


def words(text: str) -> list[str]:
    """The words and punctuation marks of a text, the units of the alignment."""
    return re.findall(r"\w+(?:'\w+)*|[^\w\s]", text)


def generate(split: str, count: int, seed: int = 1) -> list[Caption]:
    """The first `count` captions of a split for a seed, all distinct."""
    return [caption for _, caption in drawn(split, count, Author(f"{split} {seed}"))]


def drawn(split: str, count: int, author: Author) -> Iterator[tuple[Phrase, Caption]]:
    """What an author writes for a split, with the phrases of which each caption is made."""
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    if count < 0:
        raise ValueError(f"count {count} is negative: it has to be 0 or more")
    bucket, structures = BUCKETS[split], HELD_OUT if split == "test_structures" else STRUCTURES
    known: set[str] = set()
    while len(known) < count:
        structure = author.pick(structures)
        sentence = author.sentence(structure)
        target, starts = write_english(sentence)
        # A phrase said twice ("in the park … in the park") reads badly, and its units are not told apart.
        if len(starts) < len(sentence.english) or zlib.crc32(target.encode()) % 100 not in bucket:
            continue
        source, alignment = write_german(sentence, starts)
        if source not in known:
            known.add(source)
            yield sentence, Caption(source, target, alignment, structure.name, author.plural)
