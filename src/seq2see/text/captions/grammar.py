"""The grammar of the captions: how an author makes phrases into clauses, and clauses into sentences."""

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from seq2see.text.captions.lexicon import (
    ACCUSATIVE,
    ARTICLES,
    BEINGS,
    COPULA,
    DATA,
    DATIVE,
    GENITIVE,
    KINDS,
    MASCULINE,
    MOODS,
    NOMINATIVE,
    PEOPLE,
    PERSONS,
    SUN,
    Marks,
    Noun,
    Pair,
    Place,
    Structure,
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
    pronoun,
    relative_pronoun,
)

Option = TypeVar("Option")
Entry = TypeVar("Entry", Noun, Verb)
TENSES = ("to", "shared", "simple", "modal", "perfect", "passive")


@cache
def _tellings(group: str, kind: str) -> list[tuple[str, Marks]]:
    """What relative clauses on that kind of noun may tell: its part in them, and the marks of the clause."""
    roles = {"subject": f"who:{kind}", "object": f"what:{kind}"}
    rows = [row.split() for row in DATA["relatives"][group]]
    options = [(part, frozenset((roles[part], *marks))) for part, *marks in rows]
    return [(part, marks) for part, marks in options if verbs_with(marks)]


@cache
def _tense(marks: Marks) -> str:
    """The tense that the marks of a clause ask for."""
    return next((tense for tense in TENSES if tense in marks), "present")


