"""Progress reports of long work on text."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Progress = Callable[[str, float | None], None]  # a stage, and the share done if known
Item = TypeVar("Item")

ITEMS_BETWEEN_REPORTS = 2000


def silent(text: str, share: float | None) -> None:
    """Show nothing."""


def watched(items: Sequence[Item], text: str, progress: Progress) -> Iterator[Item]:
    """Yield the items, and regularly report the share that is done."""
    for index, item in enumerate(items):
        if index % ITEMS_BETWEEN_REPORTS == 0:
            progress(text, index / len(items))
        yield item
