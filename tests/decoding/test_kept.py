"""Lines translated with what must come through: one round of search, or two."""

from collections.abc import Sequence

from seq2see.decoding.kept import kept
from seq2see.decoding.long_text import Translation
from seq2see.text.documents import Lexicon
from seq2see.text.documents.standins import STAND_INS

LEXICON = Lexicon.of(["Das Haus, die Tür, das Auto"], STAND_INS)


class Searching:
    """A search in a table; a text that it lacks becomes "?"."""

    def __init__(self, table: dict[str, list[str]]) -> None:
        self.table = table
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[Translation]]:
        self.asked.append(list(texts))
        rows = [self.table.get(text, ["?"]) for text in texts]
        return [
            [Translation(text, -float(rank), -2.0 * rank) for rank, text in enumerate(row)]
            for row in rows
        ]


def test_ordinary_lines_are_searched_once_and_as_they_are() -> None:
    lines = ["Das Haus.", "", " Die  Tür", "Das Haus."]
    first, again = Searching({}), Searching({})
    rows = kept(lines, first, again, ("de", "en"), LEXICON)
    assert first.asked == [lines] and again.asked == []
    assert [row[0].text for row in rows] == ["?"] * 4


def test_each_hypothesis_keeps_what_it_must() -> None:
    first = Searching({"Das Haus 17.": ["House 17.", "A house."]})
    again = Searching({"Das Haus X1.": ["The house X1."], "17": ["17"]})
    (row,) = kept(["Das Haus 17."], first, again, ("de", "en"), LEXICON)
    assert [one.text for one in row] == ["House 17.", "The house 17."]
    assert [one.score for one in row] == [0.0, -2.0]  # of the first search


def test_the_second_search_has_each_text_once() -> None:
    first, again = Searching({}), Searching({})
    kept(["Das Haus 17.", "Das Auto.", "Das Haus 17."], first, again, ("de", "en"), LEXICON)
    (asked,) = again.asked
    assert len(set(asked)) == len(asked) and "Das Auto." not in asked
    assert len(first.asked[0]) == 3


def test_no_second_search_is_made_where_nothing_was_lost() -> None:
    first, again = Searching({"Das Haus 17.": ["House 17"]}), Searching({})
    kept(["Das Haus 17.", "17"], first, again, ("de", "en"), None)
    assert again.asked == []
