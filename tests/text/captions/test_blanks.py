"""Blanks in captions: the word that stood there agrees, and what does not agree is not among the answers."""

import re
from collections import Counter

import pytest

from seq2see.text import captions
from seq2see.text.captions.blanks import BLANK, Blank, blanks


@pytest.fixture(scope="module")
def some() -> list[Blank]:
    return blanks("train", 1000)


def test_with_its_word_each_is_a_caption_of_the_split(some: list[Blank]) -> None:
    assert len(some) == 1000 and blanks("train", 5) == some[:5]
    texts = {caption.source for caption in captions.generate("train", 1100)}
    for blank in some:
        assert blank.text.count(BLANK) == 1
        assert blank.text.replace(BLANK, blank.word) in texts
        assert blank.word in blank.answers
    kinds = Counter(blank.kind for blank in some)
    assert kinds.keys() == {"determiner", "adjective", "verb"} and min(kinds.values()) > 150


WRONG = {
    "masculine": (r"<mask> (Mann|Hund|Lehrer|Koch)\b", "die das eine dieses diese meine keine"),
    "feminine": (r"<mask> (Frau|Katze|Tasche|Lehrerin)\b", "das ein einen den dem diesem kein"),
    "neuter": (r"<mask> (Kind|Buch|Auto|Haus)\b", "die eine einer den diesen keine keinen"),
    "plural": (r"<mask> (Hunde|Frauen|Katzen|Ärzte)\b", "ein eine einem das dem dieses"),
    "after ein": (r"\b[Ee]in <mask> (Mann|Hund|Junge)\b", "alte altes alten große kleines großen"),
    "before a weak ending": (
        r"<mask> (große|kleine|alte|junge) (\w+er|Mann|Hund|Junge|Koch|Arzt)\b",
        "ein einen dem",
    ),
    "dative": (r"\b[Mm]it <mask> ", "die das eine ein einen"),
    "already contracted": (r"\b([Ii]n|[Zz]u|[Vv]on) <mask> ", "dem"),
}


@pytest.mark.parametrize("rule", WRONG)
def test_what_does_not_agree_is_no_answer(some: list[Blank], rule: str) -> None:
    pattern, wrong = WRONG[rule]
    found = [blank for blank in some if blank.kind != "verb" and re.search(pattern, blank.text)]
    assert found
    for blank in found:
        assert not {answer.lower() for answer in blank.answers} & {*wrong.split()}, blank


def test_a_verb_agrees_in_number_and_an_auxiliary_with_its_participle(some: list[Blank]) -> None:
    helpers = {"hat", "ist", "wird"}, {"haben", "sind", "werden"}
    alone = 0
    for blank in some:
        answers = {answer.lower() for answer in blank.answers}
        if blank.kind == "verb":
            assert not any(
                {one, many} <= answers for one, many in zip(*map(sorted, helpers), strict=True)
            ), blank
            alone += len(answers) == 1
        if blank.kind == "verb" and "will" in answers:
            assert answers == {"will", "möchte", "muss", "darf", "kann", "soll"}
    assert alone > 50
