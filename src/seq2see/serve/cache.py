"""A bounded cache of translations, the least recently used leave first."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

LONGEST = 1000  # characters of a source that is kept


class Cache:
    """Translations by text, forced prefix and options."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, texts: tuple[str, str], options: Hashable) -> Any:
        """Return what was put, or None."""
        key = texts, options
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def put(self, texts: tuple[str, str], options: Hashable, value: Any) -> None:
        """Keep a value, in place of the one used longest ago if the cache is full."""
        if not self._size or sum(map(len, texts)) > LONGEST:
            return
        self._kept[texts, options] = value
        self._kept.move_to_end((texts, options))
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
