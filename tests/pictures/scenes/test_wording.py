"""Prompts: agreement in both languages, several wordings, and nothing but what is said."""

import re
from collections.abc import Callable
from itertools import product

import pytest

from seq2see.errors import InputError
from seq2see.pictures.scenes import Drawings
from seq2see.pictures.scenes.scene import COLOURS, RELATIONS, SHAPES, SIZES, Group, Prompt, Scene
from seq2see.pictures.scenes.wording import ENGLISH, GERMAN, GERMAN_NOUNS, describe

CIRCLE = Group(1, "circle", "red", "large")
SQUARES = Group(2, "square", "blue", "small")
STAR = Group(1, "star")


def first(said: Scene, language: str) -> str:
    """The first of all wordings."""
    return describe(said, language, lambda: 0.0).text


# Checked by hand: nominative and dative, one and two; the dative follows "über".
TABLE = {
    "circle": "ein großer roter Kreis|einem großen roten Kreis|"
    "zwei große rote Kreise|zwei großen roten Kreisen",
    "square": "ein großes rotes Quadrat|einem großen roten Quadrat|"
    "zwei große rote Quadrate|zwei großen roten Quadraten",
    "triangle": "ein großes rotes Dreieck|einem großen roten Dreieck|"
    "zwei große rote Dreiecke|zwei großen roten Dreiecken",
    "star": "ein großer roter Stern|einem großen roten Stern|"
    "zwei große rote Sterne|zwei großen roten Sternen",
    "cross": "ein großes rotes Kreuz|einem großen roten Kreuz|"
    "zwei große rote Kreuze|zwei großen roten Kreuzen",
    "diamond": "eine große rote Raute|einer großen roten Raute|"
    "zwei große rote Rauten|zwei großen roten Rauten",
    "ring": "ein großer roter Ring|einem großen roten Ring|"
    "zwei große rote Ringe|zwei großen roten Ringen",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_german_agrees_in_gender_case_and_number(shape: str) -> None:
    one, of_one, two, of_two = TABLE[shape].split("|")
    single = Group(1, shape, "red", "large")
    pair = Group(2, shape, "red", "large")
    assert first(Scene((single,)), "de") == one
    assert first(Scene((pair,)), "de") == two
    assert first(Scene((pair, single), "above", 2), "de") == f"{two} über {of_one}"
    assert first(Scene((single, pair), "above", 2), "de") == f"{one} über {of_two}"


# Checked by hand: masculine, neuter and feminine after "ein", and the plural after "drei".
COLOUR_TABLE = {
    "red": "roter rotes rote rote",
    "green": "grüner grünes grüne grüne",
    "blue": "blauer blaues blaue blaue",
    "yellow": "gelber gelbes gelbe gelbe",
    "purple": "violetter violettes violette violette",
    "turquoise": "türkisfarbener türkisfarbenes türkisfarbene türkisfarbene",
    "white": "weißer weißes weiße weiße",
    "black": "schwarzer schwarzes schwarze schwarze",
}


@pytest.mark.parametrize("colour", COLOURS)
def test_german_colours_are_inflected(colour: str) -> None:
    phrases = ["ein {} Stern", "ein {} Kreuz", "eine {} Raute", "drei {} Sterne"]
    groups = [(1, "star"), (1, "cross"), (1, "diamond"), (3, "star")]
    for form, phrase, (count, shape) in zip(
        COLOUR_TABLE[colour].split(), phrases, groups, strict=True
    ):
        group = Group(count, shape, colour)
        assert first(Scene((group,)), "de") == phrase.format(form)
        after = first(Scene((STAR, group), "left of", 2), "de").split("links von ")[1]
        assert after.split()[1] == form.rstrip("ers") + "en"


def test_english_has_articles_and_plurals() -> None:
    for shape, colour, size in product(SHAPES, [None, *COLOURS], [None, *SIZES]):
        adjectives = " ".join(word for word in (size, colour) if word)
        for count, number in ((1, "a"), (2, "two"), (3, "three")):
            plural = "" if count == 1 else "es" if shape == "cross" else "s"
            expected = f"{number} {adjectives} {shape}{plural}".replace("  ", " ")
            text = first(Scene((Group(count, shape, colour, size),)), "en")
            assert text == expected
            assert not re.search(r"\ba [aeiou]", text)


SENTENCES = [
    (
        Scene((CIRCLE, SQUARES), "above", 2),
        "a large red circle above two small blue squares",
        "ein großer roter Kreis über zwei kleinen blauen Quadraten",
    ),
    (
        Scene((Group(1, "circle", "red"), STAR), "left of", 2),
        "a red circle left of a star",
        "ein roter Kreis links von einem Stern",
    ),
    (
        Scene((SQUARES, STAR)),
        "two small blue squares and a star",
        "zwei kleine blaue Quadrate und ein Stern",
    ),
    (
        Scene((CIRCLE, SQUARES, STAR)),
        "a large red circle, two small blue squares and a star",
        "ein großer roter Kreis, zwei kleine blaue Quadrate und ein Stern",
    ),
    (
        Scene((CIRCLE, STAR, SQUARES), "right of", 2),
        "a large red circle right of a star, and two small blue squares",
        "ein großer roter Kreis rechts von einem Stern, dazu zwei kleine blaue Quadrate",
    ),
    (
        Scene((SQUARES, STAR, CIRCLE), "below", 3),
        "two small blue squares below a star below a large red circle",
        "zwei kleine blaue Quadrate unter einem Stern unter einem großen roten Kreis",
    ),
]


@pytest.mark.parametrize(("said", "english", "german"), SENTENCES)
def test_groups_are_joined(said: Scene, english: str, german: str) -> None:
    assert first(said, "en") == english
    assert first(said, "de") == german
    assert str(Prompt(english, "en", said)) == english


def test_every_wording_is_used() -> None:
    texts = {
        language: " ".join(d.prompt.text for d in Drawings("train", 600, language))
        for language in ("en", "de")
    }
    for wordings in ENGLISH.values():
        assert all(f" {wording} " in texts["en"] for wording in wordings)
    for name in RELATIONS:
        assert all(f" {wording} " in texts["de"] for wording in GERMAN[name])


NUMBERS = {"a": 1, "ein": 1, "two": 2, "zwei": 2, "three": 3, "drei": 3}


def read(text: str, language: str) -> Scene:
    """Read a prompt back, word by word, knowing stems and wordings alone."""
    words = ENGLISH if language == "en" else GERMAN
    relation = None
    for name in RELATIONS:
        for wording in sorted(words[name], key=len, reverse=True):
            if f" {wording} " in text:
                relation = relation or name
                text = text.replace(f" {wording} ", " < ")
    related = text.count("<") + 1 if relation else 0
    groups = re.split(r" < |, and |, dazu |, | and | und ", text)
    return Scene(tuple(read_group(group, language) for group in groups), relation, related)


def read_group(text: str, language: str) -> Group:
    number, *adjectives, noun = text.split()
    if language == "en":
        names = {wording: name for name in SIZES for wording in ENGLISH[name]}
        names |= {colour: colour for colour in COLOURS}
        shape = next(shape for shape in SHAPES if noun.startswith(shape))
    else:
        names = {GERMAN[name][0]: name for name in (*SIZES, *COLOURS)}
        shape = next(s for s, (_, singular, _) in GERMAN_NOUNS.items() if noun.startswith(singular))
        adjectives = [next(stem for stem in names if word.startswith(stem)) for word in adjectives]
    said = {names[adjective] for adjective in adjectives}
    count = NUMBERS["ein" if number.startswith("ein") else number]
    colour = next((colour for colour in COLOURS if colour in said), None)
    return Group(count, shape, colour, next((size for size in SIZES if size in said), None))


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_prompt_says_what_it_holds_and_no_more(language: str) -> None:
    for drawing in Drawings("train", 400, language):
        assert read(drawing.prompt.text, language) == drawing.prompt.said


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Group(1, "cube"), "shape 'cube' is not one of circle, square"),
        (lambda: Group(1, "star", "pink"), "colour 'pink' is not one of red, green"),
        (lambda: Group(1, "star", None, "big"), "size 'big' is not one of small, large"),
        (lambda: Group(4, "star"), r"count \(4\) must be 1 to 3"),
        (lambda: Scene(()), r"groups \(0\) must be 1 to 3"),
        (lambda: Scene((STAR, STAR), "near", 2), "relation 'near' is not one of above, below"),
        (lambda: Scene((STAR,), "above", 2), r"related \(2\) must be 2 to the number of groups"),
        (lambda: Scene((STAR, STAR), None, 2), r"related \(2\) must be 2 to the number of groups"),
    ],
)
def test_impossible_scenes_are_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()
