"""Protected spans and glossary terms: found, checked, and brought back."""

import random
import sys
import time
from collections.abc import Mapping

import pytest

from seq2see.errors import InputError
from seq2see.text.documents import Glossary, run, together, translate_document
from seq2see.text.documents.numbers import notations
from seq2see.text.documents.protected import PLAIN, SCANNER, protected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Siehe https://a.de/x(y)?q=1. (http://b.c/d)", ["https://a.de/x(y)?q=1", "http://b.c/d"]),
        ("100 %ig, 50 % der, 5%der", ["100", "50", "5"]),
        ("%s%d und %(x)d用", ["%s", "%d", "%(x)d"]),
        ("und/oder z.B. d.h. Ende.Der", []),
        ("有3只MP3狗a@b.cn。", ["3", "MP3", "a@b.cn"]),
        ("von -5 bis 10-20, COVID-19", ["-5", "10-20", "19"]),
    ],
)
def test_spans_are_found(text: str, kept: list[str]) -> None:
    assert [text[span.start : span.end] for span in protected(text)] == kept


def test_a_plain_text_has_no_spans() -> None:
    letters = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isalnum()]
    plain = [letter for letter in letters if PLAIN.fullmatch(letter)]
    assert len(plain) > 100_000
    assert not SCANNER.search("".join(f"{letter} ({letter})." for letter in plain))
    draw = random.Random(1)
    marks = "aÄz漢 ,;!?'\"().-1_`:/@\\{}%$<>&#[]~\n☺❶²0xwww."
    texts = ["".join(draw.choices(marks, k=draw.randint(1, 8))) for _ in range(20_000)]
    plain = [text for text in texts if PLAIN.fullmatch(text)]
    assert len(plain) > 100
    assert not any(map(SCANNER.search, plain))
    assert PLAIN.fullmatch("Zwei (junge) Männer, die ein-, zweimal 'ja' rufen!")


@pytest.mark.parametrize(
    ("number", "source", "target", "forms"),
    [
        ("1.000,50", "de", "en", {"1.000,50", "1,000.50", "1000.50"}),
        ("1,000", "en", "de", {"1,000", "1.000", "1000"}),
        ("1.5", "en", "fr", {"1.5", "1,5"}),
        ("1.000", "de", "fr", {"1.000", "1\u00a0000", "1\u202f000", "1000"}),
        ("3.5.2024", "de", "en", {"3.5.2024"}),
        ("14:30", "de", "en", {"14:30"}),
        ("14.30", "de", "en", {"14.30", "14:30"}),
        ("14.75", "de", "en", {"14.75"}),
        ("1.5", "en", "zh-Hans", {"1.5"}),
        ("-2,5", "de-AT", "en", {"-2,5", "-2.5"}),
        ("0.001", "de", "en", {"0.001", "0,001", "0001"}),
    ],
)
def test_numbers_are_written_as_the_target_has_them(
    number: str, source: str, target: str, forms: set[str]
) -> None:
    written = notations(number, source, target)
    assert written[0] == number
    assert set(written) == forms


def test_an_endless_number_is_a_number() -> None:
    number = "1" + ".000" * 1500
    assert number.replace(".", ",") in notations(number, "de", "en")


def test_a_term_is_a_whole_word_and_the_longest() -> None:
    terms = ("New York", "new", "C", "C++", "北京")
    glossary = Glossary({term: f"<{term}>" for term in terms})
    text = "New Yorker in New York: C++, C, CC, new 在北京吃"
    found = [text[start:end] for start, end, _ in glossary.occurrences(text, 0, len(text))]
    assert found == ["New", "New York", "C++", "C", "new", "北京"]


def test_a_large_glossary_is_made_in_no_time() -> None:
    started = time.process_time()
    Glossary({f"term {number}": "x" for number in range(500)})
    assert time.process_time() - started < 2


def translated(
    text: str, english: Mapping[str, str], glossary: Mapping[str, str] | None = None
) -> str:
    steps = translate_document(text, source="de", target="en", glossary=glossary)
    return run(steps, lambda texts: [english.get(text, "nothing of it") for text in texts])


def test_a_number_in_the_notation_of_the_target_is_kept() -> None:
    text = "Es kostet 1.000,50 Euro."
    assert translated(text, {text: "It costs 1,000.50 euros."}) == "It costs 1,000.50 euros."
    for wrong in ("It costs 11,000.50 euros.", "It costs 1,000.505 euros.", "It costs 1 euro."):
        assert translated(text, {text: wrong}) == "nothing of it 1.000,50 nothing of it"


