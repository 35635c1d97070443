"""Plain text: nothing but the sentences changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.text.documents import run, translate_document

PARTS = [". ", "! ", "? ", "。", "！", "a", "B", "Hund", " ", "  ", "\t", "\n", "\r\n", "\x00"]
PARTS += ["{x}", "%s", "1.5", "2", "http://a.de/b", "a@b.de", "`", "```", "<0>", "😀", "- ", "1. "]
PARTS += ["\u200f", "\ud800", "\u2028", "\x85", "\u00a0", "é", "你好", "“", "(", "|", "#", "&amp;"]
TEXTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=30).map("".join)


def unchanged(texts: list[str]) -> list[str]:
    return texts


@settings(deadline=None)
@given(text=TEXTS, language=st.sampled_from(["de", "en", "zh", "ja", "", "xx-Latn"]))
def test_unchanged_sentences_give_back_the_text(text: str, language: str) -> None:
    assert run(translate_document(text, source=language, target=language), unchanged) == text


@settings(deadline=None)
@given(text=TEXTS)
def test_every_line_has_its_place(text: str) -> None:
    result = run(
        translate_document(text, source="de", target="en"),
        lambda texts: [f" \n {part} x\r\ny\u2028\t" for part in texts],
    )
    lines = result.splitlines(keepends=True)
    given_lines = text.splitlines(keepends=True)
    assert [line[len(line.rstrip()) :] for line in lines] == [
        line[len(line.rstrip()) :] for line in given_lines
    ]
    assert [line[: -len(line.lstrip()) or None] for line in lines] == [
        line[: -len(line.lstrip()) or None] for line in given_lines
    ]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Ein Hund bellt. Dr. M. kam am 3. Mai.", ["Ein Hund bellt.", "Dr. M. kam am 3. Mai."]),
        ("Eins\n\n  Zwei!  Drei?\r\n", ["Eins", "Zwei!", "Drei?"]),
        ("- Punkt\n2. Punkt zwei\n> # Titel\n", ["Punkt", "Punkt zwei", "Titel"]),
        ("Name\tAlter | Ort", ["Name", "Alter", "Ort"]),
        ("```\nEin Hund.\n```\nEine Katze.", ["Eine Katze."]),
        ("```\nEins.\n```python\nZwei.\n```\nDrei.", ["Drei."]),
        (
            "```pip install``` installiert es.\nEin Hund.",
            ["```pip install``` installiert es.", "Ein Hund."],
        ),
        ("---\n42\n😀 http://a.de\n", []),
    ],
)
def test_sentences_are_asked_for_one_by_one(text: str, asked: list[str]) -> None:
    rounds: list[list[str]] = []

    def translate(texts: list[str]) -> list[str]:
        rounds.append(texts)
        return [text.upper() for text in texts]

    run(translate_document(text, source="de", target="en"), translate)
    assert rounds == ([asked] if asked else [])


def test_blanks_between_sentences_are_those_of_the_target_language() -> None:
    def translate(texts: list[str]) -> list[str]:
        return [{"你好。": "Hello.", "再见！": "Bye!"}.get(text, text[::-1]) for text in texts]

    assert run(translate_document("你好。再见！\n", source="zh", target="en"), translate) == (
        "Hello. Bye!\n"
    )
    assert run(translate_document("Eins. Zwei.", source="de", target="zh"), translate) == (
        ".sniE.iewZ"
    )
