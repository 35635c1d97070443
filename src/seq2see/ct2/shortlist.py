"""Shortlist for CTranslate2: the likely translations of each source piece.

Most of a small model's time goes into scoring pieces that cannot occur. IBM Model 1 (Brown et al.,
1993) learns from the training pairs which can; CTranslate2 reads them as its vocabulary map.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from seq2see.text.lines import Pair
from seq2see.text.parallel import Pairs
from seq2see.text.specials import END

ROUNDS = 5  # of expectation and maximisation
PAIRS = 200_000  # that are learned from, at most
CELLS = 20_000_000  # source × target pieces, summed over the pairs that are learned from
# Most frequent target pieces, always allowed; with 100, three times as many translations lost one.
COMMON = 800
SEPARATORS = set(" \t\n\r")

Ids = list[int]


def draw(pairs: Pairs) -> list[Pair]:
    """Draw training pairs in random order; the others are read, but not held in memory."""
    lines = random.Random("shortlist").sample(range(len(pairs)), min(len(pairs), PAIRS))
    wanted = set(lines)
    drawn = {line: pair for line, pair in enumerate(pairs) if line in wanted}
    return [drawn[line] for line in lines]


def vocabulary_map(
    pairs: Iterable[tuple[Ids, Ids]], sources: Sequence[str], targets: Sequence[str], most: int
) -> Iterator[str]:
    """Lines of CTranslate2's map from a source piece to its `most` likeliest target pieces.

    A piece may also be copied. The first line, with no source piece, lists the pieces that are
    always allowed. Names with white space cannot be written. Pairs are read up to CELLS.
    """
    read = _within_cells(pairs)
    common = Counter(id for _, target in read for id in target).most_common(COMMON)
    likely_ids = likely(read, len(targets), most)
    copies = set(targets)
    rows = {"": [targets[id] for id, _ in common]}
    for id, name in enumerate(sources):
        row = [targets[target] for target in likely_ids.get(id, [])]
        if name in copies and name not in row:
            row.append(name)
        rows[name] = row
    for name, row in rows.items():
        if row and not SEPARATORS & set(name):
            yield f"{name}\t{' '.join(piece for piece in row if not SEPARATORS & set(piece))}"


def _within_cells(pairs: Iterable[tuple[Ids, Ids]]) -> list[tuple[Ids, Ids]]:
    """The first pairs, without empty sides, whose tables have at most CELLS cells together."""
    read: list[tuple[Ids, Ids]] = []
    cells = 0
    for source, target in pairs:
        cells += len(source) * len(target)
        if cells > CELLS:
            break
        if source and target:
            read.append((source, target))
    return read


def likely(pairs: Sequence[tuple[Ids, Ids]], size: int, most: int) -> dict[int, Ids]:
    """The `most` likeliest target ids below `size` for each source id, and for </s>.

    Expectation: each target token is shared among the source tokens of its pair in proportion to
    p(t | s), uniform at first. Maximisation: p(t | s) is the share of t in all that s received.
    </s> is appended to every source, in place of IBM Model 1's empty word.
    """
    if not pairs:
        return {}
    arrays = [(np.array([*source, END]), np.array(target)) for source, target in pairs]
    lengths = np.array([len(target) for _, target in arrays])
    # Every cell (source token, target token) of a pair has its target token's place among all
    # target tokens, and its entry (source id, target id) of the table p.
    places = np.split(np.arange(lengths.sum()), lengths.cumsum()[:-1])
    cells = zip(places, arrays, strict=True)
    token = np.concatenate([np.tile(place, len(source)) for place, (source, _) in cells])
    keys = [(source[:, None] * size + target).ravel() for source, target in arrays]
    entries, entry = np.unique(np.concatenate(keys), return_inverse=True)
    source_ids, target_ids = entries // size, entries % size
    p = np.ones(len(entries))
    for _ in range(ROUNDS):
        share = p[entry] / np.bincount(token, p[entry])[token]
        received = np.bincount(entry, share)
        p = received / np.bincount(source_ids, received)[source_ids]
    order = np.lexsort((target_ids, -p, source_ids))
    ranked: dict[int, Ids] = {}
    for source_id, target_id in zip(
        source_ids[order].tolist(), target_ids[order].tolist(), strict=True
    ):
        row = ranked.setdefault(source_id, [])
        if len(row) < most:
            row.append(target_id)
    return ranked
