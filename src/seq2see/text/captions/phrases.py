"""The phrases of the caption grammar: words of both languages with the links between them."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from seq2see.text.captions.lexicon import (
    DATA,
    DETERMINERS,
    ENDINGS,
    FEMININE,
    GENITIVE,
    NOMINATIVE,
    ORDERS,
    PERSONS,
    PLURAL,
    Noun,
    Pair,
    Verb,
    Words,
    column_words,
    columns,
)

Links = tuple[tuple[int, int], ...]
Unit = list[str]  # a run of English words, told from its equals by identity


class Piece(NamedTuple):
    """A run of German words and the English units they are linked to."""

    words: Words
    targets: tuple[tuple[Unit, Links], ...] = ()


Pieces = tuple[Piece, ...]


class Phrase(NamedTuple):
    """A node of the grammar: German pieces and English units, each in the order of its own language."""

    german: Pieces
    english: tuple[Unit, ...]


class Mention(NamedTuple):
    """A noun phrase with what agreement needs to know of it."""

    phrase: Phrase
    noun: Noun
    plural: bool


class Conjugation(NamedTuple):
    """A verb in one tense and number, in the parts that each language puts in places of their own."""

    auxiliary: Phrase
    main: Phrase
    second: Pieces
    closing: Pieces  # what ends a main clause: particle, infinitive or participle
    cluster: Pieces  # the whole verb, as it ends a subordinate clause


@dataclass(slots=True)
class Clause:
    """The parts of a clause before each language puts them into its own order."""

    verb: Verb
    subject: Mention
    parts: dict[str, Phrase]
    conjugation: Conjugation
    tail: Pieces = ()  # a relative clause moved behind the verb
    goal: str = ""

    def german(self, front: str = "", final: bool = False) -> list[Piece]:
        """The German clause opening with the part named `front`, its verb second or final."""
        parts, verb = self.parts, self.conjugation
        pieces = [*parts[front].german] if front in parts else []
        pieces += () if final else verb.second
        for name in ORDERS["german"]:
            if name != front and name in parts:
                pieces += parts[name].german
        return [*pieces, *(verb.cluster if final else verb.closing), *self.tail]

    def english(self, front: str = "subject") -> list[Unit]:
        """The English clause opening with the part named `front`."""
        parts = self.parts
        units = [*parts[front].english] if front in parts else []
        transitive = "object" in parts and not self.verb.via[0]
        for name in ORDERS["english_transitive" if transitive else "english"]:
            if name != front and name in parts:
                units += parts[name].english
        return units


@cache
def _span(length: int) -> Links:
    """The links of one German word to each of so many English ones."""
    return tuple((0, place) for place in range(length))


@cache
def gloss(german: str, english: str) -> Phrase:
    """A German word and the English words that translate it; either may be missing."""
    unit = [*column_words(english)]
    return Phrase(
        (Piece((german,), ((unit, _span(len(unit))),)),) if german != "-" else (), (unit,)
    )


def chain(*phrases: Phrase) -> Phrase:
    """Phrases one after the other in both languages."""
    german = [piece for phrase in phrases for piece in phrase.german]
    english = [unit for phrase in phrases for unit in phrase.english]
    return Phrase(tuple(german), tuple(english))


@lru_cache(maxsize=1 << 16)
def noun_phrase(
    noun: Noun, plural: bool, case: int, article: str, adjectives: tuple[Pair, ...], before: Pair
) -> Mention:
    """A noun phrase, after a preposition if there is one."""
    column = PLURAL if plural else noun.gender
    forms, endings, translations = DETERMINERS[article]
    steps = [
        (before[0], column_words(before[1])),
        (forms[case][column], column_words(translations[plural])),
    ]
    contraction = DATA["contractions"].get(f"{before[0]} {forms[case][column]}")
    if contraction and article == "definite":
        steps = [(contraction, steps[0][1] + steps[1][1])]
    steps += [
        (stem.removesuffix("e") + endings[case][column], (english,)) for stem, english in adjectives
    ]
    name = noun.english[plural]
    steps.append(
        (noun.german[plural][case], (*name[:-1], name[-1] + "'s") if case == GENITIVE else name)
    )
    german: list[str] = []
    unit: Unit = []
    links: list[tuple[int, int]] = []
    for word, translation in steps:
        # English without a German word of its own, the "to" of a dative, goes with the next German word.
        links += [(len(german), len(unit) + offset) for offset in range(len(translation))]
        german += [word] if word else []
        unit += translation
    for place, follower in enumerate(unit[1:]):
        if unit[place] == "a" and follower[0] in "aeiou":
            unit[place] = "an"
    return Mention(Phrase((Piece(tuple(german), ((unit, tuple(links)),)),), (unit,)), noun, plural)


@cache
def conjugate(verb: Verb, plural: bool, tense: str) -> Conjugation:
    """The verb in both languages, in the tense of that row of the lexicon."""
    helper, translation, form = columns(tense)[plural::2]
    auxiliary, main = [*column_words(translation)], [*verb.english[int(form)]] if form else []
    helping, acting = (auxiliary, _span(len(auxiliary))), (main, _span(len(main)))
    if helper:
        second = (Piece((helper,), (helping,)),)
        closing: Pieces = (
            Piece((verb.participle if form == "3" else verb.particle + verb.base,), (acting,)),
        )
        cluster = closing + second
    else:
        second = (Piece((verb.finite[plural],), (helping, acting)),)
        closing = (Piece((verb.particle,), (acting,)),) if verb.particle else ()
        cluster = (Piece((verb.particle + verb.finite[plural],), (helping, acting)),)
    if helper == "zu":
        joined = Piece((f"{verb.particle}zu{verb.base}",), (helping, acting))
        cluster = (joined,) if verb.particle else second + closing
    return Conjugation(Phrase((), (auxiliary,)), Phrase((), (main,)), second, closing, cluster)


def pronoun(antecedent: Mention) -> Mention:
    """The personal pronoun for what was mentioned before."""
    german = ("er", "es", "sie", "sie")[PLURAL if antecedent.plural else antecedent.noun.gender]
    return antecedent._replace(
        phrase=gloss(german, "they" if antecedent.plural else antecedent.noun.pronoun)
    )


def possessive(owner: Mention) -> str:
    """The name of the possessive determiner for what `owner` has."""
    german = "ihr" if owner.plural or owner.noun.gender == FEMININE else "sein"
    return f"{german} {'they' if owner.plural else owner.noun.pronoun}"


def relative_pronoun(head: Mention, case: int = NOMINATIVE, via: Pair = ("", "")) -> Mention:
    """The relative pronoun for `head`, after the preposition its verb asks for."""
    german = (
        *column_words(via[0]),
        "d" + ENDINGS["relative"][case][PLURAL if head.plural else head.noun.gender],
    )
    person = "who" if case == NOMINATIVE else "whom"
    unit = [
        *column_words(via[1]),
        person if head.noun.kind in PERSONS else "which" if via[1] else "that",
    ]
    return head._replace(
        phrase=Phrase((Piece(german, ((unit, ((0, 0), (1, 1))[: len(unit)]),)),), (unit,))
    )


def _time(german: str, english: str, links: str) -> Phrase:
    """A fixed phrase of time with its links."""
    unit, pairs = english.split(), tuple((int(link[0]), int(link[2])) for link in links.split())
    return Phrase((Piece(tuple(german.split()), ((unit, pairs),)),), (unit,))


def written(words: list[str]) -> str:
    """The words as one line of text."""
    text = " ".join(words).replace(" ,", ",")
    return text[0].upper() + text[1:-2] + text[-1]


def write_english(sentence: Phrase) -> tuple[str, dict[int, int]]:
    """The English text of a sentence, and at which word each of its units starts."""
    english: list[str] = []
    starts: dict[int, int] = {}
    for unit in sentence.english:
        starts[id(unit)] = len(english)
        english += unit
    return written(english), starts


def place_german(sentence: Phrase) -> tuple[list[str], list[int]]:
    """The German words of a sentence, and at which of them each of its pieces starts."""
    german: list[str] = []
    places: list[int] = []
    for piece in sentence.german:
        if (
            piece.words[0] in ",.?" and german[-1] == ","
        ):  # clauses that end together share one mark
            german.pop()
        places.append(len(german))
        german += piece.words
    return german, places


def write_german(sentence: Phrase, starts: dict[int, int]) -> tuple[str, Links]:
    """The German text of a sentence and its links to the English words."""
    german, places = place_german(sentence)
    links: list[tuple[int, int]] = []
    for piece, place in zip(sentence.german, places, strict=True):
        for unit, pairs in piece.targets:
            start = starts[id(unit)]
            links += [(place + source, start + target) for source, target in pairs]
    return written(german), tuple(sorted(links))


COMMA = Piece((",",))
TIMES = [_time(*row) for row in DATA["times"]["phrases"]]
