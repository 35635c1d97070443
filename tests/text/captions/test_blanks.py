"""Blanks in captions: the masked word is among the answers, and no answer breaks agreement."""

import re
from collections import Counter

import pytest

from seq2see.text import captions
from seq2see.text.captions.blanks import BLANK, Blank, blanks


@pytest.fixture(scope="module")
def masked() -> list[Blank]:
    return blanks("train", 1000)


def test_with_its_word_each_blank_is_a_caption_of_the_split(masked: list[Blank]) -> None:
    assert len(masked) == 1000 and blanks("train", 5) == masked[:5]
    texts = {caption.source for caption in captions.generate("train", 1100)}
    for blank in masked:
        assert blank.text.count(BLANK) == 1
        assert blank.text.replace(BLANK, blank.word) in texts
        assert blank.word in blank.answers
    kinds = Counter(blank.kind for blank in masked)
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
def test_what_does_not_agree_is_no_answer(masked: list[Blank], rule: str) -> None:
    pattern, wrong = WRONG[rule]
    matches = [blank for blank in masked if blank.kind != "verb" and re.search(pattern, blank.text)]
    assert matches
    for blank in matches:
        assert not {answer.lower() for answer in blank.answers} & {*wrong.split()}, blank


def test_a_verb_agrees_in_number_and_an_auxiliary_with_its_participle(masked: list[Blank]) -> None:
    helpers = {"hat", "ist", "wird"}, {"haben", "sind", "werden"}
    alone = 0
    for blank in masked:
        answers = {answer.lower() for answer in blank.answers}
        if blank.kind == "verb":
            assert not any(
                {one, many} <= answers for one, many in zip(*map(sorted, helpers), strict=True)
            ), blank
            alone += len(answers) == 1
        if blank.kind == "verb" and "will" in answers:
            assert answers == {"will", "möchte", "muss", "darf", "kann", "soll"}
    assert alone > 50
