"""Prompts in English and German: agreement in gender, case and number, and several wordings."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from seq2see.pictures.scenes.scene import Group, Prompt, Scene
from seq2see.text.captions.lexicon import (
    DATIVE,
    DETERMINERS,
    FEMININE,
    MASCULINE,
    NEUTER,
    NOMINATIVE,
    PLURAL,
)

Random = Callable[[], float]  # draws from 0 … 1
Option = TypeVar("Option")

LANGUAGES = ("en", "de")
COUNTS = ("indefinite", "two", "three")  # rows of the captions' determiners

ENGLISH: dict[str, tuple[str, ...]] = {
    "small": ("small", "little"),
    "large": ("large", "big"),
    "above": ("above", "over"),
    "below": ("below", "under"),
    "left of": ("left of", "to the left of"),
    "right of": ("right of", "to the right of"),
}
ENGLISH_PLURALS = {"cross": "crosses"}

# Adjectives without their endings; all relations govern the dative.
GERMAN: dict[str, tuple[str, ...]] = {
    "small": ("klein",),
    "large": ("groß",),
    "red": ("rot",),
    "green": ("grün",),
    "blue": ("blau",),
    "yellow": ("gelb",),
    "purple": ("violett",),
    "turquoise": ("türkisfarben",),
    "white": ("weiß",),
    "black": ("schwarz",),
    "above": ("über", "oberhalb von"),
    "below": ("unter", "unterhalb von"),
    "left of": ("links von", "links neben"),
    "right of": ("rechts von", "rechts neben"),
}
GERMAN_NOUNS = {
    "circle": (MASCULINE, "Kreis", "Kreise"),
    "square": (NEUTER, "Quadrat", "Quadrate"),
    "triangle": (NEUTER, "Dreieck", "Dreiecke"),
    "star": (MASCULINE, "Stern", "Sterne"),
    "cross": (NEUTER, "Kreuz", "Kreuze"),
    "diamond": (FEMININE, "Raute", "Rauten"),
    "ring": (MASCULINE, "Ring", "Ringe"),
}


def pick(options: Sequence[Option], random: Random) -> Option:
    """Draw an option, each as likely as the others."""
    return options[int(random() * len(options))]


def describe(said: Scene, language: str, random: Random) -> Prompt:
    """Put into words what is said of a scene, drawing one of the wordings."""
    group_name = GROUP_NAMES[language]
    relation = pick(WORDS[language][said.relation], random) if said.relation else ""
    text = ""
    for place, group in enumerate(said.groups):
        if 0 < place < said.related:
            text += f" {relation} {group_name(group, DATIVE, random)}"
            continue
        if place > 0:
            text += _joint(said, place, language)
        text += group_name(group, NOMINATIVE, random)
    return Prompt(text, language, said)


def english_group(group: Group, case: int, random: Random) -> str:
    """Name a group in English, such as "two small red circles"."""
    _, _, number = DETERMINERS[COUNTS[group.count - 1]]
    plural = group.count > 1
    words = [number[plural]]
    words += [pick(ENGLISH.get(word, (word,)), random) for word in _adjectives(group)]
    noun = group.shape
    if plural:
        noun = ENGLISH_PLURALS.get(noun, f"{noun}s")
    return " ".join([*words, noun])


def german_group(group: Group, case: int, random: Random) -> str:
    """Name a group in German, such as "einem großen roten Kreis" in the dative."""
    gender, singular, noun = GERMAN_NOUNS[group.shape]
    column = gender
    if group.count > 1:
        column = PLURAL
        if case == DATIVE:
            noun = noun.removesuffix("n") + "n"
    else:
        noun = singular
    numerals, endings, _ = DETERMINERS[COUNTS[group.count - 1]]
    adjectives = [pick(GERMAN[word], random) for word in _adjectives(group)]
    inflected = [adjective + endings[case][column] for adjective in adjectives]
    return " ".join([numerals[case][column], *inflected, noun])


def _adjectives(group: Group) -> list[str]:
    return [word for word in (group.size, group.colour) if word is not None]


def _joint(said: Scene, place: int, language: str) -> str:
    """Return what joins the group at `place` to those before it."""
    conjunction, addition = JOINTS[language]
    if said.related:
        return addition  # it must not read as a second object of the preposition
    return conjunction if place == len(said.groups) - 1 else ", "


WORDS = {"en": ENGLISH, "de": GERMAN}
GROUP_NAMES = {"en": english_group, "de": german_group}
JOINTS = {"en": (" and ", ", and "), "de": (" und ", ", dazu ")}
