"""Clauses of the caption grammar: random choices, noun phrases, and clauses built of them."""

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from seq2see.text.captions.lexicon import (
    ACCUSATIVE,
    ARTICLES,
    BEINGS,
    DATA,
    DATIVE,
    GENITIVE,
    KINDS,
    MASCULINE,
    NO_TERM,
    NOMINATIVE,
    PEOPLE,
    PERSONS,
    Marks,
    Noun,
    Place,
    Term,
    Verb,
    Words,
    verbs_with,
)
from seq2see.text.captions.phrases import (
    COMMA,
    TIMES,
    Clause,
    Mention,
    Phrase,
    Piece,
    chain,
    conjugate,
    gloss,
    noun_phrase,
    possessive,
    relative_pronoun,
)

Option = TypeVar("Option")
Entry = TypeVar("Entry", Noun, Verb)
TENSES = ("to", "shared", "simple", "modal", "perfect", "passive")


@cache
def tense_of(marks: Marks) -> str:
    """Return the tense that the marks of a clause ask for."""
    return next((tense for tense in TENSES if tense in marks), "present")


@cache
def _relative_options(group: str, kind: str) -> list[tuple[str, Marks]]:
    """List the relative clauses a kind of noun can head: its role in one, and the marks of it."""
    traits = {"subject": f"who:{kind}", "object": f"what:{kind}"}
    rows = [row.split() for row in DATA["relatives"][group]]
    options = [(role, frozenset((traits[role], *marks))) for role, *marks in rows]
    return [(role, marks) for role, marks in options if verbs_with(marks)]