class Author:
    """A seeded writer of captions."""

    def __init__(self, seed: str) -> None:
        """Draw from a generator of its own, so that the global random state is left alone."""
        self.random = random.Random(seed).random
        self.used: set[Words] = set()
        self.plural = False  # the subject of the main clause of the latest sentence

    def pick(self, options: Sequence[Option]) -> Option:
        """One of the options, each as likely as the next."""
        return options[int(self.random() * len(options))]

    def fresh(self, entries: Sequence[Entry]) -> Entry:
        """A noun or verb this sentence has not used yet, if there is one."""
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
        before: Pair = ("", ""),
        article: str = "",
        plural: bool | None = None,
    ) -> Mention:
        """A noun phrase whose article, number and adjectives suit the noun."""
        if plural is None:
            plural = bool(noun.plural_articles) and self.random() < 0.25
        article = article or self.pick(noun.plural_articles if plural else noun.articles)
        adjectives = self.pick(noun.adjectives) if article != "the" else ()
        mention = noun_phrase(noun, plural, case, article, adjectives, before)
        if article != "owned":
            return mention
        owner = self.mention(self.fresh(PEOPLE), GENITIVE, article="definite", plural=False).phrase
        german, english = mention.phrase
        return mention._replace(phrase=Phrase(german + owner.german, owner.english + english))

    def subject(self, nouns: Sequence[Noun], marks: Marks) -> Mention:
        """A subject: a noun phrase, with a relative clause if the marks ask for it, or two joined by und."""
        article = "definite" if marks & {"question", "negated"} else ""
        first = self.mention(self.fresh(nouns), NOMINATIVE, article=article)
        if "relative(subject)" in marks:
            return first._replace(phrase=chain(first.phrase, self.relative(first, acting=True)))
        if first.noun.kind in PERSONS and not first.plural and self.random() < 0.06:
            other = self.mention(
                self.fresh(nouns), NOMINATIVE, article=article, plural=False
            ).phrase
            return first._replace(
                phrase=chain(first.phrase, gloss("und", "and"), other), plural=True
            )
        return first

    def relative(self, head: Mention, acting: bool) -> Phrase:
        """A relative clause on `head` that agrees with what a head `acting` in the main clause does there."""
        group = "acting" if acting else "seen"
        if head.noun.kind not in BEINGS:
            group = "thing"
        elif not acting and head.noun.gender == MASCULINE and not head.plural:
            group = "shown"  # only a masculine pronoun tells a living object from a subject
        front, marks = self.pick(_tellings(group, head.noun.kind))
        verb = self.fresh(verbs_with(marks))
        if front == "subject":
            clause = self.clause(verb, marks, subject=relative_pronoun(head))
        else:
            clause = self.clause(verb, marks, given=relative_pronoun(head, verb.case, verb.via))
        return Phrase(
            (COMMA, *clause.german(front, final=True), COMMA), tuple(clause.english(front))
        )

    def clause(
        self,
        verb: Verb,
        marks: Marks,
        subject: Mention | None = None,
        given: Mention | None = None,
        extra: float = 0,
    ) -> Clause:
        """A clause of that verb with its subject, its objects (or the object given) and its adverbials."""
        tense = _tense(marks)
        subject = subject or self.subject(verb.what if tense == "passive" else verb.who, marks)
        if tense == "modal":
            row = self.pick(
                DATA["modals"]["ask" if "question" in marks else "aim" if "aim" in marks else "all"]
            )
        else:
            row = verb.tenses[tense]
        conjugation = conjugate(verb, subject.plural, row)
        parts = {
            "subject": subject.phrase,
            "auxiliary": conjugation.auxiliary,
            "main": conjugation.main,
        }
        clause = Clause(verb, subject, parts, conjugation)
        several = self.random() < 0.15
        if tense == "passive":
            parts["object"] = self.mention(
                self.fresh(verb.who), DATIVE, ("von", "by"), plural=several
            ).phrase
        elif given:
            parts["object"] = given.phrase
        elif verb.what:
            self.add_object(clause, marks)
        if "negated" in marks and "negation" not in parts:
            parts["negation"] = gloss("nicht", "not")
        if verb.whom:
            parts["recipient"] = self.mention(
                self.fresh(verb.whom), DATIVE, ("", "to"), plural=several
            ).phrase
        # After an English relative clause an adverbial would seem to belong to that clause.
        self.add_adverbials(clause, tense, marks, 0 if "relative(object)" in marks else extra)
        return clause

    def add_object(self, clause: Clause, marks: Marks) -> None:
        """Give the clause its object, with a relative clause if the marks ask for one."""
        verb, subject, article = clause.verb, clause.subject, clause.verb.article
        # Where the object comes first, only a masculine accusative shows that it is not the subject.
        shown = "fronted(object)" in marks and verb.case == ACCUSATIVE and not verb.via[0]
        noun = self.fresh(verb.masculines if shown else verb.what)
        plural = (
            False
            if shown or "negated" in marks or verb.traits & {"single", "mass", "each"}
            else None
        )
        if shown:
            article = self.pick(ARTICLES["patent"])
        elif "negated" in marks:
            deniable = verb.case == ACCUSATIVE and noun.kind not in BEINGS
            article = self.pick(("no", "definite")) if deniable else "definite"
        elif "each" in verb.traits and subject.plural:
            article, plural = self.pick(("definite", "bare", possessive(subject))), True
        elif noun.owners in KINDS[subject.noun.kind]["of"] and not (
            article or "unowned" in verb.traits or "relative(object)" in marks
        ):
            chance = self.random()
            article = possessive(subject) if chance < 0.35 else ""
            article = "owned" if chance < 0.1 and not verb.via[0] else article
        mention = self.mention(noun, verb.case, verb.via, article, plural)
        german, english = mention.phrase
        if article == "no":
            clause.parts["negation"] = denial = gloss("-", "not")
            # "kein" is both the article and the negation.
            german = (Piece(german[0].words, (*german[0].targets, (denial.english[0], ((0, 0),)))),)
        if "relative(object)" in marks:
            clause.tail, told = self.relative(mention, acting=False)
            english += told
        clause.parts["object"] = Phrase(german, english)

    def add_adverbials(self, clause: Clause, tense: str, marks: Marks, extra: float) -> None:
        """Give the clause what its verb needs besides objects, and perhaps a place, a time and a manner."""
        verb, parts = clause.verb, clause.parts
        if "copula" in verb.traits:
            parts["complement"] = gloss(*self.pick(clause.subject.noun.predicates))
        elif verb.complements:
            goal = self.pick(verb.complements)
            while (
                "errand" in marks and goal.group == "path"
            ):  # nobody goes through a park to do something there
                goal = self.pick(verb.complements)
            clause.goal, parts["complement"] = goal.group, self.place(goal)
        elif verb.places and ("fronted(place)" in marks or self.random() < extra):
            parts["place"] = self.place(self.pick(verb.places))
        if "fronted(time)" in marks or (tense == "present" and self.random() < extra / 3):
            parts["time"] = self.pick(TIMES)
        if (
            verb.manners
            and tense in ("present", "perfect")
            and "negated" not in marks
            and self.random() < 0.15
        ):
            parts["manner"] = gloss(*self.pick(verb.manners))

    def place(self, place: Place) -> Phrase:
        """A prepositional phrase of place or direction."""
        article = self.pick(ARTICLES["places" if place.plural else "place"])
        self.used.add(place.noun.english[0])
        return self.mention(place.noun, place.case, place.preposition, article, place.plural).phrase

    def other(self, main: Clause, marks: Marks) -> Clause:
        """The clause joined to the main one: about the weather, the subject's state, or what someone does."""
        if topic := marks & {"weather", "storm"}:
            verb, sun = self.fresh(verbs_with(topic)), self.mention(SUN, NOMINATIVE)
            subject = sun if verb.base == "scheinen" else sun._replace(phrase=gloss("es", "it"))
            return self.clause(verb, marks, subject)
        if marks & {"state", "mood"}:
            clause = self.clause(COPULA, marks, pronoun(main.subject))
            clause.parts["complement"] = gloss(
                *self.pick(main.verb.reasons if "state" in marks else MOODS)
            )
            return clause
        if "same" not in marks:
            return self.clause(self.fresh(verbs_with(marks)), marks, extra=0.15)
        goal = f"where:{main.goal}" if "motion" in main.verb.traits else "event"
        verb = self.fresh(verbs_with(marks | {goal, f"who:{main.subject.noun.kind}"}))
        clause = self.clause(verb, marks, pronoun(main.subject))
        if _tense(marks) in ("shared", "to"):
            del clause.parts["subject"]
        return clause

    def join(self, structure: Structure) -> Phrase:
        """A main clause and the one joined to it, chosen so that together they make sense."""
        marks, other_marks = self.pick(structure.pairs)
        verb = self.fresh(verbs_with(marks))
        main = self.clause(verb, marks, extra=0.2 if "event" in verb.traits else 0)
        self.plural = main.subject.plural
        other = self.other(main, other_marks)
        joined = Phrase(
            tuple(other.german("subject", final=structure.join != "and")), tuple(other.english())
        )
        sentence = Phrase(tuple(main.german(structure.front)), tuple(main.english()))
        conjunction = gloss(*structure.conjunction)
        if structure.joined_first:
            return chain(conjunction, joined, gloss(",", ","), sentence)
        comma = Phrase((COMMA,) if structure.join != "and" else (), ())
        return chain(sentence, comma, conjunction, joined)

    def sentence(self, structure: Structure) -> Phrase:
        """A whole sentence of that structure."""
        self.used.clear()
        if structure.join:
            return chain(self.join(structure), gloss(".", "."))
        marks, front = structure.marks, structure.front
        # Things are seldom subjects, so that a share of the relative clauses is kept for them.
        inert = marks == {"relative(subject)"} and self.random() < 0.3
        verb = self.fresh(verbs_with(marks | {"inert"} if inert else marks))
        clause = self.clause(verb, marks, extra=0 if "negated" in marks else 0.35)
        self.plural = clause.subject.plural
        opening = (
            front
            if front in ("place", "time")
            else "auxiliary"
            if "question" in marks
            else "subject"
        )
        english = clause.english(opening)
        if opening in ("place", "time"):
            english.insert(len(clause.parts[opening].english), [","])
        mark = "?" if "question" in marks else "."
        return chain(Phrase(tuple(clause.german(front)), tuple(english)), gloss(mark, mark))
