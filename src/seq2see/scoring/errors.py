"""What goes wrong in translations, counted: words left, lost, doubled or made up, by comparing with the references.

Words are those that lowercased BLEU counts: lowercased, cut by sacreBLEU's 13a, marks included; `<unk>` is one word.
"""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from seq2see.text.function_words import FUNCTION_WORDS
from seq2see.text.tokenizers import Tokenizer
from seq2see.text.vocab import SPECIALS, UNKNOWN

UNKNOWN_WORD = SPECIALS[UNKNOWN]  # as a tokenizer's `decode` shows it, alone or inside a word
MOST = 10  # entries of a list, and words of an example
SHOWN = 4  # examples to a reader
LONGEST_GRAM = 4  # words, as in BLEU
LONGEST_ALIGNED = 10_000  # words of a sentence; the rest of an endless one is not aligned
SHORT, LONG = 0.7, 1.3  # output words / reference words
MARKS = re.compile(r"^\W+|\W+$")  # 13a leaves „quotes“ at their word
Words = list[str]
Counts = list[tuple[str, int]]
_13a: Callable[[str], str] = Tokenizer13a()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Finding:
    """One kind of error: how often, in which share of the sentences, what most often, and where."""

    count: int
    share: float
    frequent: Counts
    examples: Counts  # each with its line, first lines first


@dataclass(frozen=True)
class Unknown(Finding):
    """Source words that the vocabulary does not hold: copied into the output, or lost."""

    copied: int
    lost: int
    in_outputs: int  # `<unk>` in the outputs


@dataclass(frozen=True)
class Lengths:
    """Output words / reference words."""

    ratio: float  # of all words
    median: float  # of the sentences' ratios
    short: float  # share of the sentences below 0.7
    long: float  # share of the sentences above 1.3


@dataclass(frozen=True)
class Analysis:
    """The errors of a set of translations, by kind."""

    sentences: int
    lengths: Lengths
    untranslated: Finding
    repeated: Finding
    dropped: Finding
    unknown: Unknown
    extra_words: Counts  # beyond what the references hold, clipped as in BLEU
    missing_words: Counts
    extra_phrases: Counts  # of two to four words, with content
    missing_phrases: Counts

    def lines(self) -> list[str]:
        """The findings for a reader."""
        lengths, unknown = self.lengths, self.unknown
        return [
            f"Errors in {self.sentences} sentences, by the words that lowercased BLEU counts ({UNKNOWN_WORD} as one)",
            f"length: {lengths.ratio:.3f} output words per reference word · median sentence {lengths.median:.2f} · "
            f"{lengths.short:.1%} below {SHORT} · {lengths.long:.1%} above {LONG}",
            f"untranslated, or alike in both languages: {_tally(self.untranslated, 'words')} stand in source and "
            "output but in no reference",
            *_row(self.untranslated.frequent),
            f"repeated: {_tally(self.repeated, 'words and phrases')} come again, but not in the reference",
            *_row(self.repeated.frequent),
            *_row(self.repeated.examples[:SHOWN], "{} (line {})"),
            f"dropped: {_tally(self.dropped, 'phrases')} of the reference have nothing in their place",
            *_row(self.dropped.examples[:SHOWN], "{} (line {})"),
            f"unknown: {_tally(unknown, 'source words')} are not in the vocabulary: {unknown.copied} copied, "
            f"{unknown.lost} lost · {unknown.in_outputs} {UNKNOWN_WORD} in the outputs",
            *_row(unknown.frequent),
            "more often (+) and less often (−) than in the reference, summed over the sentences",
            *_row(self.extra_words, sign="+ "),
            *_row(self.missing_words, sign="− "),
            *_row(self.extra_phrases, sign="+ "),
            *_row(self.missing_phrases, sign="− "),
        ]


def _tally(found: Finding, what: str) -> str:
    return f"{found.count} {what} in {found.share:.1%} of the sentences"


def _row(entries: Counts, form: str = "{} {}", sign: str = "") -> list[str]:
    return [f"  {sign}{' · '.join(form.format(*entry) for entry in entries)}"] if entries else []


