"""Error analysis of translations against their references, by kind of error.

Kinds: untranslated, repeated, dropped and unknown words, lengths, and words or phrases that are
more or less frequent than in the references. Words are those of `seq2see.scoring.phrases`.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from seq2see.scoring.phrases import (
    UNKNOWN_WORD,
    Words,
    dropped,
    excess,
    is_word,
    repeated,
    untranslated,
    words,
)
from seq2see.scoring.tokenization import tokenization
from seq2see.text.function_words import FUNCTION_WORDS
from seq2see.text.specials import UNKNOWN
from seq2see.text.tokenizers import Tokenizer

LISTED = 10  # entries of a list
SHOWN = 4  # examples in a report
SHORT, LONG = 0.7, 1.3  # output words / reference words
MARKS = re.compile(r"^\W+|\W+$")  # 13a leaves „quotes“ attached to their word
Counts = list[tuple[str, int]]


@dataclass(frozen=True)
class Finding:
    """One kind of error: its count, the most frequent cases, and examples."""

    count: int
    share: float  # of the sentences
    frequent: Counts
    examples: Counts  # with line numbers, first lines first


@dataclass(frozen=True)
class Unknown(Finding):
    """Source words outside the vocabulary: copied to the output, or lost."""

    copied: int
    lost: int
    in_outputs: int  # occurrences of `<unk>` in the outputs


@dataclass(frozen=True)
class Lengths:
    """Ratios of output words to reference words."""

    ratio: float  # over all words
    median: float  # over the sentences
    short: float  # share of the sentences below 0.7
    long: float  # share of the sentences above 1.3


@dataclass(frozen=True)
class Analysis:
    """Errors of a set of translations, by kind."""

    sentences: int
    lengths: Lengths
    untranslated: Finding
    repeated: Finding
    dropped: Finding
    unknown: Unknown
    extra_words: Counts  # beyond those of the references, clipped as in BLEU
    missing_words: Counts
    extra_phrases: Counts  # of two to four words, with a content word
    missing_phrases: Counts

    def report(self) -> list[str]:
        """Show the counts, frequent cases and examples of each kind."""
        lengths = self.lengths
        unknown = self.unknown
        return [
            f"Errors in {self.sentences} sentences, by the words that lowercased BLEU counts "
            f"({UNKNOWN_WORD} as one)",
            f"length: {lengths.ratio:.3f} output words per reference word · "
            f"median sentence {lengths.median:.2f} · "
            f"{lengths.short:.1%} below {SHORT} · {lengths.long:.1%} above {LONG}",
            f"untranslated, or the same in both languages: {_tally(self.untranslated, 'words')} "
            "occur in source and output but in no reference",
            *_row(self.untranslated.frequent),
            f"repeated: {_tally(self.repeated, 'words and phrases')} recur, "
            "but not in the reference",
            *_row(self.repeated.frequent),
            *_row(self.repeated.examples[:SHOWN], "{} (line {})"),
            f"dropped: {_tally(self.dropped, 'phrases')} of the reference have no counterpart",
            *_row(self.dropped.examples[:SHOWN], "{} (line {})"),
            f"unknown: {_tally(unknown, 'source words')} are not in the vocabulary: "
            f"{unknown.copied} copied, {unknown.lost} lost · "
            f"{unknown.in_outputs} {UNKNOWN_WORD} in the outputs",
            *_row(unknown.frequent),
            "more (+) and less (−) frequent than in the reference, summed over the sentences",
            *_row(self.extra_words, sign="+ "),
            *_row(self.missing_words, sign="− "),
            *_row(self.extra_phrases, sign="+ "),
            *_row(self.missing_phrases, sign="− "),
        ]


def _tally(finding: Finding, unit: str) -> str:
    return f"{finding.count} {unit} in {finding.share:.1%} of the sentences"


def _row(entries: Counts, form: str = "{} {}", sign: str = "") -> list[str]:
    return [f"  {sign}{' · '.join(form.format(*entry) for entry in entries)}"] if entries else []


def analyse(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    tokenizer: Tokenizer,
    language: str = "",
    tokenize: str | None = None,
) -> Analysis:
    """Compare outputs with their references.

    `tokenizer` is that of the source language, `language` the code of the target language; without
    a list of its function words, every word counts as content. `tokenize` says how BLEU counts
    words; by default as is usual for the language.
    """
    if not len(sources) == len(outputs) == len(references) or not outputs:
        sizes = f"{len(sources)} sources, {len(outputs)} outputs and {len(references)} references"
        raise ValueError(f"{sizes}; they must pair up")
    tokenize = tokenization(language) if tokenize is None else tokenize
    source_words, output_words, reference_words = (
        [words(text, tokenize) for text in texts] for texts in (sources, outputs, references)
    )
    ordinary = {word for reference in reference_words for word in reference}
    light = FUNCTION_WORDS.get(language, frozenset())
    pairs = list(zip(output_words, reference_words, strict=True))
    extra = excess(pairs)
    missing = excess((reference, output) for output, reference in pairs)
    return Analysis(
        sentences=len(outputs),
        lengths=_lengths(pairs),
        untranslated=_finding(
            untranslated(source, output, ordinary)
            for source, output in zip(source_words, output_words, strict=True)
        ),
        repeated=_finding(repeated(output, reference, light) for output, reference in pairs),
        dropped=_finding(dropped(output, reference, light) for output, reference in pairs),
        unknown=_unknown(sources, outputs, tokenizer, tokenize),
        extra_words=_ranked(extra[0])[:LISTED],
        missing_words=_ranked(missing[0])[:LISTED],
        extra_phrases=_phrases(extra[1:], light),
        missing_phrases=_phrases(missing[1:], light),
    )


def _ranked(counts: Counter[str]) -> Counts:
    """Sort by frequency, then the longest first, then alphabetically."""
    return sorted(counts.items(), key=lambda item: (-item[1], -len(item[0].split()), item[0]))


def _phrases(counts: Iterable[Counter[str]], light: Set[str]) -> Counts:
    """Most frequent phrases with a content word, one for each set of content words."""
    by_content: dict[frozenset[str], tuple[str, int]] = {}
    for text, count in _ranked(sum(counts, Counter())):
        content = frozenset(word for word in text.split() if is_word(word) and word not in light)
        if content:
            by_content.setdefault(content, (text, count))
    return list(by_content.values())[:LISTED]


def _finding(cases: Iterable[list[str]]) -> Finding:
    """Sum up the cases of each sentence."""
    by_line = list(cases)
    placed = [(text, line) for line, texts in enumerate(by_line, start=1) for text in texts]
    return Finding(
        count=len(placed),
        share=sum(map(bool, by_line)) / len(by_line),
        frequent=_ranked(Counter(text for text, _ in placed))[:LISTED],
        examples=list(dict.fromkeys(placed))[:LISTED],
    )


def _lengths(pairs: Iterable[tuple[Words, Words]]) -> Lengths:
    sizes = [(len(output), len(reference)) for output, reference in pairs]
    ratios = [_ratio(*size) for size in sizes]
    return Lengths(
        ratio=_ratio(*map(sum, zip(*sizes, strict=True))),
        median=statistics.median(ratios),
        short=sum(ratio < SHORT for ratio in ratios) / len(ratios),
        long=sum(ratio > LONG for ratio in ratios) / len(ratios),
    )


def _ratio(output: int, reference: int) -> float:
    if reference:
        return output / reference
    return 1.0 + output  # an empty output is as long as an empty reference


def unknown_words(source: str, tokenizer: Tokenizer) -> Words:
    """Words, in their spelling, that the tokenizer maps to <unk> in whole or in part."""
    if UNKNOWN not in tokenizer.encode(source):
        return []
    # No token crosses a space, so a chunk is tokenised as in its sentence. Its unknown may be a
    # punctuation mark attached to a known word, so the words inside are tokenised once more: by
    # zh, for which a Chinese character is a word, and which splits other scripts as 13a does.
    chunks = [chunk for chunk in source.split() if UNKNOWN in tokenizer.encode(chunk)]
    parts = [
        MARKS.sub("", word) for chunk in chunks for word in words(chunk, "zh", lowercase=False)
    ]
    return [word for word in parts if is_word(word) and UNKNOWN in tokenizer.encode(word)]


def _unknown(
    sources: Sequence[str], outputs: Sequence[str], tokenizer: Tokenizer, tokenize: str
) -> Unknown:
    by_line = [unknown_words(source, tokenizer) for source in sources]
    copied = 0
    for unknown, output in zip(by_line, outputs, strict=True):
        copied += (Counter(map(str.lower, unknown)) & Counter(words(output, tokenize))).total()
    return Unknown(
        **vars(_finding(by_line)),
        copied=copied,
        lost=sum(map(len, by_line)) - copied,
        in_outputs=sum(output.count(UNKNOWN_WORD) for output in outputs),
    )
