"""Cloze test of agreement: German captions with a blank whose form the grammar determines."""

import random
from dataclasses import dataclass

from seq2see.text.captions import draw
from seq2see.text.captions.grammar import Author
from seq2see.text.captions.lexicon import (
    DATA,
    DETERMINERS,
    ENDINGS,
    GENITIVE,
    KINDS,
    NO_TERM,
    PLURAL,
    VERBS,
    Marks,
    Noun,
    Structure,
    Term,
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
    sentence_text,
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
    """Caption with one word masked."""

    text: str  # with BLANK in place of the word
    word: str
    kind: str  # determiner, adjective, verb
    answers: frozenset[str]  # every word that agrees in its place


@dataclass(frozen=True)
class Slot:
    """Position of a word that could be masked, with the words that agree there."""

    piece: Piece
    offset: int  # in the words of the piece
    kind: str
    answers: frozenset[str]


def blanks(split: str, count: int, seed: int = 1) -> list[Blank]:
    """Generate captions of a split with one blank each, all kinds about equally often.

    Captions without a suitable word are skipped.
    """
    author = Examiner(f"{split} {seed}")
    generator = random.Random(f"blanks/{split}/{seed}")
    masked: list[Blank] = []
    for sentence, _ in draw(split, 10 * count, author):
        words, positions = place_german(sentence)
        starts = dict(zip(map(id, sentence.german), positions, strict=True))
        slots = [slot for slot in author.slots if id(slot.piece) in starts]
        if not slots:
            continue
        kind = generator.choice(sorted({slot.kind for slot in slots}))
        slot = generator.choice([slot for slot in slots if slot.kind == kind])
        position = starts[id(slot.piece)] + slot.offset
        word = words[position]
        answers = slot.answers
        if position == 0:
            word = word.capitalize()
            answers = frozenset(answer.capitalize() for answer in answers)
        text = sentence_text([*words[:position], BLANK, *words[position + 1 :]])
        masked.append(Blank(text, word, kind, answers))
        if len(masked) == count:
            break
    return masked


class Examiner(Author):
    """Author that records the words whose form the grammar determines."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.slots: list[Slot] = []
        self.owner: Mention | None = None  # the subject, while its objects are written

    def sentence(self, structure: Structure) -> Phrase:
        self.slots = []
        return super().sentence(structure)

    def add_object(self, clause: Clause, marks: Marks) -> None:
        outer = self.owner
        self.owner = clause.subject
        super().add_object(clause, marks)
        self.owner = outer

    def mention(
        self,
        noun: Noun,
        case: int,
        preposition: Term = NO_TERM,
        article: str = "",
        plural: bool | None = None,
    ) -> Mention:
        mention = super().mention(noun, case, preposition, article, plural)
        singular_form, plural_form = (noun.german[number][case] for number in (False, True))
        if singular_form != plural_form:  # otherwise forms of both numbers could agree
            owner = None if case == GENITIVE else self.owner
            self.slots += _noun_phrase_slots(mention, case, preposition.german, owner)
        return mention

    def clause(
        self,
        verb: Verb,
        marks: Marks,
        subject: Mention | None = None,
        fixed_object: Mention | None = None,
        extra: float = 0,
    ) -> Clause:
        clause = super().clause(verb, marks, subject, fixed_object, extra)
        self.slots += _verb_slots(clause)
        return clause


def _noun_phrase_slots(
    mention: Mention, case: int, preposition: str, owner: Mention | None
) -> list[Slot]:
    """List the slots of a noun phrase's determiner and adjectives, if it has a determiner."""
    noun = mention.noun
    piece = mention.phrase.german[0]
    column = PLURAL if mention.plural else noun.gender
    first = 1 if preposition else 0
    words = piece.words[:-1] if piece.words[-1] == noun.german[mention.plural][case] else ()
    if words[:first] != (preposition,)[:first] or len(words) == first:
        return []  # the determiner is absent, or contracted with the preposition
    allowed = _determiner_forms(mention.plural, case, column, owner)
    determiner = words[first]
    adjectives = words[first + 1 :]
    ending = next((ending for form, ending in allowed if form == determiner), None)
    if ending is None:
        return []  # an adjective without determiner, or the possessive of another owner
    fits = {form for form, following in allowed if not adjectives or following == ending}
    fits -= {form for form in fits if f"{preposition} {form}" in DATA["contractions"]}
    if not adjectives and mention.plural and "bare" in noun.plural_articles:
        fits |= {stem + ENDINGS["strong"][case][column] for stem in ADJECTIVES}
    slots = [Slot(piece, first, "determiner", frozenset(fits))]
    agreeing = frozenset(stem + ending for stem in ADJECTIVES)
    for offset in range(first + 1, len(words)):
        slots.append(Slot(piece, offset, "adjective", agreeing))
    return slots


def _determiner_forms(
    plural: bool, case: int, column: int, owner: Mention | None
) -> list[tuple[str, str]]:
    """List the determiners' forms, each with the ending of adjectives after it."""
    names = [
        name
        for name, (forms, _, english) in DETERMINERS.items()
        if english[plural] and forms[case][column] and " " not in name
    ]
    if owner is not None:
        names.append(possessive(owner))
    return [
        (DETERMINERS[name][0][case][column], DETERMINERS[name][1][case][column]) for name in names
    ]


def _verb_slots(clause: Clause) -> list[Slot]:
    """List the slots of the finite verb, in second and in final position."""
    verb = clause.verb
    plural = clause.subject.plural
    second = clause.conjugation.second[0]
    final = clause.conjugation.cluster[-1]
    word = second.words[0]
    if word == "zu":  # an infinitive, which agrees with nothing
        return []
    if word == verb.finite[plural]:
        fits = [other for other in VERBS if _frame(other) == _frame(verb)]
        in_second = frozenset(other.finite[plural] for other in fits)
        at_end = frozenset(other.particle + other.finite[plural] for other in fits)
        return [Slot(second, 0, "verb", in_second), Slot(final, 0, "verb", at_end)]
    modals = frozenset(columns(row)[plural] for row in DATA["modals"]["all"])
    return [Slot(second, 0, "verb", modals if word in modals else frozenset({word}))]


def _frame(verb: Verb) -> object:
    """Describe a verb's arguments; verbs with equal frames are interchangeable in a sentence."""
    arguments = (
        verb.particle,
        bool(verb.what),
        verb.case,
        verb.via.german,
        bool(verb.whom),
        bool(verb.complements),
    )
    return arguments, verb.traits & {"that", "try", "copula"}