def analyse(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    tokenizer: Tokenizer,
    language: str = "",
) -> Analysis:
    """Compare outputs with their references; `tokenizer` is the source's, `language` the target's code."""
    if not len(sources) == len(outputs) == len(references) or not outputs:
        sizes = f"{len(sources)} sources, {len(outputs)} outputs and {len(references)} references"
        raise ValueError(f"{sizes}; they must pair up")
    read, written, wanted = (list(map(words, texts)) for texts in (sources, outputs, references))
    ordinary = {word for reference in wanted for word in reference}
    light = FUNCTION_WORDS.get(
        language, frozenset()
    )  # in a language not listed every word counts as content
    pairs = list(zip(written, wanted, strict=True))
    extra, missing = excess(pairs), excess((reference, output) for output, reference in pairs)
    return Analysis(
        sentences=len(outputs),
        lengths=_lengths(pairs),
        untranslated=_finding(
            untranslated(s, o, ordinary) for s, o in zip(read, written, strict=True)
        ),
        repeated=_finding(repeated(output, reference, light) for output, reference in pairs),
        dropped=_finding(dropped(output, reference, light) for output, reference in pairs),
        unknown=_unknown(sources, outputs, tokenizer),
        extra_words=_ranked(extra[0])[:MOST],
        missing_words=_ranked(missing[0])[:MOST],
        extra_phrases=_phrases(extra[1:], light),
        missing_phrases=_phrases(missing[1:], light),
    )


def words(text: str, lowercase: bool = True) -> Words:
    """The words of a text as BLEU counts them, but for `<unk>`, which 13a would cut into three."""
    first, *rest = (
        _13a(part.lower() if lowercase else part).split() for part in text.split(UNKNOWN_WORD)
    )
    return first + [word for part in rest for word in (UNKNOWN_WORD, *part)]


def _speaks(word: str) -> bool:
    """A word, not a punctuation mark."""
    return any(map(str.isalnum, word))


def untranslated(source: Words, output: Words, ordinary: Set[str]) -> list[str]:
    """Source words, of letters, that stand in the output, unless they are ordinary in the target language."""
    both = (Counter(source) & Counter(output)).elements()
    return [
        word
        for word in both
        if len(word) > 1 and word.replace("-", "").isalpha() and word not in ordinary
    ]


def repeated(output: Words, reference: Words, light: Set[str]) -> list[str]:
    """Phrases of up to four words that follow themselves, and of two or more that come again later; marks aside.

    What the reference doubles is allowed as often; what comes again later must hold a word of content (not a `light`
    one) that the reference has less often.
    """
    output, reference = (list(filter(_speaks, side)) for side in (output, reference))
    allowed = Counter(tuple(reference[start:end]) for start, end in _doubled(reference))
    found, covered = [], set[int]()
    for start, end in _doubled(output):
        covered.update(range(start, end))
        allowed[phrase := tuple(output[start:end])] -= 1
        if allowed[phrase] < 0:
            found.append(phrase)
    overused = (Counter(output) - Counter(reference)).keys() - light
    first: dict[tuple[str, ...], int] = {}
    place = 0
    while place < len(output) - 1:
        earlier = first.setdefault(tuple(output[place : place + 2]), place)
        end = place
        while (
            end < len(output)
            and earlier < place
            and end not in covered
            and output[earlier] == output[end]
        ):
            earlier, end = earlier + 1, end + 1
        phrase = tuple(output[place:end])
        if again := len(phrase) > 1 and not overused.isdisjoint(phrase):
            found.append(phrase)
        place = max(place + 1, end if again else end - 1)
    return list(map(_shown, found))


def _doubled(words: Words) -> Iterator[tuple[int, int]]:
    """Start and end of each phrase that stands right after itself; the shortest, so that a a a a is three times a."""
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


def _shown(phrase: Sequence[str]) -> str:
    return " ".join(phrase[:MOST]) + " …" * (len(phrase) > MOST)


def dropped(output: Words, reference: Words, light: Set[str]) -> list[str]:
    """Runs of two reference words or more with nothing in their place in the output; marks aside.

    A word of content (not a `light` one) among them must be missing: a phrase that has moved is not dropped.
    """
    output, reference = (
        list(filter(_speaks, side))[:LONGEST_ALIGNED] for side in (output, reference)
    )
    missing = (Counter(reference) - Counter(output)).keys() - light
    matches = [(-1, -1), *aligned(reference, output), (len(reference), len(output))]
    runs = [reference[i + 1 : k] for (i, j), (k, m) in pairwise(matches) if m == j + 1]
    return [_shown(run) for run in runs if len(run) > 1 and not missing.isdisjoint(run)]


