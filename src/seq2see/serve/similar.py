"""Choice of the sentences that share a batch: those of similar length need little padding."""

from collections.abc import Callable, Sequence


def around(
    lengths: Sequence[int], first: int, most: int, largest: Callable[[int], int]
) -> tuple[int, int]:
    """Return the bounds of a run in ascending lengths that holds `first` and those next to it.

    It has at most `most` members, and no more than `largest` allows for its longest.
    """
    start, end = first, first + 1
    while end - start < most and (start > 0 or end < len(lengths)):
        below = lengths[first] - lengths[start - 1] if start > 0 else None
        above = lengths[end] - lengths[first] if end < len(lengths) else None
        upwards = below is None or (above is not None and above <= below)
        longest = lengths[end] if upwards else lengths[end - 1]
        if end - start >= largest(longest):
            break
        if upwards:
            end += 1
        else:
            start -= 1
    return start, end
