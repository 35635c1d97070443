"""Batches of sentences that CTranslate2 computes alike, so that none changes another's result."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

LONG = 64  # tokens from which a sentence is batched with those of equal length alone


@dataclass(frozen=True)
class Setting:
    """Distribution of the work over the cores."""

    workers: int  # in parallel, each on its own batch
    threads: int  # per worker
    batch_tokens: int  # source tokens × beam


@dataclass(frozen=True, order=True)
class Shape:
    """A line as batches are formed of it."""

    kind: tuple[int, int]  # lines share a batch only if these are equal
    tokens: int  # of its source or its target, the longer one


def padded_alike(tokens: int) -> int:
    """Number the class of a length; padding within a class changed no bit in any measurement.

    Results change between 15 and 16 tokens, </s> included, and at lengths that depend on
    the machine from 80 on. Powers of two divide the short lengths; a long one is a class by itself.
    """
    return (tokens + 1).bit_length() if tokens + 1 < LONG else tokens + 1


def batches_of(shapes: Sequence[Shape], beam: int, setting: Setting) -> Iterator[list[int]]:
    """Group lines of equal kind, longest first, with work for every worker."""
    order = sorted(range(len(shapes)), key=lambda i: shapes[i], reverse=True)
    share = math.ceil(len(order) / setting.workers)
    for _, group in groupby(order, key=lambda i: shapes[i].kind):
        lines = list(group)
        while lines:
            longest = shapes[lines[0]].tokens
            size = max(1, min(share, setting.batch_tokens // ((longest + 1) * beam)))
            yield lines[:size]
            lines = lines[size:]
