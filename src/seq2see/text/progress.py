"""Progress of long work on text: reported to whoever shows it."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Progress = Callable[[str, float | None], None]  # what is done, and the share of it if known
Item = TypeVar("Item")

ITEMS_BETWEEN_REPORTS = 2000


def silent(text: str, share: float | None) -> None:
    """Show nothing."""


def watched(items: Sequence[Item], text: str, progress: Progress) -> Iterator[Item]:
    """Yield the items, and report from time to time the share that is done."""
    for index, item in enumerate(items):
        if index % ITEMS_BETWEEN_REPORTS == 0:
            progress(text, index / len(items))
        yield item
