"""German captions with a blank whose form the grammar determines, and all the words that agree there."""

import random
from dataclasses import dataclass

from seq2see.text.captions import drawn
from seq2see.text.captions.grammar import Author
from seq2see.text.captions.lexicon import (
    DATA,
    DETERMINERS,
    ENDINGS,
    GENITIVE,
    KINDS,
    PLURAL,
    VERBS,
    Marks,
    Noun,
    Pair,
    Structure,
    Verb,
    columns,
)
from seq2see.text.captions.phrases import (
    Clause,
    Mention,
    Phrase,
    Piece,
    place_german,
    possessive,
    written,
)

BLANK = "<mask>"
ADJECTIVES = {
    row.split()[0].removesuffix("e")
    for kind in KINDS.values()
    for slot in ("size", "quality", "colour")
    for row in kind.get(slot, "").split(", ")
    if row
}


@dataclass(frozen=True)
class Blank:
    """A sentence with <mask> for one word, that word, what it is, and every word that agrees in its place."""

    text: str
    word: str
    kind: str  # determiner, adjective, verb
    answers: frozenset[str]


@dataclass(frozen=True)
class Slot:
    """A word of a piece, and what agrees there."""

    piece: Piece
    offset: int
    kind: str
    answers: frozenset[str]


def blanks(split: str, count: int, seed: int = 1) -> list[Blank]:
    """Captions of a split with one blank each, of every kind about as many; those without a fit place are left out."""
    author, chance = Examiner(f"{split} {seed}"), random.Random(f"blanks/{split}/{seed}")
    found: list[Blank] = []
    for sentence, _ in drawn(split, 10 * count, author):
        words, places = place_german(sentence)
        starts = {id(piece): place for piece, place in zip(sentence.german, places, strict=True)}
        slots = [slot for slot in author.slots if id(slot.piece) in starts]
        if not slots:
            continue
        kind = chance.choice(sorted({slot.kind for slot in slots}))
        slot = chance.choice([slot for slot in slots if slot.kind == kind])
        place = starts[id(slot.piece)] + slot.offset
        word, answers = words[place], slot.answers
        if place == 0:
            word, answers = word.capitalize(), frozenset(answer.capitalize() for answer in answers)
        text = written([*words[:place], BLANK, *words[place + 1 :]])
        found.append(Blank(text, word, kind, answers))
        if len(found) == count:
            break
    return found


class Examiner(Author):
    """An author who notes where a sentence's forms are determined, as it writes."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.slots: list[Slot] = []
        self.owner: Mention | None = None  # the subject, while its objects are written

    def sentence(self, structure: Structure) -> Phrase:
        self.slots = []
        return super().sentence(structure)

    def add_object(self, clause: Clause, marks: Marks) -> None:
        before, self.owner = self.owner, clause.subject
        super().add_object(clause, marks)
        self.owner = before

    def mention(
        self,
        noun: Noun,
        case: int,
        before: Pair = ("", ""),
        article: str = "",
        plural: bool | None = None,
    ) -> Mention:
        mention = super().mention(noun, case, before, article, plural)
        piece = mention.phrase.german[0]
        one, several = (noun.german[number][case] for number in (False, True))
        if one != several:  # where the noun does not show its number, more than one form may agree
            self.slots += _of_phrase(
                piece, mention, case, before[0], None if case == GENITIVE else self.owner
            )
        return mention

    def clause(
        self,
        verb: Verb,
        marks: Marks,
        subject: Mention | None = None,
        given: Mention | None = None,
        extra: float = 0,
    ) -> Clause:
        clause = super().clause(verb, marks, subject, given, extra)
        self.slots += _of_verb(clause)
        return clause


def _of_phrase(
    piece: Piece, mention: Mention, case: int, preposition: str, owner: Mention | None
) -> list[Slot]:
    """The determiner and the adjectives of a noun phrase, if it has a determiner of its own."""
    column = PLURAL if mention.plural else mention.noun.gender
    first = 1 if preposition else 0
    words = piece.words[:-1] if piece.words[-1] == mention.noun.german[mention.plural][case] else ()
    allowed = {
        name: (forms[case][column], endings[case][column])
        for name, (forms, endings, english) in DETERMINERS.items()
        if english[mention.plural] and forms[case][column] and " " not in name
    }
    if owner is not None:
        forms, endings, _ = DETERMINERS[possessive(owner)]
        allowed["possessive"] = forms[case][column], endings[case][column]
    if words[:first] != (preposition,)[:first] or len(words) == first:
        return []  # the preposition is one with the article, or there is none
    determiner, adjectives = words[first], words[first + 1 :]
    ending = next((after for form, after in allowed.values() if form == determiner), None)
    if ending is None:
        return []  # no article, so that the first word is an adjective; or a possessive of somebody else
    fits = {form for form, after in allowed.values() if not adjectives or after == ending}
    fits -= {form for form in fits if f"{preposition} {form}" in DATA["contractions"]}
    if not adjectives and mention.plural and "bare" in mention.noun.plural_articles:
        fits |= {stem + ENDINGS["strong"][case][column] for stem in ADJECTIVES}
    slots = [Slot(piece, first, "determiner", frozenset(fits))]
    agreeing = frozenset(stem + ending for stem in ADJECTIVES)
    return slots + [
        Slot(piece, first + 1 + i, "adjective", agreeing) for i in range(len(adjectives))
    ]


def _of_verb(clause: Clause) -> list[Slot]:
    """The finite verb, where it is second and where it is last."""
    verb, plural, conjugation = clause.verb, clause.subject.plural, clause.conjugation
    second, final = conjugation.second[0], conjugation.cluster[-1]
    word = second.words[0]
    if word == "zu":  # an infinitive, which agrees with nothing
        return []
    if word == verb.finite[plural]:
        fits = [other for other in VERBS if _frame(other) == _frame(verb)]
        return [
            Slot(second, 0, "verb", frozenset(other.finite[plural] for other in fits)),
            Slot(
                final, 0, "verb", frozenset(other.particle + other.finite[plural] for other in fits)
            ),
        ]
    modals = frozenset(columns(row)[plural] for row in DATA["modals"]["all"])
    return [Slot(second, 0, "verb", modals if word in modals else frozenset({word}))]


def _frame(verb: Verb) -> object:
    """What a verb stands with: those with the same can take each other's place in a sentence."""
    goes_with = (
        verb.particle,
        bool(verb.what),
        verb.case,
        verb.via[0],
        bool(verb.whom),
        bool(verb.complements),
    )
    return goes_with, verb.traits & {"that", "try", "copula"}
