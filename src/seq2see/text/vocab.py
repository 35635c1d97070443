"""Vocabulary: words ↔ ids, the four special symbols first."""

from collections import Counter
from collections.abc import Iterable, Sequence

from seq2see.text.specials import SPECIALS, UNKNOWN


class Vocab:
    """Mapping between words and ids; ids 0 to 3 are the special symbols."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [*SPECIALS, *words]
        # Without the specials: "</s>" in a text is an unknown word, not the end of a sentence.
        self._ids = {word: id for id, word in enumerate(words, start=len(SPECIALS))}

    @classmethod
    def build(cls, counts: Counter[str], min_frequency: int, size: int | None) -> "Vocab":
        """Keep the most frequent words; `size` limits the entries, special symbols included."""
        frequent = {word for word, count in counts.items() if count >= min_frequency}
        # A vocabulary file has one entry per line, so a word cannot contain a line feed.
        words = [word for word in frequent - {*SPECIALS, ""} if "\n" not in word]
        words.sort(key=lambda word: (-counts[word], word))
        return cls(words if size is None else words[: max(0, size - len(SPECIALS))])

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def ids(self, words: Iterable[str]) -> list[int]:
        """Look up words; a word out of vocabulary, or spelt like a special symbol, is UNKNOWN."""
        return [self._ids.get(word, UNKNOWN) for word in words]

    def words(self, ids: Iterable[int]) -> list[str]:
        """Look up ids; an id out of range is `<unk>`, so that no list of ids fails."""
        return [self._words[id if 0 <= id < len(self._words) else UNKNOWN] for id in ids]