def test_an_address_is_kept_only_as_a_whole() -> None:
    text = "Siehe http://a.de/x dort."
    for wrong in ("See http://a.de/xy.", "See http://a.de/x/evil there.", "See a.de/x there."):
        assert translated(text, {text: wrong}) == "nothing of it http://a.de/x nothing of it"
    assert translated(text, {text: "See (http://a.de/x)."}) == "See (http://a.de/x)."


def test_a_lost_number_replaces_its_word() -> None:
    text = "Ein Mann hat 3 Hunde."
    english = {text: "A man has three dogs.", "3": "Three."}
    assert translated(text, english) == "A man has 3 dogs."
    english = {text: "The three have three dogs.", "3": "Three."}  # which of them?
    assert translated(text, english) == "nothing of it 3 nothing of it"


def test_a_term_replaces_what_the_model_says() -> None:
    text = "Fahrrad und Hund: ein Fahrrad."
    english = {text: "Bike and dog: a bike.", "Fahrrad": "A bike."}
    assert translated(text, english, {"Fahrrad": "velo"}) == "Velo and dog: a velo."
    english = {text: "Bikes and dog: a bike.", "Fahrrad": "bicycles"}
    assert translated(text, english, {"Fahrrad": "velo"}).lower().count("velo") == 2
    assert translated(text, {text: "A Velo, a velo."}, {"fahrrad": "velo"}) == "A Velo, a velo."


def test_terms_are_whole_words_and_the_longest() -> None:
    glossary = Glossary({"Hund": "dog", "Hund und Katze": "pets", "GPU": "GPU", "狗": "dog"})

    def found(text: str) -> list[str]:
        return [text[start:end] for start, end, _ in glossary.occurrences(text, 0, len(text))]

    assert found("Hund und Katzen, HUND UND KATZE, Hunde") == ["Hund", "HUND UND KATZE"]
    assert found("使用GPU训练，三只狗狗") == ["GPU", "狗", "狗"]


LINES = [
    ("", "a"),
    ("a", " \u3000\x85"),
    ("a\nb", "a"),
    ("a", "b\n"),
    ("\u2028a", "a"),
    ("a", "\x1f"),
]


@pytest.mark.parametrize(("term", "translation"), LINES)
def test_a_glossary_has_lines_of_text(term: str, translation: str) -> None:
    with pytest.raises(InputError, match="must be one line of text"):
        Glossary({term: translation})


def test_documents_in_step_ask_for_each_text_once() -> None:
    rounds: list[list[str]] = []

    def translate(texts: list[str]) -> list[str]:
        rounds.append(texts)
        return [text.replace("3", "") for text in texts]

    texts = ["Eins.", "Zwei. Eins.", "", "Nur 3 da."]
    steps = together(translate_document(text, source="de", target="de") for text in texts)
    assert run(steps, translate) == texts
    assert rounds == [["Eins.", "Zwei.", "Nur 3 da."], ["Nur", "da.", "3"]]


def test_a_translation_for_each_text_is_demanded() -> None:
    with pytest.raises(ValueError, match="1 translations of 2 texts"):
        run(translate_document("Eins. Zwei.", source="de", target="en"), lambda texts: ["one"])


REPEATED = ["<", ".", "a", "{", "http://", "a@", "1.", "%(", "`", "/a", "_", "😀", "“", "a. ", "[a"]
REPEATED += ["a\n", "1 a ", "{x} ", "<b>", "<b>a</b> ", "<!--", "<!---->", "<a b='", "&", "<p>a"]


@pytest.mark.parametrize("format", ["text", "html"])
@pytest.mark.parametrize("unit", REPEATED)
def test_time_grows_with_the_length(unit: str, format: str) -> None:
    """Quadratic time would be 64 times as much for 8 times the length."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        steps = translate_document(text, source="de", target="en", format=format)  # type: ignore[arg-type]
        started = time.process_time()
        run(steps, lambda texts: [text.upper() for text in texts])
        return time.process_time() - started

    long = min(seconds(16_000) for _ in range(3))  # a busy machine disturbs one or the other
    assert long < 24 * max(seconds(2000), 0.02)
