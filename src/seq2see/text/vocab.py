"""Words ↔ ids: the four special symbols, then every other word."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from seq2see.errors import InputError

SPECIALS = ("<s>", "</s>", "<blank>", "<unk>")
BEGIN, END, PAD, UNKNOWN = range(4)
MASK = (
    BEGIN  # what is only read never begins with <s>, which is free to stand for a hidden word there
)


class Vocab:
    """Words ↔ ids: the specials are 0..3, every other word follows."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [*SPECIALS, *words]
        # Without the specials: "</s>" in somebody's text is an unknown word, never the end of a sentence.
        self._ids = {word: id for id, word in enumerate(words, start=len(SPECIALS))}

    @classmethod
    def build(cls, counts: Counter[str], min_frequency: int, size: int | None) -> "Vocab":
        """Keep the words seen often enough, most frequent first, at most `size` entries with the specials."""
        # A saved vocabulary is one entry a line, so a word that holds a line end cannot be one.
        words = [
            word for word, count in counts.items() if count >= min_frequency and "\n" not in word
        ]
        words = sorted(set(words) - {*SPECIALS, ""}, key=lambda word: (-counts[word], word))
        return cls(words if size is None else words[: max(0, size - len(SPECIALS))])

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def ids(self, words: Iterable[str]) -> list[int]:
        """Look words up; one that is not here, or is spelt like a special, is UNKNOWN."""
        return [self._ids.get(word, UNKNOWN) for word in words]

    def words(self, ids: Iterable[int]) -> list[str]:
        """Name ids; one out of range is `<unk>`, so that no list of ids fails."""
        return [self._words[id if 0 <= id < len(self._words) else UNKNOWN] for id in ids]

    def save(self, path: Path) -> None:
        """Write UTF-8, one entry a line; only a line feed ends a line, since U+2028 and \\r can be words."""
        path.write_bytes("".join(f"{word}\n" for word in self._words).encode())

    @classmethod
    def load(cls, path: Path) -> "Vocab":
        """Read what `save` wrote."""
        try:
            words = path.read_bytes().decode("utf-8").split("\n")
        except OSError as error:
            raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: not UTF-8 at byte {error.start}; a vocabulary is UTF-8 text"
            ) from None
        if tuple(words[:4]) != SPECIALS or words.pop() != "":
            raise InputError(
                f"{path}: not a vocabulary: its first lines must be {' '.join(SPECIALS)}"
            )
        first: dict[str, int] = {}
        for line, word in enumerate(words, start=1):
            if not word or first.setdefault(word, line) != line:
                what = f"{word!r} stands at line {first[word]} too" if word else "an empty line"
                raise InputError(
                    f"{path}:{line}: {what}; every entry of a vocabulary is one word, once"
                )
        return cls(words[len(SPECIALS) :])
