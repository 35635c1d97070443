"""Names, stand-ins, quotation marks and capitals: kept by a second round of translation."""

import tracemalloc

import pytest

from seq2see.text.documents import Lexicon, run, translate_document, translate_line
from seq2see.text.documents.capitals import in_capitals
from seq2see.text.documents.names import common_names
from seq2see.text.documents.quotes import quotation_marks
from seq2see.text.documents.standins import STAND_INS

KNOWN = ["Herr Tom traf gestern seine alte Lehrerin im Haus.", "Die Tür und der Garten."]
LEXICON = Lexicon.of(KNOWN, STAND_INS)


def names(text: str, language: str = "de") -> list[str]:
    return [text[a:b] for a, b in LEXICON.names(text, language, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Herr Kowalczyk traf Tom.", ["Kowalczyk"]),
        ("Anna-Lena Warrington traf Okonkwo", ["Anna-Lena Warrington", "Okonkwo"]),
        ("Die Zahnbürste und der Gartenzaun", []),  # after an article: no name
        ("Lehrerin, Gartens, Gärten, Gartenlehrerin", ["Gärten"]),
        ("Herr Jungmeier traf Wahrungen.", ["Jungmeier"]),  # an ending of nouns
        ("traf gestern xyz", []),
        (f"Herr K{'a' * 500} traf Tom", []),  # nobody has such a name
    ],
)
def test_names_are_words_with_a_capital_that_training_lacked(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_name_far_into_a_text_does_not_copy_it() -> None:
    text = "Kowalczyk traf " * 300
    tracemalloc.start()
    try:
        found = sum(1 for _ in LEXICON.names(text, "de", 0, len(text)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == 300
    assert peak < len(text)


def test_an_empty_lexicon_knows_no_names() -> None:
    assert not list(Lexicon().names("Herr Kowalczyk", "de", 0, 14))


def test_a_lexicon_is_read_as_it_was_written() -> None:
    for lexicon in (LEXICON, Lexicon.of(KNOWN)):
        assert Lexicon.read(lexicon.text()) == lexicon


def line(text: str, english: dict[str, str], lexicon: Lexicon | None = LEXICON) -> str:
    return run(
        translate_line(text, "de", "en", lexicon),
        lambda texts: [english.get(t, "?") for t in texts],
    )


def test_a_lost_name_is_translated_by_a_stand_in() -> None:
    text = "Herr Kowalczyk traf Tom."
    english = {text: "Mr. Cow met Tom.", "Herr X1 traf Tom.": "Tom was met by Mr. X1."}
    assert line(text, english) == "Tom was met by Mr. Kowalczyk."
    assert line(text, english, None) == "Mr. Cow met Tom."
    english[text] = "Mr. Kowalczyk met Tom."
    assert line(text, english) == "Mr. Kowalczyk met Tom."


@pytest.mark.parametrize("other", ["Mr. X11 met Tom.", "X1 X1 met Tom.", "Mr. met Tom."])
def test_a_name_that_no_stand_in_keeps_changes_nothing(other: str) -> None:
    text = "Herr Kowalczyk traf Tom."
    assert line(text, {text: "Mr. Cow met Tom.", "Herr X1 traf Tom.": other}) == "Mr. Cow met Tom."


def test_a_stand_in_that_the_text_has_is_not_used() -> None:
    text = "Herr Kowalczyk traf X1."
    english = {text: "He met X1.", "Herr X2 traf X1.": "X2 met X1."}
    assert line(text, english) == "Kowalczyk met X1."


def test_other_stand_ins_are_tried() -> None:
    text = "Wir fahren nach Okonkwo."
    lexicon = Lexicon.of([*KNOWN, "Wir fahren nach"], ("Tom", "Boston"))
    english = {
        text: "We go to it.",
        "Wir fahren nach Tom.": "We go.",
        "Wir fahren nach Boston.": "We go to Boston.",
    }
    assert line(text, english, lexicon) == "We go to Okonkwo."


def test_names_do_not_stand_in_for_numbers() -> None:
    text = "Tom hat 17 Türen."
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return ["?" for _ in texts]

    run(translate_line(text, "de", "en", Lexicon.of([text], ("Anna", "Boston"))), translate)
    assert not any("Anna" in one or "Boston" in one for one in asked)


def test_common_names_are_those_that_translations_keep() -> None:
    pairs = [("Tom liebt Marie in Wien.", "Tom loves Mary in Vienna.")] * 12
    pairs += [("Anna geht.", "Anna goes.")] * 11 + [("Paul geht.", "Paul goes.")] * 3
    assert common_names(pairs) == ("Tom", "Anna")


def test_a_stand_in_is_better_than_parts() -> None:
    text = "Schreib bitte an a@b.de, Tom."
    english = {
        text: "Write, Tom.",
        "Schreib bitte an X1, Tom.": "Please write to X1, Tom.",
        "Schreib bitte an": "Write at",
        "Tom.": "Tom.",
    }
    lexicon = Lexicon.of([text], STAND_INS)
    assert line(text, english, lexicon) == "Please write to a@b.de, Tom."
    assert line(text, english, None) == "Write at a@b.de, Tom."


def test_quotation_marks_come_back_as_the_target_has_them() -> None:
    text = "Tom sagte: „Die Tür.“"
    english = {text: "Tom said the door.", "Tom sagte": "Tom said", "Die Tür": "The door"}
    assert line(text, english) == 'Tom said: "The door."'
    english[text] = "Tom said: “The door.”"
    assert line(text, english) == "Tom said: “The door.”"


def test_single_marks_are_no_quotation() -> None:
    assert not list(quotation_marks('5" lang', "en"))
    assert [mark for _, mark in quotation_marks('"a" und «b»', "de")] == ["„", "“", "„", "“"]


def test_a_sentence_in_capitals_is_translated_in_lower_case() -> None:
    english = {"die tür ist zu, siehe https://A.de/B.": "The door is shut, see https://A.de/B."}
    text = "DIE TÜR IST ZU, SIEHE https://A.de/B."
    assert line(text, english) == "THE DOOR IS SHUT, SEE https://A.de/B."
    steps = translate_document(text, source="de", target="en")
    assert run(steps, lambda texts: [english[t] for t in texts]) == line(text, english)


@pytest.mark.parametrize(
    "text",
    [
        "NATO",
        "Die NATO UND DIE EU",
        "12 %",
        "你好吗",
        "NASA 和 ESA 合作。",
        "NASA和ESA、IBM和AMD。",
    ],
)
def test_abbreviations_are_no_sentences_in_capitals(text: str) -> None:
    assert not in_capitals(text)


def test_ordinary_lines_are_asked_for_as_they_are() -> None:
    for text in ("Die Tür  ist zu. Der Garten auch.", "", " \t"):
        assert line(text, {text: " as the model wrote it "}) == " as the model wrote it "


def test_a_line_gives_one_line() -> None:
    text = "Tür\n3"
    assert "\n" not in line(text, {"Tür 3": "Tür 3", "Tür": "Door", "X1": "X1", "3": "3"})
