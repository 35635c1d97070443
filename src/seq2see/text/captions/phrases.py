"""Phrases of the caption grammar: words of the languages and the links between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from seq2see.text.captions.lexicon import (
    DATA,
    DETERMINERS,
    ENDINGS,
    FEMININE,
    GENITIVE,
    NO_TERM,
    NOMINATIVE,
    ORDERS,
    PERSONS,
    PLURAL,
    Noun,
    Term,
    Verb,
    Words,
    column_words,
    columns,
)

Links = tuple[tuple[int, int], ...]
Unit = list[str]  # a run of English words, identified by object identity


class Piece(NamedTuple):
    """Run of German words or Chinese characters with the English units they are linked to."""

    words: Words
    targets: tuple[tuple[Unit, Links], ...] = ()


Pieces = tuple[Piece, ...]


class Phrase(NamedTuple):
    """Node of the grammar: German pieces and English units, each in its language's order."""

    german: Pieces
    english: tuple[Unit, ...]


class Mention(NamedTuple):
    """Noun phrase with the noun and number that other words agree with, and what it is made of."""

    phrase: Phrase
    noun: Noun
    plural: bool
    unit: Unit  # English words of the noun phrase alone
    article: str = ""
    adjectives: tuple[Term, ...] = ()
    preposition: Term = NO_TERM
    owner: "Mention | None" = None
    partner: "Mention | None" = None  # joined by und
    relative: "Clause | None" = None


class Conjugation(NamedTuple):
    """Verb in one tense and number, divided into the parts that the languages place separately."""

    auxiliary: Phrase
    main: Phrase
    second: Pieces
    closing: Pieces  # ends a main clause: particle, infinitive or participle
    cluster: Pieces  # ends a subordinate clause: the whole verb


@dataclass(slots=True)
class Clause:
    """Parts of a clause, to be put into the order of each language."""

    verb: Verb
    subject: Mention
    parts: dict[str, Phrase]
    conjugation: Conjugation
    tense: str
    modal: str = ""
    tail: Pieces = ()  # a relative clause moved behind the verb
    goal: str = ""
    gap: str = ""  # part that is the relative pronoun
    object: Mention | None = None  # in the passive, the agent
    recipient: Mention | None = None
    place: Mention | None = None  # or the complement
    time: Pieces = ()  # in Chinese
    manner: Term = NO_TERM
    state: Term = NO_TERM

    def german(self, front: str = "", final: bool = False) -> list[Piece]:
        """Order the German clause: it opens with the part `front`; its verb is second or final."""
        parts = self.parts
        pieces = [*parts[front].german] if front in parts else []
        if not final:
            pieces += self.conjugation.second
        for name in ORDERS["german"]:
            if name != front and name in parts:
                pieces += parts[name].german
        end = self.conjugation.cluster if final else self.conjugation.closing
        return [*pieces, *end, *self.tail]

    def english(self, front: str = "subject") -> list[Unit]:
        """Order the English clause, which opens with the part `front`."""
        parts = self.parts
        units = [*parts[front].english] if front in parts else []
        transitive = "object" in parts and not self.verb.via.german
        for name in ORDERS["english_transitive" if transitive else "english"]:
            if name != front and name in parts:
                units += parts[name].english
        return units


@cache
def _span(length: int) -> Links:
    """Link one German word to each of `length` English ones."""
    return tuple((0, position) for position in range(length))


@cache
def gloss(german: str, english: str) -> Phrase:
    """Pair a German word with its English translation; either may be missing ("-")."""
    unit = [*column_words(english)]
    if german == "-":
        return Phrase((), (unit,))
    return Phrase((Piece((german,), ((unit, _span(len(unit))),)),), (unit,))


def chain(*phrases: Phrase) -> Phrase:
    """Concatenate phrases in both languages."""
    german = [piece for phrase in phrases for piece in phrase.german]
    english = [unit for phrase in phrases for unit in phrase.english]
    return Phrase(tuple(german), tuple(english))


@lru_cache(maxsize=1 << 16)
def noun_phrase(
    noun: Noun,
    plural: bool,
    case: int,
    article: str,
    adjectives: tuple[Term, ...],
    preposition: Term,
) -> Mention:
    """Inflect and translate a noun phrase, after a preposition if there is one."""
    column = PLURAL if plural else noun.gender
    forms, endings, translations = DETERMINERS[article]
    determiner = forms[case][column]
    before = column_words(preposition.english)
    translation = column_words(translations[plural])
    steps = [(preposition.german, before), (determiner, translation)]
    contraction = DATA["contractions"].get(f"{preposition.german} {determiner}")
    if contraction and article == "definite":
        steps = [(contraction, before + translation)]
    for adjective in adjectives:
        form = adjective.german.removesuffix("e") + endings[case][column]
        steps.append((form, (adjective.english,)))
    name = noun.english[plural]
    if case == GENITIVE:
        name = (*name[:-1], name[-1] + "'s")
    steps.append((noun.german[plural][case], name))
    german: list[str] = []
    unit: Unit = []
    links: list[tuple[int, int]] = []
    for word, translation in steps:
        # English words without a German one (the "to" of a dative) link to the next German word.
        links += [(len(german), len(unit) + offset) for offset in range(len(translation))]
        german += [word] if word else []
        unit += translation
    for position, follower in enumerate(unit[1:]):
        if unit[position] == "a" and follower[0] in "aeiou":
            unit[position] = "an"
    phrase = Phrase((Piece(tuple(german), ((unit, tuple(links)),)),), (unit,))
    return Mention(phrase, noun, plural, unit, article, adjectives, preposition)


