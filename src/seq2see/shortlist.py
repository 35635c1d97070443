"""A shortlist for CTranslate2: what a source piece is likely to become, so that not every piece must be weighed.

Most of a small model's time goes into the scores of pieces that cannot come. Which can, is learned from the training
pairs by IBM Model 1 (Brown et al., 1993), and CTranslate2 reads it as its vocabulary map.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from seq2see.text.vocab import END

ROUNDS = 5  # of expectation and maximisation
PAIRS = 50_000  # learned from; each is a table of its source pieces times its target pieces
COMMON = 100  # of the most frequent target pieces may always come
SEPARATORS = set(" \t\n\r")

Ids = list[int]


def vocabulary_map(
    pairs: Sequence[tuple[Ids, Ids]], sources: Sequence[str], targets: Sequence[str], most: int
) -> Iterator[str]:
    """The lines of CTranslate2's map from a source piece to the `most` likeliest target pieces, given all their names.

    The first, of no source piece, is for those that may always come. A name with a space in it cannot be written.
    """
    known = [(source, target) for source, target in pairs[:PAIRS] if source and target]
    common = Counter(id for _, target in known for id in target).most_common(COMMON)
    rows = {"": [id for id, _ in common]}
    rows |= {sources[id]: found for id, found in likely(known, len(targets), most).items()}
    for name, ids in rows.items():
        if not SEPARATORS & set(name):
            yield f"{name}\t{' '.join(targets[id] for id in ids if not SEPARATORS & set(targets[id]))}"


def likely(pairs: Sequence[tuple[Ids, Ids]], size: int, most: int) -> dict[int, Ids]:
    """The `most` target ids below `size` that each source id, or the </s> behind them, most likely becomes.

    p(t | s) starts even. Each target piece is shared out among the source pieces of its pair by p, and what s got of t,
    of all that s got, is the next p.
    """
    if not pairs:
        return {}
    both = [(np.array([*source, END]), np.array(target)) for source, target in pairs]
    lengths = np.array([len(target) for _, target in both])
    places = np.split(np.arange(lengths.sum()), lengths.cumsum()[:-1])  # of each pair's target pieces among all
    piece = np.concatenate([np.tile(some, len(source)) for some, (source, _) in zip(places, both, strict=True)])
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
