"""Names that no training sentence has: a model cannot translate them, only keep them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from seq2see.text.documents.sentences import base

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
BETWEEN = re.compile(r"[ -]")  # the words of one name
MOST = 200_000  # words of a lexicon, the most frequent ones
COMMON = 8  # names of the training text that stand in for others, at most
FEWEST = 10  # pairs with such a name
IN_BOTH = 0.8  # share of the pairs with a name on either side that have it on both
LONGEST_NAME = 100  # characters; the search for the parts of a compound takes their square
LONGEST_ENDING = 2  # letters
ENDINGS = ("", "e", "en", "er", "es", "n", "s")  # of a German compound
SHORTEST = 4  # letters of a stem, or of a part of a compound
HEAD = 5  # letters of the last part of a compound whose first part is unknown
# German nouns have capitals, too; these words come before them and seldom before names.
DETERMINER = re.compile(
    r"(?:d(?:er|ie|as|en|em|es)|(?:[kmds]?ein|ihr|unser|eur|dies|jed|welch|viel|all|einig|manch)"
    r"(?:e[mnrs]?)?|keine?|im|am|ans|ins|zu[mr]|vom|beim|zwei|drei|vier|\d+)\s+",
    re.IGNORECASE,
)
LONGEST_DETERMINER = 20  # characters, with the spaces after it
NOUN = re.compile(r"(?:ung|heit|keit|schaft|ismus|tion|tät|nis|chen|lein)(?:e|en|s|se|sen)?$")


@dataclass(frozen=True)
class Lexicon:
    """The words of a training text, in lower case; an empty one knows no names.

    Stand-ins are words that the model copies.
    """

    words: frozenset[str] = frozenset()
    stand_ins: tuple[str, ...] = ()  # the surest first

    @classmethod
    def of(cls, texts: Iterable[str], stand_ins: Iterable[str] = ()) -> "Lexicon":
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(word.casefold() for word in WORD.findall(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(frozenset(ranked[:MOST]), tuple(stand_ins))

    @classmethod
    def read(cls, text: str) -> "Lexicon":
        """Read what `text` has written."""
        stand_ins, _, words = text.partition("\n\n")
        return cls(frozenset(words.split()), tuple(stand_ins.split()))

    def text(self) -> str:
        """Write the stand-ins, two empty lines, and the words in alphabetical order, one a line."""
        return "\n".join([*self.stand_ins, "", "", *sorted(self.words), ""])

    def names(self, text: str, language: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of each name in text[start:end] that has an unknown word."""
        name: tuple[int, int] | None = None
        for match in WORD.finditer(text, start, end) if self.words else ():
            if not self._is_name(match, language):
                continue
            if name is not None and BETWEEN.fullmatch(text, name[1], match.start()):
                name = name[0], match.end()
                continue
            if name is not None:
                yield name
            name = match.span()
        if name is not None:
            yield name

    def _is_name(self, match: re.Match[str], language: str) -> bool:
        word = match.group()
        if (
            not 2 <= len(word) <= LONGEST_NAME
            or not word[0].isupper()
            or word.casefold() in self.words
        ):
            return False
        german = base(language) == "de"
        if german and _is_noun(match):
            return False
        parts = [part.casefold() for part in re.split("[-'’]", word)]
        return not all(self._knows(part, german) for part in parts)

    def _knows(self, word: str, compounds: bool) -> bool:
        """Tell whether a word, another form of it or, of a compound, the parts are known."""
        if word in self.words or len(word) < SHORTEST:
            return True
        if any(self._is_form(word, size) for size in range(1, LONGEST_ENDING + 1)):
            return True
        places = range(SHORTEST, len(word) - SHORTEST + 1) if compounds else ()
        return any(self._is_compound(word[:place], word[place:]) for place in places)

    def _is_form(self, word: str, size: int) -> bool:
        return len(word) - size >= SHORTEST and word[:-size] in self.words

    def _is_compound(self, first: str, second: str) -> bool:
        """Tell whether two words are known, or the second one if it is long.

        The first may end with what joins it to the second, and that with an ending.
        """
        seconds = [second.removesuffix(ending) for ending in ENDINGS]
        if all(len(word) < SHORTEST or word not in self.words for word in seconds):
            return False
        firsts = {first, first.removesuffix("s"), first.removesuffix("n"), first + "e"}
        return len(second) >= HEAD or not firsts.isdisjoint(self.words)


def common_names(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Select the most frequent names that translations keep."""
    either: Counter[str] = Counter()
    both: Counter[str] = Counter()
    for pair in pairs:
        source, target = (
            {word for word in WORD.findall(text) if _may_be_name(word)} for text in pair
        )
        either.update(source | target)
        both.update(source & target)
    kept = [word for word, count in both.items() if count >= max(FEWEST, IN_BOTH * either[word])]
    return tuple(sorted(kept, key=lambda word: (-both[word], word))[:COMMON])


def _may_be_name(word: str) -> bool:
    return len(word) > 2 and word[0].isupper() and word[1:].islower()


def _is_noun(match: re.Match[str]) -> bool:
    """Tell whether the context or the end of a German word says that it is a common noun."""
    text, start = match.string, match.start()
    word_before = text.rfind(" ", 0, max(0, start - 1)) + 1
    near = max(word_before, start - LONGEST_DETERMINER)
    determined = DETERMINER.fullmatch(text, near, start) is not None
    return determined or NOUN.search(match.group()[2:]) is not None


EMPTY = Lexicon()
