"""Progress reports of long work on text."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

Progress = Callable[[str, float | None], None]  # a stage, and the share done if known
Item = TypeVar("Item")
Items = TypeVar("Items", covariant=True)

ITEMS_BETWEEN_REPORTS = 2000


def silent(text: str, share: float | None) -> None:
    """Show nothing."""


class Sized(Protocol[Items]):
    """Items whose number is known."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Items]: ...


def watched(items: Sized[Item], text: str, progress: Progress) -> Iterator[Item]:
    """Yield the items, and regularly report the share that is done."""
    for index, item in enumerate(items):
        if index % ITEMS_BETWEEN_REPORTS == 0:
            progress(text, index / len(items))
        yield item
