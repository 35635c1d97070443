"""Words and phrases of one sentence that were left untranslated, repeated, dropped or added.

Words are those that lowercased BLEU counts: lowercased and tokenised by sacreBLEU, punctuation
included; `<unk>` is one word.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise

from seq2see.scoring.tokenization import DEFAULT, splitter
from seq2see.text.specials import SPECIALS, UNKNOWN

UNKNOWN_WORD = SPECIALS[UNKNOWN]  # as a tokenizer's `decode` writes it, alone or inside a word
LONGEST_GRAM = 4  # words, as in BLEU
LONGEST_SHOWN = 10  # words of a phrase that are shown
LONGEST_ALIGNED = 10_000  # words of a sentence that are aligned; bounds the time for endless ones
Words = list[str]


def words(text: str, tokenize: str = DEFAULT, lowercase: bool = True) -> Words:
    """Tokenise a text as BLEU does, except that it would split `<unk>` into three."""
    split = splitter(tokenize)
    first, *rest = (split(part.lower() if lowercase else part) for part in text.split(UNKNOWN_WORD))
    return first + [word for part in rest for word in (UNKNOWN_WORD, *part)]


def is_word(token: str) -> bool:
    """Distinguish words from punctuation."""
    return any(map(str.isalnum, token))


def untranslated(source: Words, output: Words, ordinary: Set[str]) -> Words:
    """Alphabetic source words that occur in the output and are not ordinary target words."""
    common = (Counter(source) & Counter(output)).elements()
    return [
        word
        for word in common
        if len(word) > 1 and word.replace("-", "").isalpha() and word not in ordinary
    ]


def repeated(output: Words, reference: Words, light: Set[str]) -> list[str]:
    """Phrases of up to four words doubled in place, and longer than one word recurring later.

    Punctuation is ignored. A doubling is allowed as often as the reference has it; a phrase that
    recurs later counts only with a content word (not in `light`) that the reference has less often.
    """
    output = list(filter(is_word, output))
    reference = list(filter(is_word, reference))
    allowed = Counter(tuple(reference[start:end]) for start, end in _doubled(reference))
    phrases: list[tuple[str, ...]] = []
    covered = set[int]()
    for start, end in _doubled(output):
        covered.update(range(start, end))
        phrase = tuple(output[start:end])
        allowed[phrase] -= 1
        if allowed[phrase] < 0:
            phrases.append(phrase)
    overused = (Counter(output) - Counter(reference)).keys() - light
    return [_shown(phrase) for phrase in (*phrases, *_recurring(output, covered, overused))]


def _doubled(words: Words) -> Iterator[tuple[int, int]]:
    """Start and end of each phrase that directly follows itself: a a a a repeats a, not a a."""
    place = 0
    while place < len(words):
        for size in range(1, LONGEST_GRAM + 1):
            middle = place + size
            if words[place:middle] == words[middle : middle + size]:
                yield middle, middle + size
                place = middle
                break
        else:
            place += 1


def _recurring(words: Words, covered: Set[int], overused: Set[str]) -> Iterator[tuple[str, ...]]:
    """Longest phrases of two words or more that occurred earlier and hold an overused word."""
    first: dict[tuple[str, ...], int] = {}  # bigram → its first place
    place = 0
    while place < len(words) - 1:
        earlier = first.setdefault(tuple(words[place : place + 2]), place)
        end = place
        while (
            end < len(words)
            and earlier < place
            and end not in covered
            and words[earlier] == words[end]
        ):
            earlier += 1
            end += 1
        phrase = tuple(words[place:end])
        recurs = len(phrase) > 1 and not overused.isdisjoint(phrase)
        if recurs:
            yield phrase
        place = max(place + 1, end if recurs else end - 1)


def _shown(phrase: Sequence[str]) -> str:
    return " ".join(phrase[:LONGEST_SHOWN]) + " …" * (len(phrase) > LONGEST_SHOWN)


def dropped(output: Words, reference: Words, light: Set[str]) -> list[str]:
    """Runs of two or more reference words with no counterpart in the output.

    Punctuation is ignored. A run must lack a content word (not in `light`): a phrase that has
    moved is not dropped.
    """
    output = list(filter(is_word, output))[:LONGEST_ALIGNED]
    reference = list(filter(is_word, reference))[:LONGEST_ALIGNED]
    missing = (Counter(reference) - Counter(output)).keys() - light
    matches = [(-1, -1), *aligned(reference, output), (len(reference), len(output))]
    runs = [
        reference[start + 1 : end]
        for (start, before), (end, after) in pairwise(matches)
        if after == before + 1
    ]
    return [_shown(run) for run in runs if len(run) > 1 and not missing.isdisjoint(run)]


def aligned(one: Words, other: Words) -> list[tuple[int, int]]:
    """Longest common subsequence, as pairs of places.

    Bit-parallel (Hyyrö, 2004), in |one| · |other| / 64 steps: bit i of row j is 0 where
    LCS(one[: i + 1], other[:j]) is longer than LCS(one[:i], other[:j]).
    """
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(one):
        places[word] |= 1 << place
    ones = (1 << len(one)) - 1
    rows = [ones]
    for word in other:
        met = rows[-1] & places[word]
        rows.append(((rows[-1] + met) | (rows[-1] - met)) & ones)
    matches = []
    i = len(one) - 1
    j = len(other)
    while i >= 0 and j > 0:
        if rows[j] >> i & 1:
            i -= 1
        elif rows[j - 1] >> i & 1:
            matches.append((i, j - 1))
            i -= 1
            j -= 1
        else:
            j -= 1
    return matches[::-1]


def excess(pairs: Iterable[tuple[Words, Words]]) -> list[Counter[str]]:
    """n-grams, n = 1 … 4, that the first of a pair has beyond the second, clipped as in BLEU."""
    totals: list[Counter[str]] = [Counter() for _ in range(LONGEST_GRAM)]
    for one, other in pairs:
        for n, counts in enumerate(totals, start=1):
            surplus = Counter(_grams(one, n)) - Counter(_grams(other, n))
            counts.update({" ".join(gram): count for gram, count in surplus.items()})
    return totals


def _grams(words: Words, n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(n)), strict=False)