class ClauseWriter:
    """Seeded writer of noun phrases and clauses; `marks` name the structure a clause must have."""

    def __init__(self, seed: str) -> None:
        """Create a generator for this writer, so that the global random state stays untouched."""
        self.random = random.Random(seed).random
        self.used: set[Words] = set()

    def pick(self, options: Sequence[Option]) -> Option:
        """Draw one of the options uniformly."""
        return options[int(self.random() * len(options))]

    def fresh(self, entries: Sequence[Entry]) -> Entry:
        """Draw a noun or verb that the sentence has not used yet, if 20 draws find one."""
        for _ in range(20):
            entry = entries[int(self.random() * len(entries))]
            if entry.english[0] not in self.used:
                break
        self.used.add(entry.english[0])
        return entry

    def mention(
        self,
        noun: Noun,
        case: int,
        preposition: Term = NO_TERM,
        article: str = "",
        plural: bool | None = None,
    ) -> Mention:
        """Write a noun phrase whose article, number and adjectives suit the noun."""
        if plural is None:
            plural = bool(noun.plural_articles) and self.random() < 0.25
        article = article or self.pick(noun.plural_articles if plural else noun.articles)
        adjectives = self.pick(noun.adjectives) if article != "the" else ()
        mention = noun_phrase(noun, plural, case, article, adjectives, preposition)
        if article != "owned":
            return mention
        owner = self.mention(self.fresh(PEOPLE), GENITIVE, article="definite", plural=False)
        german, english = mention.phrase
        phrase = Phrase(german + owner.phrase.german, owner.phrase.english + english)
        return mention._replace(phrase=phrase, owner=owner)

    def subject(self, nouns: Sequence[Noun], marks: Marks) -> Mention:
        """Write a subject: a noun phrase, perhaps with a relative clause, or two joined by und."""
        article = "definite" if marks & {"question", "negated"} else ""
        first = self.mention(self.fresh(nouns), NOMINATIVE, article=article)
        if "relative(subject)" in marks:
            phrase, relative = self.relative(first, acting=True)
            return first._replace(phrase=chain(first.phrase, phrase), relative=relative)
        if first.noun.kind in PERSONS and not first.plural and self.random() < 0.06:
            second = self.mention(self.fresh(nouns), NOMINATIVE, article=article, plural=False)
            both = chain(first.phrase, gloss("und", "and"), second.phrase)
            return first._replace(phrase=both, plural=True, partner=second)
        return first

    def relative(self, head: Mention, acting: bool) -> tuple[Phrase, Clause]:
        """Write a relative clause on `head`; `acting` if it is the subject of the main clause."""
        group = "acting" if acting else "seen"
        if head.noun.kind not in BEINGS:
            group = "thing"
        elif not acting and head.noun.gender == MASCULINE and not head.plural:
            group = "shown"  # only a masculine pronoun distinguishes a living object from a subject
        role, marks = self.pick(_relative_options(group, head.noun.kind))
        verb = self.fresh(verbs_with(marks))
        if role == "subject":
            clause = self.clause(verb, marks, subject=relative_pronoun(head))
        else:
            pronoun = relative_pronoun(head, verb.case, verb.via)
            clause = self.clause(verb, marks, fixed_object=pronoun)
        clause.gap = role
        german = (COMMA, *clause.german(role, final=True), COMMA)
        return Phrase(german, tuple(clause.english(role))), clause

    def clause(
        self,
        verb: Verb,
        marks: Marks,
        subject: Mention | None = None,
        fixed_object: Mention | None = None,
        extra: float = 0,
    ) -> Clause:
        """Write a clause: verb, subject, objects, and adverbials with probability `extra`."""
        tense = tense_of(marks)
        subject = subject or self.subject(verb.what if tense == "passive" else verb.who, marks)
        row, modal = self._modal(marks) if tense == "modal" else (verb.tenses[tense], "")
        conjugation = conjugate(verb, subject.plural, row)
        parts = {
            "subject": subject.phrase,
            "auxiliary": conjugation.auxiliary,
            "main": conjugation.main,
        }
        clause = Clause(verb, subject, parts, conjugation, tense, modal)
        plural = self.random() < 0.15  # of the agent or recipient
        if tense == "passive":
            by = Term("von", "by")
            clause.object = self.mention(self.fresh(verb.who), DATIVE, by, plural=plural)
            parts["object"] = clause.object.phrase
        elif fixed_object:
            clause.object = fixed_object
            parts["object"] = fixed_object.phrase
        elif verb.what:
            self.add_object(clause, marks)
        if "negated" in marks and "negation" not in parts:
            parts["negation"] = gloss("nicht", "not")
        if verb.whom:
            to = Term("", "to")
            clause.recipient = self.mention(self.fresh(verb.whom), DATIVE, to, plural=plural)
            parts["recipient"] = clause.recipient.phrase
        # After an English relative clause, an adverbial would seem to belong to that clause.
        self.add_adverbials(clause, tense, marks, 0 if "relative(object)" in marks else extra)
        return clause

    def _modal(self, marks: Marks) -> tuple[str, str]:
        """Draw a modal verb: its row of tenses, and its Chinese."""
        group = "all"
        if "question" in marks:
            group = "ask"
        elif "aim" in marks:
            group = "aim"
        row, _, chinese = self.pick(DATA["modals"][group]).rpartition(" ")
        return row, chinese

    def add_object(self, clause: Clause, marks: Marks) -> None:
        """Give the clause its object, with a relative clause if the marks ask for one."""
        verb = clause.verb
        # In front, only a masculine accusative shows that the object is not the subject.
        patent = "fronted(object)" in marks and verb.case == ACCUSATIVE and not verb.via.german
        noun = self.fresh(verb.masculines if patent else verb.what)
        article, plural = self._object_article(clause, noun, marks, patent)
        mention = self.mention(noun, verb.case, verb.via, article, plural)
        german, english = mention.phrase
        if article == "no":
            negation = gloss("-", "not")
            clause.parts["negation"] = negation
            # "kein" is both the article and the negation.
            targets = (*german[0].targets, (negation.english[0], ((0, 0),)))
            german = (Piece(german[0].words, targets),)
        if "relative(object)" in marks:
            (clause.tail, relative), relative_clause = self.relative(mention, acting=False)
            english += relative
            mention = mention._replace(relative=relative_clause)
        clause.object = mention
        clause.parts["object"] = Phrase(german, english)

    def _object_article(
        self, clause: Clause, noun: Noun, marks: Marks, patent: bool
    ) -> tuple[str, bool | None]:
        """Choose an object's article and number; "" and None leave them to `mention`."""
        verb = clause.verb
        subject = clause.subject
        singular = patent or "negated" in marks or verb.traits & {"single", "mass", "each"}
        plural = False if singular else None
        if patent:
            return self.pick(ARTICLES["patent"]), plural
        if "negated" in marks:
            deniable = verb.case == ACCUSATIVE and noun.kind not in BEINGS
            return self.pick(("no", "definite")) if deniable else "definite", plural
        if "each" in verb.traits and subject.plural:
            return self.pick(("definite", "bare", possessive(subject))), True
        if verb.article or "unowned" in verb.traits or "relative(object)" in marks:
            return verb.article, plural
        if noun.owners in KINDS[subject.noun.kind]["of"]:
            chance = self.random()
            if chance < 0.1 and not verb.via.german:
                return "owned", plural
            return possessive(subject) if chance < 0.35 else "", plural
        return "", plural

    def add_adverbials(self, clause: Clause, tense: str, marks: Marks, extra: float) -> None:
        """Give the clause its complement, and perhaps a place, a time and a manner."""
        verb = clause.verb
        parts = clause.parts
        if "copula" in verb.traits:
            self.add_state(clause, clause.subject.noun.predicates)
        elif verb.complements:
            goal = self.pick(verb.complements)
            while "errand" in marks and goal.group == "path":
                goal = self.pick(verb.complements)  # nobody goes through a park to do something
            clause.goal = goal.group
            clause.place = self.place(goal)
            parts["complement"] = clause.place.phrase
        elif verb.places and ("fronted(place)" in marks or self.random() < extra):
            clause.place = self.place(self.pick(verb.places))
            parts["place"] = clause.place.phrase
        if "fronted(time)" in marks or (tense == "present" and self.random() < extra / 3):
            parts["time"], clause.time = self.pick(TIMES)
        modifiable = tense in ("present", "perfect") and "negated" not in marks
        if verb.manners and modifiable and self.random() < 0.15:
            clause.manner = self.pick(verb.manners)
            parts["manner"] = gloss(clause.manner.german, clause.manner.english)

    def add_state(self, clause: Clause, states: Sequence[Term]) -> None:
        """Give a clause of sein its complement, or another one."""
        clause.state = self.pick(states)
        clause.parts["complement"] = gloss(clause.state.german, clause.state.english)

    def place(self, place: Place) -> Mention:
        """Write a prepositional phrase of place or direction."""
        article = self.pick(ARTICLES["places" if place.plural else "place"])
        self.used.add(place.noun.english[0])
        return self.mention(place.noun, place.case, place.preposition, article, place.plural)
