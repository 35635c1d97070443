"""The characters of a subword vocabulary: the frequent ones are pieces, the others bytes."""

from collections import Counter
from collections.abc import Iterable, Sequence

SEEN = 3  # times; a rarer character is not learned from its own piece
MANY = 1000  # characters, as of Chinese, Japanese or Korean
COVERAGE = 0.9995  # of the text, by the characters that are pieces where there are many
LEAST_COVERAGE = 0.98  # SentencePiece takes no less
BYTES = 256
MARK = "▁"  # SentencePiece's space, which begins every text
RESERVED = {"\0", "\t", "\u2585", MARK}  # SentencePiece refuses to be told that these are pieces


def characters(texts: Iterable[str]) -> Counter[str]:
    """Count the characters of normalised texts as SentencePiece does."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
        counts[MARK] += 1
    counts[MARK] += counts.pop(" ", 0)
    return counts


def frequent(counts: Counter[str], size: int) -> list[str]:
    """Choose the characters that are pieces; they take at most half of the vocabulary."""
    seen = {char for char in counts if counts[char] >= SEEN} - RESERVED
    chosen = sorted(seen, key=lambda char: (-counts[char], char))
    if len(chosen) > MANY:
        most = (1 - COVERAGE) * counts.total()
        spelled = sum(count for count in counts.values() if count < SEEN)
        while spelled + counts[chosen[-1]] <= most:
            spelled += counts[chosen.pop()]
    return chosen[: max(0, size - BYTES) // 2]


def coverage(counts: Counter[str]) -> float:
    """The least coverage with which the mark of a space is a piece."""
    most = counts[MARK]
    before = sum(count for count in counts.values() if count >= most)
    return max(LEAST_COVERAGE, before / counts.total())


def digits(counts: Counter[str]) -> list[str]:
    """The decimal digits of other scripts, such as ٣, ३ and ３; SentencePiece splits 0 to 9."""
    return sorted(char for char in counts if char.isdecimal() and not char.isascii())


def note(counts: Counter[str], spelled: Sequence[str]) -> str:
    """Say which characters are spelled in bytes."""
    known = f"{len(counts) - 1:,} characters"
    if not spelled:
        return f"{known}, each with a piece; any other is spelled in bytes"
    most = max(counts[char] for char in spelled)
    share = sum(counts[char] for char in spelled) / counts.total()
    times = "once" if most == 1 else f"at most {most:,} times"
    rare = f"{len(spelled):,} of them, seen {times} ({share:.2%} of the text)"
    return f"{known}: {rare}, are spelled in bytes"
