"""Sentences of the caption grammar: single clauses, and main clauses with a second one joined."""

from typing import NamedTuple

from seq2see.text.captions.clauses import ClauseWriter, tense_of
from seq2see.text.captions.lexicon import (
    COPULA,
    MOODS,
    NOMINATIVE,
    SUN,
    Marks,
    Structure,
    verbs_with,
)
from seq2see.text.captions.phrases import COMMA, Clause, Phrase, chain, gloss, pronoun, stand_in


class Plan(NamedTuple):
    """Structure and clauses of a sentence, from which its Chinese is written."""

    structure: Structure
    main: Clause
    other: Clause | None = None


class Author(ClauseWriter):
    """Seeded writer of captions."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.plural = False  # number of the main clause's subject in the latest sentence
        self.plan: Plan  # clauses of the latest sentence

    def sentence(self, structure: Structure) -> Phrase:
        """Write a sentence of the given structure."""
        self.used.clear()
        if structure.join:
            return chain(self.join(structure), gloss(".", "."))
        marks = structure.marks
        # Things are seldom subjects, so a share of the relative clauses is reserved for them.
        inert = marks == {"relative(subject)"} and self.random() < 0.3
        verb = self.fresh(verbs_with(marks | {"inert"} if inert else marks))
        clause = self.clause(verb, marks, extra=0 if "negated" in marks else 0.35)
        self.plan = Plan(structure, clause)
        self.plural = clause.subject.plural
        opening = "auxiliary" if "question" in marks else "subject"
        if structure.front in ("place", "time"):
            opening = structure.front
        english = clause.english(opening)
        if opening in ("place", "time"):
            english.insert(len(clause.parts[opening].english), [","])
        mark = "?" if "question" in marks else "."
        german = clause.german(structure.front)
        return chain(Phrase(tuple(german), tuple(english)), gloss(mark, mark))

    def join(self, structure: Structure) -> Phrase:
        """Write a main clause and a second one, chosen so that together they make sense."""
        marks, other_marks = self.pick(structure.pairs)
        verb = self.fresh(verbs_with(marks))
        main = self.clause(verb, marks, extra=0.2 if "event" in verb.traits else 0)
        self.plural = main.subject.plural
        other = self.other(main, other_marks)
        self.plan = Plan(structure, main, other)
        subordinate = structure.join != "and"
        german = other.german("subject", final=subordinate)
        joined = Phrase(tuple(german), tuple(other.english()))
        sentence = Phrase(tuple(main.german(structure.front)), tuple(main.english()))
        conjunction = gloss(structure.conjunction.german, structure.conjunction.english)
        if structure.joined_first:
            return chain(conjunction, joined, gloss(",", ","), sentence)
        comma = Phrase((COMMA,) if subordinate else (), ())
        return chain(sentence, comma, conjunction, joined)

    def other(self, main: Clause, marks: Marks) -> Clause:
        """Write the second clause: the weather, the subject's state, or another event."""
        if topic := marks & {"weather", "storm"}:
            verb = self.fresh(verbs_with(topic))
            sun = self.mention(SUN, NOMINATIVE)
            subject = (
                sun if verb.base == "scheinen" else stand_in(sun, gloss("es", "it"), "expletive")
            )
            return self.clause(verb, marks, subject)
        if marks & {"state", "mood"}:
            clause = self.clause(COPULA, marks, pronoun(main.subject))
            states = main.verb.reasons if "state" in marks else MOODS
            self.add_state(clause, states)
            return clause
        if "same" not in marks:
            return self.clause(self.fresh(verbs_with(marks)), marks, extra=0.15)
        goal = f"where:{main.goal}" if "motion" in main.verb.traits else "event"
        verb = self.fresh(verbs_with(marks | {goal, f"who:{main.subject.noun.kind}"}))
        clause = self.clause(verb, marks, pronoun(main.subject))
        if tense_of(marks) in ("shared", "to"):
            del clause.parts["subject"]
        return clause
