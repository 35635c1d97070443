"""A shortlist for CTranslate2: what a source piece is likely to become, so that not every piece must be weighed.

Most of a small model's time goes into the scores of pieces that cannot come. Which can, is learned from the training
pairs by IBM Model 1 (Brown et al., 1993), and CTranslate2 reads it as its vocabulary map.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from seq2see.text.vocab import END

ROUNDS = 5  # of expectation and maximisation
CELLS = (
    20_000_000  # learned from: each pair is a table of its source pieces times its target pieces
)
COMMON = 800  # of the most frequent target pieces may always come; 100 lost three times as many translations a piece
SEPARATORS = set(" \t\n\r")

Ids = list[int]


def vocabulary_map(
    pairs: Iterable[tuple[Ids, Ids]], sources: Sequence[str], targets: Sequence[str], most: int
) -> Iterator[str]:
    """The lines of CTranslate2's map from a source piece to the `most` likeliest target pieces, given all their names.

    A piece may also be copied. The first line, of no source piece, is for what may always come. A name with a space in
    it cannot be written. So many of the pairs count as are within CELLS.
    """
    known, cells = list[tuple[Ids, Ids]](), 0
    for source, target in pairs:
        cells += len(source) * len(target)
        if cells > CELLS:
            break
        known += [(source, target)] if source and target else []
    common = Counter(id for _, target in known for id in target).most_common(COMMON)
    found, copies = likely(known, len(targets), most), set(targets)
    rows = {"": [targets[id] for id, _ in common]}
    for id, name in enumerate(sources):
        row = [targets[each] for each in found.get(id, [])]
        rows[name] = [*row, name] if name in copies and name not in row else row
    for name, row in rows.items():
        if row and not SEPARATORS & set(name):
            yield f"{name}\t{' '.join(each for each in row if not SEPARATORS & set(each))}"


def likely(pairs: Sequence[tuple[Ids, Ids]], size: int, most: int) -> dict[int, Ids]:
    """The `most` target ids below `size` that each source id, or the </s> behind them, most likely becomes.

    p(t | s) starts even. Each target piece is shared out among the source pieces of its pair by p, and what s got of t,
    of all that s got, is the next p.
    """
    if not pairs:
        return {}
    both = [(np.array([*source, END]), np.array(target)) for source, target in pairs]
    lengths = np.array([len(target) for _, target in both])
    places = np.split(
        np.arange(lengths.sum()), lengths.cumsum()[:-1]
    )  # of each pair's target pieces among all
    piece = np.concatenate(
        [np.tile(some, len(source)) for some, (source, _) in zip(places, both, strict=True)]
    )
    link = np.concatenate([(source[:, None] * size + target).ravel() for source, target in both])
    entries, link = np.unique(link, return_inverse=True)
    source, target = entries // size, entries % size
    p = np.ones(len(entries))
    for _ in range(ROUNDS):
        share = p[link] / np.bincount(piece, p[link])[piece]
        got = np.bincount(link, share)
        p = got / np.bincount(source, got)[source]
    order = np.lexsort((target, -p, source))
    found: dict[int, Ids] = {}
    for s, t in zip(source[order].tolist(), target[order].tolist(), strict=True):
        if len(row := found.setdefault(s, [])) < most:
            row.append(t)
    return found