def aligned(one: Words, other: Words) -> list[tuple[int, int]]:
    """A longest common subsequence, as places in both.

    Bit-parallel (Hyyrö 2004), a 64th of |one| · |other| steps: bit i of row j is 0 where one[: i + 1] has a word more
    in common with other[:j] than one[:i] has.
    """
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(one):
        places[word] |= 1 << place
    ones = (1 << len(one)) - 1
    rows = [ones]
    for word in other:
        met = rows[-1] & places[word]
        rows.append(((rows[-1] + met) | (rows[-1] - met)) & ones)
    matches, i, j = [], len(one) - 1, len(other)
    while i >= 0 and j > 0:
        if rows[j] >> i & 1:
            i -= 1
        elif rows[j - 1] >> i & 1:
            matches.append((i, j - 1))
            i, j = i - 1, j - 1
        else:
            j -= 1
    return matches[::-1]


def excess(pairs: Iterable[tuple[Words, Words]]) -> list[Counter[str]]:
    """For n = 1 … 4 the n-grams that the first of each pair has beyond the second, clipped as in BLEU."""
    found: list[Counter[str]] = [Counter() for _ in range(LONGEST_GRAM)]
    for one, other in pairs:
        for n, counts in enumerate(found, start=1):
            over = Counter(_grams(one, n)) - Counter(_grams(other, n))
            counts.update({" ".join(gram): count for gram, count in over.items()})
    return found


def _grams(words: Words, n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(n)), strict=False)


def _ranked(counts: Counter[str]) -> Counts:
    """Most frequent first; of equally frequent ones the longest, then by the alphabet."""
    return sorted(counts.items(), key=lambda item: (-item[1], -len(item[0].split()), item[0]))


def _phrases(found: Iterable[Counter[str]], light: Set[str]) -> Counts:
    """The most frequent with a word of content; of those with the same content the most frequent alone."""
    chosen: dict[frozenset[str], tuple[str, int]] = {}
    for text, count in _ranked(sum(found, Counter())):
        if content := frozenset(
            word for word in text.split() if _speaks(word) and word not in light
        ):
            chosen.setdefault(content, (text, count))
    return list(chosen.values())[:MOST]


def _finding(by_line: Iterable[list[str]]) -> Finding:
    found = list(by_line)
    placed = [(text, line) for line, texts in enumerate(found, start=1) for text in texts]
    frequent = _ranked(Counter(text for text, _ in placed))[:MOST]
    return Finding(
        len(placed),
        sum(map(bool, found)) / len(found),
        frequent,
        list(dict.fromkeys(placed))[:MOST],
    )


def _lengths(pairs: Iterable[tuple[Words, Words]]) -> Lengths:
    sizes = [(len(output), len(reference)) for output, reference in pairs]
    ratios = [_ratio(*size) for size in sizes]
    short = sum(ratio < SHORT for ratio in ratios) / len(ratios)
    long = sum(ratio > LONG for ratio in ratios) / len(ratios)
    return Lengths(
        _ratio(*map(sum, zip(*sizes, strict=True))), statistics.median(ratios), short, long
    )


def _ratio(output: int, reference: int) -> float:
    return (
        output / reference if reference else 1.0 + output
    )  # nothing for nothing is as long as it should be


def unknown_words(source: str, tokenizer: Tokenizer) -> Words:
    """The words, as they are spelt, of which the tokenizer makes an <unk>, whole or in part."""
    if UNKNOWN not in tokenizer.encode(source):
        return []
    # No token crosses a space, so a chunk is cut as in its sentence; a mark that clings to a word may be the unknown.
    chunks = [chunk for chunk in source.split() if UNKNOWN in tokenizer.encode(chunk)]
    parts = [MARKS.sub("", word) for chunk in chunks for word in words(chunk, lowercase=False)]
    return [word for word in parts if _speaks(word) and UNKNOWN in tokenizer.encode(word)]


def _unknown(sources: Sequence[str], outputs: Sequence[str], tokenizer: Tokenizer) -> Unknown:
    by_line = [unknown_words(source, tokenizer) for source in sources]
    pairs = zip(by_line, outputs, strict=True)
    copied = sum(
        (Counter(map(str.lower, found)) & Counter(words(output))).total() for found, output in pairs
    )
    shown = sum(output.count(UNKNOWN_WORD) for output in outputs)
    lost = sum(map(len, by_line)) - copied
    return Unknown(**vars(_finding(by_line)), copied=copied, lost=lost, in_outputs=shown)
