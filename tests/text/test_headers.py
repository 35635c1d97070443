"""Headers: rows that name columns, and first sentences that do not."""

from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text.headers import choose, is_header


def config(source: str = "en", target: str = "de", **keys: Any) -> DataConfig:
    return DataConfig.model_validate({"source": source, "target": target, "train": "t", **keys})


@pytest.mark.parametrize(
    ("cells", "languages", "columns"),
    [
        (["en", "de"], "en de", (0, 1)),
        (["DE", " EN "], "en de", (1, 0)),
        (["english", "German"], "en de", (0, 1)),
        (["Deutsch", "Englisch"], "en de", (1, 0)),
        (["", "en", "de"], "en de", (1, 2)),  # pandas' index
        (["deu", "eng", "source"], "en de", (1, 0)),  # where the pair is from
        (["text_en", "text_de", "id"], "en de", (0, 1)),
        (["English sentence", "German translation"], "en de", (0, 1)),
        (["English sentence", "German sentence", "score"], "en de", (0, 1)),
        (["en-US", "de_DE"], "en de", (0, 1)),
        (["en", "english", "de"], "en de", (0, 2)),
        (["source", "target"], "en de", (0, 1)),
        (["id", "tgt", "src"], "en de", (2, 1)),
        (["sentence", "translation"], "en de", (0, 1)),
        (["franc\u0327ais", "中文"], "zh fr", (1, 0)),
        (["हिन्दी", "English"], "hi en", (0, 1)),
        (["zh-TW", "zh-CN"], "zh-CN zh-TW", (1, 0)),
        (["swg", "en"], "en swg", (1, 0)),  # a code that is in no list
    ],
)
def test_names_of_languages_and_sides(
    cells: list[str], languages: str, columns: tuple[int, int]
) -> None:
    recipe = config(*languages.split())
    assert is_header(cells, recipe)
    assert choose(cells, recipe, "t:1") == columns


@pytest.mark.parametrize(
    ("cells", "languages"),
    [
        (["Hi.", "Hallo!"], "en de"),
        (["English", "Englisch"], "en de"),
        (["German", "Deutsch"], "en de"),
        (["it", "es"], "en de"),
        (["est", "is"], "fr en"),
        (["text", "Text"], "en de"),
        (["number", "Nr."], "en de"),
        (["source", "Quelle"], "en de"),
        (["translation", "Übersetzung"], "en de"),
        (["I learn English.", "Ich lerne Deutsch."], "en de"),
        (["German is hard.", "Deutsch"], "en de"),
        (["no", "nei"], "en no"),
        (["", ""], "en de"),
        (["Hi.", "Grüß Gott!"], "en swg"),
        (["source", "Grüß Gott!"], "en swg"),
        (["中文", "中文"], "zh-CN zh-TW"),
        (["1", "2"], "en de"),
    ],
)
def test_a_sentence_pair_is_no_header(cells: list[str], languages: str) -> None:
    for columns in (None, [0, 1], ["en", "de"]):
        assert not is_header(cells, config(*languages.split(), columns=columns))


def test_names_that_recur_in_each_row_are_no_header() -> None:
    first, second = ["eng", "Hi.", "deu", "Hallo!"], ["eng", "Hi.", "deu", "Grüß Gott!"]
    assert not is_header(first, config(), second)
    assert is_header(["en", "de"], config(), ["en", "de"])  # the same line twice
    assert is_header(["english", "german"], config(), ["english", "englisch"])


def test_given_columns_come_first() -> None:
    cells = ["en", "de", "Kundentext"]
    assert choose(cells, config(columns=["de", "kundentext"]), "t:1") == (1, 2)
    assert choose(cells, config(columns=[2, 0]), "t:1") == (2, 0)
    assert is_header(["a", "b", "c"], config(columns=["c", "a"]))
    assert not is_header(["a", "b", "c"], config(columns=[2, 0]))


@pytest.mark.parametrize(
    ("cells", "keys", "says"),
    [
        (
            ["english", "german"],
            {"columns": ["englsh", "german"]},
            "t:1: data.columns: no 'englsh' among english, german; did you mean 'english'?",
        ),
        (["x", "x"], {"columns": ["y", "x"]}, "t:1: data.columns: no 'y' among x, x"),
        (["x", "x", "y"], {"columns": ["y", "x"]}, "t:1: data.columns: 2 'x' among x, x, y"),
        (
            ["en", "de"],
            {"source": "fr", "target": "en"},
            "t:1: none of en, de stands for data.source = 'fr'; name two in data.columns",
        ),
        (
            ["id", "label"],
            {},
            "t:1: none of id, label stands for data.source = 'en'; name two in data.columns",
        ),
        (
            ["en", "german", "deutsch"],
            {},
            "t:1: 2 of en, german, deutsch stand for data.target = 'de'; name two in data.columns",
        ),
    ],
)
def test_columns_that_are_not_there(cells: list[str], keys: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(cells, config(**keys), "t:1")
    assert str(caught.value) == says
