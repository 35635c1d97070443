"""Errors of every kind are detected where they are, and none in a perfect translation."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from seq2see.scoring.errors import Analysis, analyse
from seq2see.scoring.phrases import LONGEST_ALIGNED, aligned, dropped, excess, repeated, words
from seq2see.text.function_words import FUNCTION_WORDS
from seq2see.text.segmenters import segmenter
from seq2see.text.specials import UNKNOWN
from seq2see.text.subwords import Subwords
from seq2see.text.vocab import Vocab
from seq2see.text.words import Words

LIGHT = FUNCTION_WORDS["en"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ äöüß.,-!?"]


@pytest.fixture(scope="module")
def tokenizer() -> Subwords:
    """Knows every Latin letter and no other."""
    return Subwords.train([" ".join(LETTERS)] * 10, "unigram", 200)


@pytest.fixture(scope="module")
def compare(tokenizer: Subwords) -> Any:
    def compare(
        outputs: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> Analysis:
        return analyse(sources or [""] * len(outputs), outputs, references, tokenizer, "en")

    return compare


def test_words_are_those_of_lowercased_bleu() -> None:
    assert words("A T-Shirt, isn't it?  1,000.5!") == [
        "a",
        "t-shirt",
        ",",
        "isn't",
        "it",
        "?",
        "1,000.5",
        "!",
    ]
    assert words("a<unk>b <unk><unk>") == ["a", "<unk>", "b", "<unk>", "<unk>"]
    assert words("<UNK>") == ["<", "unk", ">"]  # somebody's text, not a tokenizer's
    assert words("") == words(" \t") == []


def test_untranslated_words_stand_in_source_and_output_but_in_no_reference(compare: Any) -> None:
    sources = [
        "Ein Bauhelm und ein Hut in Rom",
        "Zwei Bauhelm-Träger, Bauhelm!",
        "Der Hut: x 12 ab1",
    ]
    outputs = [
        "A bauhelm and a hut in Rom",
        "Two Bauhelm-Träger, Bauhelm bauhelm",
        "The Hut: x 12 ab1",
    ]
    references = ["A helmet and a hat in Rome", "Two people with helmets", "The hat"]
    finding = compare(outputs, references, sources).untranslated
    # Not "in" (ordinary English), "x" (too short), "12" and "ab1" (not of letters).
    assert dict(finding.frequent) == {"bauhelm": 2, "hut": 2, "bauhelm-träger": 1, "rom": 1}
    assert finding.count == 6 and finding.share == 1.0  # "bauhelm" once in line 2, as in its source
    assert finding.frequent[:2] == [("bauhelm", 2), ("hut", 2)]
    assert finding.examples[0] == ("bauhelm", 1) and finding.examples[-1] == ("hut", 3)
    # A word that stands in any reference is ordinary.
    assert compare(outputs, [*references[:2], "a hut"], sources).untranslated.count == 4


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("the the dog", "the dog", ["the"]),
        ("a a a a", "a", ["a", "a", "a"]),
        ("a man a man a man", "a man", ["a man", "a man"]),
        ("one two three four one two three four", "one two three four", ["one two three four"]),
        ("very very big", "very very large", []),
        ("very very very big", "very very large", ["very"]),
        ("no, no!", "never", ["no"]),  # marks aside
        ("wait ... . . .", "wait", []),
        ("a table in a table", "a table in a room", ["a table"]),
        ("in a house in a tree", "at home on a tree", []),  # function words may come again
        ("a red hat and a red hat", "a red hat and a red hat", []),
        (
            "a man in a red hat and a woman in a red hat",
            "a man in red hat and a woman in red hat",
            [],
        ),
        (
            "in front of a house by a dog in front of a house",
            "near a house",
            ["in front of a house"],
        ),
        ("one two three four five one two three four five", "x", ["one two three four five"]),
        ("red hat and red coat", "a red hat and red coat", []),
        ("", "a man", []),
        ("a man", "", []),
    ],
)
def test_repeated_phrases(output: str, reference: str, expected: list[str]) -> None:
    assert repeated(words(output), words(reference), LIGHT) == expected


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("A man sits.", "A man in a red shirt sits.", ["in a red shirt"]),
        ("A man", "A man sits on the grass.", ["sits on the grass"]),
        ("sits on the grass", "The old man sits on the grass", ["the old man"]),
        ("", "Nobody is here.", ["nobody is here"]),
        (
            "A man in a coat sits.",
            "A man in a red shirt sits.",
            [],
        ),  # something stands in its place
        ("A man sits.", "A man often sits.", []),  # one word
        ("A man sits", "A man that is there sits", []),  # no content
        ("On the grass a man sits.", "A man sits on the grass.", []),  # moved
        ("A dog, a cat", "A dog and, by the way, a cat", ["and by the way"]),  # marks aside
        ("Two men cook", "Two young men cook a large meal", ["a large meal"]),
        ("a", "a " + "b " * 20, [" ".join("b" * 10) + " …"]),
    ],
)
def test_dropped_phrases(output: str, reference: str, expected: list[str]) -> None:
    assert dropped(words(output), words(reference), LIGHT) == expected


def test_without_a_list_of_function_words_every_word_is_content(tokenizer: Subwords) -> None:
    texts = [""], ["A man sits"], ["A man that is there sits"]
    assert analyse(*texts, tokenizer, "en").dropped.count == 0
    assert (
        analyse(*texts, tokenizer, "xx").dropped.count
        == analyse(*texts, tokenizer).dropped.count
        == 1
    )


def test_findings_are_counted_per_sentence_and_placed(compare: Any) -> None:
    outputs = ["dog dog dog", "a cat", "dog dog", "a cat cat"]
    finding = compare(outputs, ["dog", "a cat", "dog", "a cat"]).repeated
    assert (finding.count, finding.share) == (4, 0.75)
    assert finding.frequent == [("dog", 3), ("cat", 1)]
    assert finding.examples == [("dog", 1), ("dog", 3), ("cat", 4)]


def test_lengths(compare: Any) -> None:
    references = ["a b c d e f g h i j"] * 4 + [""]
    outputs = [
        "a b c d e f",
        "a b c d e f g",
        "a b c d e f g h i j k l m",
        "a b c d e f g h i j k l m n",
        "",
    ]
    lengths = compare(outputs, references).lengths
    assert lengths.ratio == 40 / 40 and lengths.median == 1.0
    assert lengths.short == lengths.long == 0.2  # exactly 0.7 and 1.3 are neither
    assert (
        compare(["a b"], [""]).lengths.long == 1.0 and compare([""], ["a b"]).lengths.ratio == 0.0
    )
    assert compare(["a", "b b", "c c c"], ["a a", "b b", "c c"]).lengths.median == 1.0


@pytest.mark.parametrize("kind", ["words", "subwords"])
def test_unknown_source_words(kind: str, tokenizer: Subwords) -> None:
    if kind == "words":
        pytest.importorskip("spacy")
    known = ["Ein", "Mann", "isst", "in", ".", "Herr", "und"]
    source_tokenizer = tokenizer
    if kind == "words":
        source_tokenizer = Words(Vocab(known), segmenter("spacy", "de"))
    unknown = "Москва"  # in no Latin vocabulary, be it of words or of letters
    sources = [
        f"Ein Mann isst {unknown}, {unknown}.",
        "Ein Mann isst.",
        f"Ein Mann in {unknown} und 漢☃ isst ☃ .",
    ]
    outputs = [
        f"A man eats {unknown.lower()}.",
        "A <unk> eats.",
        "A man in <unk> and a<unk>b eats.",
    ]
    finding = analyse(sources, outputs, outputs, source_tokenizer).unknown
    assert finding.frequent == [(unknown, 3), ("漢", 1)]
    assert (finding.count, finding.copied, finding.lost) == (
        4,
        1,
        3,
    ) and finding.share == pytest.approx(2 / 3)
    assert finding.in_outputs == 3


def test_a_mark_that_is_unknown_makes_no_word_unknown(tokenizer: Subwords) -> None:
    assert UNKNOWN in tokenizer.encode("Ein „Mann“")
    finding = analyse(["Ein „Mann“ … Mann☃ “漢”"], ["A man"], ["A man"], tokenizer).unknown
    assert finding.frequent == [("漢", 1)]


def test_unknown_ids_are_counted_as_tokenizers_show_them(tokenizer: Subwords) -> None:
    some = tokenizer.encode("Mann")
    shown = tokenizer.decode([*some, UNKNOWN, UNKNOWN, *some, UNKNOWN])
    assert analyse([""], [shown], [""], tokenizer).unknown.in_outputs == 3
    pytest.importorskip("spacy")
    vocabulary = Words(Vocab(["man", ","]), segmenter("spacy", "en"))
    shown = vocabulary.decode(vocabulary.encode("man other, man another"))
    assert analyse([""], [shown], [""], tokenizer).unknown.in_outputs == 2


def test_extra_and_missing_words_are_clipped_and_summed_by_sentence(compare: Any) -> None:
    outputs = ["the the the dog", "a cat sits on the mat", "the end"]
    references = ["the dog", "a cat is sitting on the mat", "the the end"]
    analysis = compare(outputs, references)
    assert analysis.extra_words == [("the", 2), ("sits", 1)]
    assert analysis.missing_words == [
        ("is", 1),
        ("sitting", 1),
        ("the", 1),
    ]  # the too many elsewhere do not pay for it
    # One phrase per content: the most frequent, then the longest; none without content.
    assert dict(analysis.extra_phrases)["a cat sits on"] == 1 and "the the" not in dict(
        analysis.extra_phrases
    )
    assert dict(analysis.missing_phrases)["a cat is sitting"] == 1


def test_the_most_frequent_phrase_of_the_same_content_stands_for_all(compare: Any) -> None:
    analysis = compare(["in front of me"] * 2 + ["in front", "very very very"], ["x"] * 4)
    assert analysis.extra_phrases == [("in front", 3), ("very very", 2)]


WORDS = ["a", "the", "man", "dog", ",", ".", "runs", "Red", "hut", "two"]
SENTENCE = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
ROWS = st.lists(st.tuples(SENTENCE, SENTENCE, SENTENCE), min_size=1, max_size=8)


@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_a_perfect_translation_has_no_errors(texts: list[str], compare: Any) -> None:
    analysis = compare(texts, texts, texts)
    for kind in (analysis.untranslated, analysis.repeated, analysis.dropped):
        assert asdict(kind) == {"count": 0, "share": 0.0, "frequent": [], "examples": []}
    assert (
        analysis.extra_words
        == analysis.missing_words
        == analysis.extra_phrases
        == analysis.missing_phrases
        == []
    )
    assert asdict(analysis.lengths) == {"ratio": 1.0, "median": 1.0, "short": 0.0, "long": 0.0}


@given(rows=ROWS, draw=st.randoms())
def test_counts_are_sane_and_the_order_of_sentences_does_not_matter(
    rows: Any, draw: Any, compare: Any
) -> None:
    sources, outputs, references = zip(*rows, strict=True)
    analysis = compare(outputs, references, sources)
    for kind in (analysis.untranslated, analysis.repeated, analysis.dropped, analysis.unknown):
        assert kind.count >= sum(count for _, count in kind.frequent) >= bool(kind.count)
        assert (kind.count > 0) == (kind.share > 0) and 0 <= kind.share <= 1
        assert all(count > 0 for _, count in kind.frequent)
        assert all(1 <= line <= len(rows) for _, line in kind.examples)
    assert analysis.unknown.copied + analysis.unknown.lost == analysis.unknown.count
    draw.shuffle(rows)
    sources, outputs, references = zip(*rows, strict=True)
    again = compare(outputs, references, sources)
    for name, value in asdict(analysis).items():
        other = asdict(again)[name]
        if isinstance(value, dict):
            value.pop("examples", None), other.pop("examples", None)  # they name lines
        assert value == other, name


@given(rows=ROWS)
def test_extra_ngrams_are_what_bleu_does_not_match(rows: Any) -> None:
    _, outputs, references = zip(*rows, strict=True)
    bleu = BLEU(lowercase=True).corpus_score(list(outputs), [list(references)])
    analysis = excess(
        (words(output), words(reference))
        for output, reference in zip(outputs, references, strict=True)
    )
    assert [counts.total() for counts in analysis] == [
        total - right for total, right in zip(bleu.totals, bleu.counts, strict=True)
    ]


@given(one=st.lists(st.sampled_from("abcd")), other=st.lists(st.sampled_from("abcd")))
def test_an_alignment_is_a_longest_common_subsequence(one: list[str], other: list[str]) -> None:
    matches = aligned(one, other)
    assert all(one[i] == other[j] for i, j in matches)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(matches))
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, word in enumerate(one):
        for j, match in enumerate(other):
            equal = lengths[i][j] + 1 if word == match else 0
            lengths[i + 1][j + 1] = max(equal, lengths[i][j + 1], lengths[i + 1][j])
    assert len(matches) == lengths[-1][-1]


@pytest.mark.parametrize("word", ["a", "{}", "dog"], ids=["light", "each another", "content"])
def test_endless_sentences_take_seconds_at_most(word: str, compare: Any) -> None:
    long = " ".join(word.format(place) for place in range(LONGEST_ALIGNED * 2))
    half = " ".join(long.split()[::2])
    start = time.process_time()
    compare([long, half, "", long], [half, long, long, ""], [long] * 4)
    assert time.process_time() - start < 20


def test_what_is_beyond_the_bound_is_not_aligned() -> None:
    long = ["x"] * LONGEST_ALIGNED
    assert (
        dropped(long, [*long, "new", "words"], LIGHT)
        == []
        == dropped(long, [*long[2:], "x", "x"], LIGHT)
    )
    assert dropped(long[2:], [*long[2:], "new", "words"], LIGHT) == ["new words"]


def test_a_test_set_takes_a_moment(compare: Any) -> None:
    line = "A man in a red shirt is standing in front of a small building , and {} people watch ."
    outputs = [line.format(number) for number in range(1000)]
    references = [line.format(f"the {number}").replace("small", "large") for number in range(1000)]
    start = time.perf_counter()
    assert compare(outputs, references, outputs).sentences == 1000
    assert time.perf_counter() - start < 10  # half a second on an idle machine


def test_the_report_holds_the_findings(compare: Any) -> None:
    sources = ["Ein Bauhelm", "Москва", "Hut"]
    outputs = ["A Bauhelm Bauhelm", "Moscow", "the hat"]
    analysis = compare(outputs, ["A helmet", "Moscow in the winter", "the hat"], sources)
    text = "\n".join(analysis.report())
    for part in (
        "Errors in 3 sentences",
        "0.750 output words per reference word · median sentence 1.00 · "
        "33.3% below 0.7 · 33.3% above 1.3",
        "1 words in 33.3% of the sentences occur in source and output but in no reference\n"
        "  bauhelm 1",
        "repeated: 1 words and phrases in 33.3% of the sentences",
        "bauhelm (line 1)",
        "dropped: 1 phrases in 33.3% of the sentences",
        "in the winter (line 2)",
        "1 source words in 33.3% of the sentences are not in the vocabulary: "
        "0 copied, 1 lost · 0 <unk> in the outputs",
        "+ bauhelm 2",
        "− helmet 1 · in 1 · the 1 · winter 1",
    ):
        assert part in text
    assert len(compare(outputs, outputs, [""] * 3).report()) == 7  # nothing to list


@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 2, 2), (2, 1, 2), (2, 2, 1)])
def test_texts_must_pair_up(sizes: tuple[int, int, int], tokenizer: Subwords) -> None:
    says = "{} sources, {} outputs and {} references; they must pair up".format(*sizes)
    with pytest.raises(ValueError, match=says):
        analyse(*([""] * size for size in sizes), tokenizer)  # type: ignore[misc]
