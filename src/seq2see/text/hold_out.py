"""Held-out sets that share no sentence with the training set."""

import hashlib
from collections.abc import Sequence

from seq2see.text.lines import Pair
from seq2see.text.parallel import normalised


def default_size(pairs: int) -> int:
    """The default size of a held-out set: 1000, but at most 5 % of the pairs."""
    return min(1000, max(1, pairs // 20))


def hold_out(
    pairs: Sequence[Pair], count: int, parts: int, seen: Sequence[bool] = ()
) -> list[list[Pair]]:
    """Split off `parts` sets of up to `count` pairs that share no sentence with any other pair.

    The rest comes first, with all pairs that share a sentence with one marked in `seen`. If few
    others are left, the sets get equal shares of them.
    """
    # Pairs that share a side move as one group, in an order that depends on their text alone:
    # neither the order of the file nor a sentence with two translations can leak a test sentence
    # into training.
    groups: dict[int, list[int]] = {}
    for index, root in enumerate(_group_roots(pairs)):
        groups.setdefault(root, []).append(index)
    known = {index for index, flag in enumerate(seen) if flag}
    unseen = [group for group in groups.values() if known.isdisjoint(group)]
    # Small groups first: a large one would fill a test set with a few similar sentences.
    large = max(1, count // 100)
    count = min(count, sum(map(len, unseen)) // parts)
    keys = [hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest() for pair in pairs]

    def order(group: list[int]) -> tuple[int, bytes]:
        size = len(group) if len(group) > large else 0
        return size, min(keys[index] for index in group)

    sizes = [0] * parts
    split_of = [0] * len(pairs)
    for group in sorted(unseen, key=order):
        part = next((part for part in range(parts) if sizes[part] + len(group) <= count), None)
        if part is not None:
            sizes[part] += len(group)
            for index in group:
                split_of[index] = part + 1
    splits: list[list[Pair]] = [[] for _ in range(parts + 1)]
    for pair, split in zip(pairs, split_of, strict=True):
        splits[split].append(pair)
    return splits


def _group_roots(pairs: Sequence[Pair]) -> list[int]:
    """Find the first pair of each pair's group, by union–find over the texts of both sides."""
    parent = list(range(len(pairs)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for side in (0, 1):
        first: dict[str, int] = {}
        for index, pair in enumerate(pairs):
            one = root(index)
            other = root(first.setdefault(normalised(pair[side]), index))
            parent[max(one, other)] = min(one, other)
    return [root(index) for index in range(len(pairs))]