@cache
def conjugate(verb: Verb, plural: bool, tense: str) -> Conjugation:
    """Conjugate a verb in both languages; `tense` is a row of the lexicon."""
    helper, translation, form = columns(tense)[plural::2]
    auxiliary = [*column_words(translation)]
    main = [*verb.english[int(form)]] if form else []
    to_auxiliary = (auxiliary, _span(len(auxiliary)))
    to_main = (main, _span(len(main)))
    if helper:
        infinite = verb.participle if form == "3" else verb.particle + verb.base
        second = (Piece((helper,), (to_auxiliary,)),)
        closing: Pieces = (Piece((infinite,), (to_main,)),)
        cluster = closing + second
    else:
        finite = verb.finite[plural]
        second = (Piece((finite,), (to_auxiliary, to_main)),)
        closing = (Piece((verb.particle,), (to_main,)),) if verb.particle else ()
        cluster = (Piece((verb.particle + finite,), (to_auxiliary, to_main)),)
    if helper == "zu":
        joined = Piece((f"{verb.particle}zu{verb.base}",), (to_auxiliary, to_main))
        cluster = (joined,) if verb.particle else second + closing
    return Conjugation(Phrase((), (auxiliary,)), Phrase((), (main,)), second, closing, cluster)


def pronoun(antecedent: Mention) -> Mention:
    """Return the personal pronoun of an antecedent."""
    german = ("er", "es", "sie", "sie")[PLURAL if antecedent.plural else antecedent.noun.gender]
    english = "they" if antecedent.plural else antecedent.noun.pronoun
    return stand_in(antecedent, gloss(german, english), "pronoun")


def stand_in(mention: Mention, phrase: Phrase, article: str) -> Mention:
    """Replace a noun phrase by a pronoun, named in place of the article."""
    return Mention(phrase, mention.noun, mention.plural, phrase.english[0], article)


def possessive(owner: Mention) -> str:
    """Return the name of the owner's possessive determiner in the lexicon."""
    german = "ihr" if owner.plural or owner.noun.gender == FEMININE else "sein"
    english = "they" if owner.plural else owner.noun.pronoun
    return f"{german} {english}"


def relative_pronoun(head: Mention, case: int = NOMINATIVE, via: Term = NO_TERM) -> Mention:
    """Return the relative pronoun of a head noun, after the preposition of the clause's verb."""
    column = PLURAL if head.plural else head.noun.gender
    german = (*column_words(via.german), "d" + ENDINGS["relative"][case][column])
    english = "which" if via.english else "that"
    if head.noun.kind in PERSONS:
        english = "who" if case == NOMINATIVE else "whom"
    unit = [*column_words(via.english), english]
    links = ((0, 0), (1, 1))[: len(unit)]
    phrase = Phrase((Piece(german, ((unit, links),)),), (unit,))
    return stand_in(head, phrase, "relative")._replace(preposition=via)


def spell(chinese: str, *targets: tuple[Unit, Sequence[int]]) -> Piece:
    """Link every character of a Chinese text to all the given words of English units."""
    places = range(len(chinese))
    linked = [(unit, tuple(product(places, words))) for unit, words in targets if words]
    return Piece(tuple(chinese), tuple(linked))


def _time(german: str, english: str, links: str, chinese: str) -> tuple[Phrase, Pieces]:
    """Parse a fixed phrase of time with its links, such as "0-0 1-1" or "今天/0 早上/1"."""
    unit = english.split()
    pairs = tuple((int(link[0]), int(link[2])) for link in links.split())
    phrase = Phrase((Piece(tuple(german.split()), ((unit, pairs),)),), (unit,))
    spelled = []
    for part in chinese.split():
        text, _, word = part.partition("/")
        spelled.append(spell(text, (unit, [int(word)] if word else range(len(unit)))))
    return phrase, tuple(spelled)


def sentence_text(words: list[str]) -> str:
    """Join words into a sentence with a capital, and without spaces before punctuation marks."""
    text = " ".join(words).replace(" ,", ",")
    return text[0].upper() + text[1:-2] + text[-1]


def write_english(sentence: Phrase) -> tuple[str, dict[int, int]]:
    """Return the English text of a sentence, and the position where each of its units starts."""
    english: list[str] = []
    starts: dict[int, int] = {}
    for unit in sentence.english:
        starts[id(unit)] = len(english)
        english += unit
    return sentence_text(english), starts


def place_german(sentence: Phrase) -> tuple[list[str], list[int]]:
    """Return the German words of a sentence, and the position where each piece starts."""
    german: list[str] = []
    starts: list[int] = []
    for piece in sentence.german:
        if piece.words[0] in ",.?" and german[-1] == ",":
            german.pop()  # clauses that end together share one mark
        starts.append(len(german))
        german += piece.words
    return german, starts


def write_german(sentence: Phrase, english_starts: dict[int, int]) -> tuple[str, Links]:
    """Return the German text of a sentence and its links to the English words."""
    german, starts = place_german(sentence)
    return sentence_text(german), link(sentence.german, starts, english_starts)


def link(pieces: Iterable[Piece], starts: Iterable[int], english_starts: dict[int, int]) -> Links:
    """List the links of pieces placed at `starts` to the English words."""
    links: list[tuple[int, int]] = []
    for piece, start in zip(pieces, starts, strict=True):
        for unit, pairs in piece.targets:
            english_start = english_starts[id(unit)]
            links += [(start + source, english_start + target) for source, target in pairs]
    return tuple(sorted(links))


COMMA = Piece((",",))
TIMES = [_time(*row) for row in DATA["times"]["phrases"]]
