"""Held-out sets that share no sentence with the training set."""

import numpy as np
import numpy.typing as npt

from seq2see.text.history import Fingerprints, Flags

Places = npt.NDArray[np.int64]


def default_size(pairs: int) -> int:
    """The default size of a held-out set: 1000, but at most 5 % of the pairs."""
    return min(1000, max(1, pairs // 20))


def hold_out(
    prints: Fingerprints, order: Fingerprints, count: int, parts: int, seen: Flags
) -> npt.NDArray[np.uint8]:
    """Choose `parts` sets of up to `count` pairs that share no sentence with any other pair.

    Returns the number of each pair's set, from 1; 0 is the rest, with all pairs that share a
    sentence with one marked in `seen`. If few others are left, the sets get equal shares of them.
    """
    # Pairs that share a side move as one group, in an order that depends on their text alone:
    # neither the order of the file nor a sentence with two translations can leak a test sentence
    # into training.
    roots = _group_roots(prints)
    sizes = np.bincount(roots)[roots]
    # Small groups first: a large one would fill a test set with a few similar sentences.
    ranks = np.where(sizes > max(1, count // 100), sizes, 0)
    done = np.zeros(len(prints), dtype=np.bool_)  # by root
    done[roots[seen]] = True
    count = min(count, int(np.sum(~done[roots])) // parts)
    room = [count] * parts
    set_of = np.zeros(len(prints), dtype=np.uint8)  # by root
    for pair in np.lexsort((order, ranks)):
        if not any(room):
            break
        root = roots[pair]
        if done[root]:
            continue
        done[root] = True
        size = int(sizes[pair])
        part = next((part for part in range(parts) if size <= room[part]), None)
        if part is not None:
            room[part] -= size
            set_of[root] = part + 1
    return set_of[roots]


def _group_roots(prints: Fingerprints) -> Places:
    """Find the first pair of each pair's group: those linked by shared sentences of either side."""
    linked = np.flatnonzero(_repeated(prints[:, 0]) | _repeated(prints[:, 1]))  # mostly a few
    roots: Places = np.arange(len(prints))
    roots[linked] = linked[_linked_roots(prints[linked])]
    return roots


def _repeated(numbers: Fingerprints) -> Flags:
    """Whether each number occurs more than once."""
    order = np.argsort(numbers)
    ordered = numbers[order]
    same = ordered[1:] == ordered[:-1]
    flags = np.zeros(len(numbers), dtype=np.bool_)
    flags[order[1:][same]] = True
    flags[order[:-1][same]] = True
    return flags


def _linked_roots(prints: Fingerprints) -> Places:
    sides = [np.unique(column, return_inverse=True)[1] for column in prints.T]
    roots: Places = np.arange(len(prints))
    while True:
        before = roots
        for side in sides:
            least = np.full(len(prints), len(prints))
            np.minimum.at(least, side, roots)
            roots = least[side]
        if np.array_equal(roots, before):
            return roots
        # Whole groups follow the pairs that have found a smaller root, so that chains end soon.
        np.minimum.at(roots, before, roots.copy())
        roots = roots[roots]
