"""A German–English grammar of image captions whose gold word alignments come out by construction."""

from __future__ import annotations

import random
import re
import tomllib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

Option = TypeVar("Option")
Entry = TypeVar("Entry", "Noun", "Verb")
Words = tuple[str, ...]
Pair = tuple[str, str]
Links = tuple[tuple[int, int], ...]
Marks = frozenset[str]
Unit = list[str]  # a run of English words, told from its equals by identity

SPLITS = ("train", "val", "test", "test_structures")
# A pair belongs to the split its English hashes into: no seed and no count can make two splits overlap.
BUCKETS = dict(zip(SPLITS, (range(25, 100), range(0, 7), range(7, 15), range(15, 25)), strict=True))
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, NEUTER, FEMININE, PLURAL = range(4)  # the columns of the endings
TENSES = ("to", "shared", "simple", "modal", "perfect", "passive")


@dataclass(frozen=True)
class Caption:
    """One sentence pair with its gold word alignment and the name of its clause structure."""

    source: str
    target: str
    alignment: Links
    structure: str


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


class Place(NamedTuple):
    """A preposition in both languages with the case and the noun it governs."""

    group: str
    preposition: Pair
    case: int
    noun: Noun
    plural: bool


# The lexicon: entries of captions.toml with all that follows from them.


class Noun:
    """A noun with its forms by number and case, and the articles and adjectives that suit it."""

    def __init__(self, kind: str, row: str) -> None:
        """Derive all this from the noun's row of the lexicon and its kind."""
        article, singular, genitive, plural, english, english_plural, *pronoun = _columns(row)
        self.kind, self.gender = kind, ("der", "das", "die").index(article)
        # Weak masculines (der Junge, den Jungen) are those whose genitive ends in -n.
        oblique = genitive if article == "der" and genitive.endswith("n") else singular
        dative = plural if plural.endswith(("n", "s")) else plural + "n"
        self.german = ((singular, oblique, oblique, genitive), (plural, plural, dative, plural))
        self.english = (_words(english), _words(english_plural))
        self.pronoun = (
            pronoun[0] if pronoun else ("he", "it", "she")[self.gender] if kind in PERSONS else "it"
        )
        style, self.owners = KINDS[kind].get("style", "count"), KINDS[kind].get("owned", "nobody")
        self.articles = ARTICLES[style]
        self.plural_articles = ARTICLES["beings" if kind in BEINGS else "things"] if style == "count" else []
        size, quality, colour = (_pairs(KINDS[kind].get(slot, "")) for slot in ("size", "quality", "colour"))
        self.predicates = quality + colour
        singles = [(word,) for word in size + quality + colour]
        doubles = [(first, second) for first in size for second in colour]
        # Three nouns in five go without an adjective; of the others one in four has two, if two suit it.
        self.adjectives: list[tuple[Pair, ...]] = [
            *singles * (3 * len(doubles) or 1),
            *doubles * len(singles),
        ]
        self.adjectives += [()] * (3 * len(self.adjectives) // 2 or 1)


class Verb:
    """A verb with its forms, what it goes with, and the traits that say where it can stand."""

    def __init__(self, row: dict[str, str]) -> None:
        """Derive all this from the verb's row of the lexicon."""
        infinitive, singular, self.participle, *auxiliary = row["de"].split()
        self.particle, _, self.base = infinitive.rpartition("|")
        self.finite = (singular, "sind" if self.base == "sein" else self.base)
        *forms, after = (row["en"] + " -").split()[:5]
        self.english = tuple((form, *_words(after)) for form in forms)
        self.who, self.what, self.whom = (_nouns(row.get(role, "")) for role in ("who", "what", "whom"))
        german, case, english = _columns(row.get("via", f"- {row.get('case', 'accusative')} -"))
        self.via, self.case, self.article = (german, english), CASES[case], row.get("article", "")
        self.places = [place for name in row.get("where", "").split() for place in _places("places." + name)]
        self.complements = [place for name in row.get("to", "").split() for place in _places(name)]
        self.manners, self.reasons = (
            _pairs(DATA["manners"].get(row.get("how"), "")),
            _pairs(row.get("why", "")),
        )
        self.traits: set[str] = {*(key for key in row if row[key]), *row.get("can", "").split()}
        self.traits |= {f"where:{place.group}" for place in self.places}
        self.traits |= {f"who:{noun.kind}" for noun in self.who} | {f"what:{noun.kind}" for noun in self.what}
        subjects = {noun.kind for noun in self.who}
        self.masculines = [noun for noun in self.what if noun.gender == MASCULINE]
        clear = bool(german or self.masculines) or self.case == DATIVE
        facts = {"living": subjects <= BEINGS, "people": subjects <= PERSONS, "clear": clear}
        self.traits |= {fact for fact, holds in facts.items() if holds}
        for trait, rule in DATA["traits"].items():
            if all((need.strip("!") in self.traits) != need.startswith("!") for need in rule.split()):
                self.traits.add(trait)
        self.tenses = DATA["tenses"] | ({"perfect": DATA["tenses"]["perfect_ist"]} if auxiliary else {})
        if "stative" in self.traits:
            state = self.tenses["copula" if "copula" in self.traits else "simple"]
            self.tenses |= {"present": state, "simple": state}


class Structure:
    """A clause structure by name, such as "fronted(place)+modal" or "while, plain"."""

    def __init__(self, name: str) -> None:
        """Read off the name the marks of a clause, or the pairs of marks that two joined clauses may have."""
        clauses = [clause.split("+") for clause in name.split(", ")]
        self.name, self.joined_first = name, clauses[0][0] in JOINS
        main, *joined = reversed(clauses) if self.joined_first else clauses
        self.join, self.marks, self.pairs = joined[0][0] if joined else "", frozenset(main), []
        self.conjunction = JOINS[self.join]["words"].split() if joined else []
        for pair in JOINS[self.join]["pairs"] if joined else []:
            left, right = (frozenset(side.split()) for side in pair.split(" > "))
            self.pairs.append((left | self.marks - {"plain"}, right | {*joined[0][1:]}))
        front = re.search(r"fronted\((\w+)\)", name)
        self.front = front[1] if front else "" if "question" in main or self.joined_first else "subject"


def _columns(row: str) -> Words:
    """The columns of a row, "-" being an empty one."""
    return tuple("" if column == "-" else column for column in row.split())


def _words(column: str) -> Words:
    """The words of one column, in which an underscore stands for a space."""
    return tuple(column.split("_")) if column.strip("-") else ()


def _pairs(rows: str) -> list[Pair]:
    """Rows of a German and an English word, set off by commas."""
    return [(german, english) for german, english in (row.split() for row in rows.split(", ") if row)]


def _nouns(names: str) -> list[Noun]:
    """The nouns of the named kinds and groups of kinds."""
    return [
        noun for noun in NOUNS.values() if {noun.kind, *KINDS[noun.kind]["of"].split()} & {*names.split()}
    ]


def _places(name: str) -> list[Place]:
    """The places of one group, in the dative, or the goals, in the accusative."""
    table, group = name.split(".")
    found = []
    for row in DATA[table][group]:
        german, english, *names = row.split()
        case = CASES[DATA["cases"].get(german, DATA["cases"][table])]
        found += [
            Place(group, (german.strip("*"), english), case, NOUNS[noun], "*" in german) for noun in names
        ]
    return found


def _determiner(row: str) -> tuple[list[Words], list[Words], Pair]:
    """A determiner's forms, the endings of adjectives after it, and its English singular and plural."""
    stem, own, adjective, english, english_plural = _columns(row)
    forms = [tuple(stem + ending for ending in case) for case in ENDINGS[own]]
    return forms, ENDINGS[adjective], (english, english_plural)


def _time(german: str, english: str, links: str) -> Phrase:
    """A fixed phrase of time with its links."""
    unit, pairs = english.split(), tuple((int(link[0]), int(link[2])) for link in links.split())
    return Phrase((Piece(tuple(german.split()), ((unit, pairs),)),), (unit,))


DATA: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("captions.toml").read_text("utf-8")
)
CASES = {"accusative": ACCUSATIVE, "dative": DATIVE}
KINDS, JOINS = DATA["kinds"], DATA["joins"]
BEINGS, PERSONS = (
    {kind for kind in KINDS if group in KINDS[kind]["of"].split()} for group in ("being", "person")
)
ORDERS, ARTICLES = (
    {name: row.split() for name, row in DATA[table].items()} for table in ("orders", "articles")
)
ENDINGS = {name: [_columns(row) for row in rows] for name, rows in DATA["endings"].items()}
DETERMINERS = {name: _determiner(row) for name, row in DATA["determiners"].items()}
NOUNS = {(noun := Noun(kind, row)).german[0][0]: noun for kind, rows in DATA["nouns"].items() for row in rows}
PEOPLE, SUN = _nouns("person"), NOUNS["Sonne"]
VERBS = [Verb(row) for rows in DATA["verbs"].values() for row in rows]
COPULA = next(verb for verb in VERBS if "copula" in verb.traits)
TIMES, MOODS = [_time(*row) for row in DATA["times"]["phrases"]], _pairs(DATA["moods"]["any"])
STRUCTURES, HELD_OUT = (
    [Structure(name) for name, share in DATA[table].items() for _ in range(share)]
    for table in ("structures", "held_out")
)
COMMA = Piece((",",))


# The grammar: words and phrases of both languages with the links between them.


@dataclass(slots=True)
class Clause:
    """The parts of a clause before each language puts them into its own order."""

    verb: Verb
    subject: Mention
    parts: dict[str, Phrase]
    finite: Pieces
    closing: Pieces  # what ends a main clause: particle, infinitive or participle
    cluster: Pieces  # the whole verb, as it ends a subordinate clause
    tail: Pieces = ()  # a relative clause moved behind the verb
    goal: str = ""

    def german(self, front: str = "", final: bool = False) -> list[Piece]:
        """The German clause opening with the part named `front`, its verb second or final."""
        pieces = [*self.parts[front].german] if front in self.parts else []
        pieces += () if final else self.finite
        for name in ORDERS["german"]:
            if name != front and name in self.parts:
                pieces += self.parts[name].german
        return [*pieces, *(self.cluster if final else self.closing), *self.tail]

    def english(self, front: str = "subject") -> list[Unit]:
        """The English clause opening with the part named `front`."""
        units = [*self.parts[front].english] if front in self.parts else []
        transitive = "object" in self.parts and not self.verb.via[0]
        for name in ORDERS["english_transitive" if transitive else "english"]:
            if name != front and name in self.parts:
                units += self.parts[name].english
        return units


@cache
def _verbs(marks: Marks) -> list[Verb]:
    """The verbs with these traits, marks that say nothing of the verb left aside."""
    return [verb for verb in VERBS if marks - {"same", "to", "shared", "simple"} <= verb.traits]


@cache
def _tellings(group: str, kind: str) -> list[tuple[str, Marks]]:
    """What relative clauses on that kind of noun may tell: its part in them, and the marks of the clause."""
    roles = {"subject": f"who:{kind}", "object": f"what:{kind}"}
    rows = [row.split() for row in DATA["relatives"][group]]
    options = [(part, frozenset((roles[part], *marks))) for part, *marks in rows]
    return [(part, marks) for part, marks in options if _verbs(marks)]


@cache
def _tense(marks: Marks) -> str:
    """The tense that the marks of a clause ask for."""
    return next((tense for tense in TENSES if tense in marks), "present")


@cache
def _span(length: int) -> Links:
    """The links of one German word to each of so many English ones."""
    return tuple((0, place) for place in range(length))


@cache
def _gloss(german: str, english: str) -> Phrase:
    """A German word and the English words that translate it; either may be missing."""
    unit = [*_words(english)]
    return Phrase((Piece((german,), ((unit, _span(len(unit))),)),) if german != "-" else (), (unit,))


def _chain(*phrases: Phrase) -> Phrase:
    """Phrases one after the other in both languages."""
    german = [piece for phrase in phrases for piece in phrase.german]
    return Phrase(tuple(german), tuple([unit for phrase in phrases for unit in phrase.english]))


@lru_cache(maxsize=1 << 16)
def _mention(
    noun: Noun, plural: bool, case: int, article: str, adjectives: tuple[Pair, ...], before: Pair
) -> Mention:
    """A noun phrase, after a preposition if there is one."""
    column = PLURAL if plural else noun.gender
    forms, endings, translations = DETERMINERS[article]
    steps = [(before[0], _words(before[1])), (forms[case][column], _words(translations[plural]))]
    contraction = DATA["contractions"].get(f"{before[0]} {forms[case][column]}")
    if contraction and article == "definite":
        steps = [(contraction, steps[0][1] + steps[1][1])]
    steps += [(stem.removesuffix("e") + endings[case][column], (english,)) for stem, english in adjectives]
    name = noun.english[plural]
    steps.append((noun.german[plural][case], (*name[:-1], name[-1] + "'s") if case == GENITIVE else name))
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
def _conjugate(verb: Verb, plural: bool, tense: str) -> tuple[Phrase, Phrase, Pieces, Pieces, Pieces]:
    """English auxiliary and verb; the German verb as it stands second, at the end, and all at the end."""
    helper, translation, form = _columns(tense)[plural::2]
    auxiliary, main = [*_words(translation)], [*verb.english[int(form)]] if form else []
    links = ((auxiliary, _span(len(auxiliary))), (main, _span(len(main))))
    second, end = (Piece((helper,), links[:1]),), (Piece((verb.particle + verb.base,), links[1:]),)
    if not helper:
        second = (Piece((verb.finite[plural],), links),)
        cluster: Pieces = (Piece((verb.particle + verb.finite[plural],), links),)
        end = (Piece((verb.particle,), links[1:]),)
    elif helper == "zu":
        cluster = (Piece((f"{verb.particle}zu{verb.base}",), links),) if verb.particle else second + end
    else:
        end = (Piece((verb.participle,), links[1:]),) if form == "3" else end
        cluster = end + second
    return Phrase((), (auxiliary,)), Phrase((), (main,)), second, end if end[0].words[0] else (), cluster


def _pronoun(antecedent: Mention) -> Mention:
    """The personal pronoun for what was mentioned before."""
    german = ("er", "es", "sie", "sie")[PLURAL if antecedent.plural else antecedent.noun.gender]
    return antecedent._replace(
        phrase=_gloss(german, "they" if antecedent.plural else antecedent.noun.pronoun)
    )


def _possessive(owner: Mention) -> str:
    """The name of the possessive determiner for what `owner` has."""
    german = "ihr" if owner.plural or owner.noun.gender == FEMININE else "sein"
    return f"{german} {'they' if owner.plural else owner.noun.pronoun}"


def _relative_pronoun(head: Mention, case: int = NOMINATIVE, via: Pair = ("", "")) -> Mention:
    """The relative pronoun for `head`, after the preposition its verb asks for."""
    german = (*_words(via[0]), "d" + ENDINGS["relative"][case][PLURAL if head.plural else head.noun.gender])
    person = "who" if case == NOMINATIVE else "whom"
    unit = [*_words(via[1]), person if head.noun.kind in PERSONS else "which" if via[1] else "that"]
    return head._replace(phrase=Phrase((Piece(german, ((unit, ((0, 0), (1, 1))[: len(unit)]),)),), (unit,)))


class Author:
    """A seeded writer of captions."""

    def __init__(self, seed: str) -> None:
        """Draw from a generator of its own, so that the global random state is left alone."""
        self.random = random.Random(seed).random
        self.used: set[Words] = set()

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
        self, noun: Noun, case: int, before: Pair = ("", ""), article: str = "", plural: bool | None = None
    ) -> Mention:
        """A noun phrase whose article, number and adjectives suit the noun."""
        if plural is None:
            plural = bool(noun.plural_articles) and self.random() < 0.25
        article = article or self.pick(noun.plural_articles if plural else noun.articles)
        adjectives = self.pick(noun.adjectives) if article != "the" else ()
        mention = _mention(noun, plural, case, article, adjectives, before)
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
            return first._replace(phrase=_chain(first.phrase, self.relative(first, acting=True)))
        if first.noun.kind in PERSONS and not first.plural and self.random() < 0.06:
            other = self.mention(self.fresh(nouns), NOMINATIVE, article=article, plural=False).phrase
            return first._replace(phrase=_chain(first.phrase, _gloss("und", "and"), other), plural=True)
        return first

    def relative(self, head: Mention, acting: bool) -> Phrase:
        """A relative clause on `head` that agrees with what a head `acting` in the main clause does there."""
        group = "acting" if acting else "seen"
        if head.noun.kind not in BEINGS:
            group = "thing"
        elif not acting and head.noun.gender == MASCULINE and not head.plural:
            group = "shown"  # only a masculine pronoun tells a living object from a subject
        front, marks = self.pick(_tellings(group, head.noun.kind))
        verb = self.fresh(_verbs(marks))
        if front == "subject":
            clause = self.clause(verb, marks, subject=_relative_pronoun(head))
        else:
            clause = self.clause(verb, marks, given=_relative_pronoun(head, verb.case, verb.via))
        return Phrase((COMMA, *clause.german(front, final=True), COMMA), tuple(clause.english(front)))

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
        row = verb.tenses.get(tense, "")
        if tense == "modal":
            row = self.pick(
                DATA["modals"]["ask" if "question" in marks else "aim" if "aim" in marks else "all"]
            )
        auxiliary, main, second, end, cluster = _conjugate(verb, subject.plural, row)
        parts = {"subject": subject.phrase, "auxiliary": auxiliary, "main": main}
        clause = Clause(verb, subject, parts, second, end, cluster)
        several = self.random() < 0.15
        if tense == "passive":
            parts["object"] = self.mention(self.fresh(verb.who), DATIVE, ("von", "by"), plural=several).phrase
        elif given:
            parts["object"] = given.phrase
        elif verb.what:
            self.add_object(clause, marks)
        if "negated" in marks and "negation" not in parts:
            parts["negation"] = _gloss("nicht", "not")
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
        plural = False if shown or "negated" in marks or verb.traits & {"single", "mass", "each"} else None
        if shown:
            article = self.pick(ARTICLES["patent"])
        elif "negated" in marks:
            deniable = verb.case == ACCUSATIVE and noun.kind not in BEINGS
            article = self.pick(("no", "definite")) if deniable else "definite"
        elif "each" in verb.traits and subject.plural:
            article, plural = self.pick(("definite", "bare", _possessive(subject))), True
        elif noun.owners in KINDS[subject.noun.kind]["of"] and not (
            article or "unowned" in verb.traits or "relative(object)" in marks
        ):
            chance = self.random()
            article = _possessive(subject) if chance < 0.35 else ""
            article = "owned" if chance < 0.1 and not verb.via[0] else article
        mention = self.mention(noun, verb.case, verb.via, article, plural)
        german, english = mention.phrase
        if article == "no":
            clause.parts["negation"] = denial = _gloss("-", "not")
            german = (Piece(german[0].words, (*german[0].targets, (denial.english[0], _span(1)))),)
        if "relative(object)" in marks:
            clause.tail, told = self.relative(mention, acting=False)
            english += told
        clause.parts["object"] = Phrase(german, english)

    def add_adverbials(self, clause: Clause, tense: str, marks: Marks, extra: float) -> None:
        """Give the clause what its verb needs besides objects, and perhaps a place, a time and a manner."""
        verb, parts = clause.verb, clause.parts
        if "copula" in verb.traits:
            parts["complement"] = _gloss(*self.pick(clause.subject.noun.predicates))
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
            parts["manner"] = _gloss(*self.pick(verb.manners))

    def place(self, place: Place) -> Phrase:
        """A prepositional phrase of place or direction."""
        article = self.pick(ARTICLES["places" if place.plural else "place"])
        self.used.add(place.noun.english[0])
        return self.mention(place.noun, place.case, place.preposition, article, place.plural).phrase

    def other(self, main: Clause, marks: Marks) -> Clause:
        """The clause joined to the main one: about the weather, the subject's state, or what someone does."""
        if topic := marks & {"weather", "storm"}:
            verb, sun = self.fresh(_verbs(topic)), self.mention(SUN, NOMINATIVE)
            subject = sun if verb.base == "scheinen" else sun._replace(phrase=_gloss("es", "it"))
            return self.clause(verb, marks, subject)
        if marks & {"state", "mood"}:
            clause = self.clause(COPULA, marks, _pronoun(main.subject))
            clause.parts["complement"] = _gloss(*self.pick(main.verb.reasons if "state" in marks else MOODS))
            return clause
        if "same" not in marks:
            return self.clause(self.fresh(_verbs(marks)), marks, extra=0.15)
        goal = f"where:{main.goal}" if "motion" in main.verb.traits else "event"
        verb = self.fresh(_verbs(marks | {goal, f"who:{main.subject.noun.kind}"}))
        clause = self.clause(verb, marks, _pronoun(main.subject))
        if _tense(marks) in ("shared", "to"):
            del clause.parts["subject"]
        return clause

    def join(self, structure: Structure) -> Phrase:
        """A main clause and the one joined to it, chosen so that together they make sense."""
        marks, other_marks = self.pick(structure.pairs)
        verb = self.fresh(_verbs(marks))
        main = self.clause(verb, marks, extra=0.2 if "event" in verb.traits else 0)
        other = self.other(main, other_marks)
        joined = Phrase(tuple(other.german("subject", final=structure.join != "and")), tuple(other.english()))
        sentence = Phrase(tuple(main.german(structure.front)), tuple(main.english()))
        conjunction = _gloss(*structure.conjunction)
        if structure.joined_first:
            return _chain(conjunction, joined, _gloss(",", ","), sentence)
        comma = Phrase((COMMA,) if structure.join != "and" else (), ())
        return _chain(sentence, comma, conjunction, joined)

    def sentence(self, structure: Structure) -> Phrase:
        """A whole sentence of that structure."""
        self.used.clear()
        if structure.join:
            return _chain(self.join(structure), _gloss(".", "."))
        marks, front = structure.marks, structure.front
        # Things are seldom subjects, so that a share of the relative clauses is kept for them.
        inert = marks == {"relative(subject)"} and self.random() < 0.3
        verb = self.fresh(_verbs(marks | {"inert"} if inert else marks))
        clause = self.clause(verb, marks, extra=0 if "negated" in marks else 0.35)
        opening = front if front in ("place", "time") else "auxiliary" if "question" in marks else "subject"
        english = clause.english(opening)
        if opening in ("place", "time"):
            english.insert(len(clause.parts[opening].english), [","])
        mark = "?" if "question" in marks else "."
        return _chain(Phrase(tuple(clause.german(front)), tuple(english)), _gloss(mark, mark))


def words(text: str) -> list[str]:
    """The words and punctuation marks of a text, the units of the alignment."""
    return re.findall(r"\w+(?:'\w+)*|[^\w\s]", text)


def _written(words: list[str]) -> str:
    """The words as one line of text."""
    text = " ".join(words).replace(" ,", ",")
    return text[0].upper() + text[1:-2] + text[-1]


def _english(sentence: Phrase) -> tuple[str, dict[int, int]]:
    """The English text of a sentence, and at which word each of its units starts."""
    english: list[str] = []
    starts: dict[int, int] = {}
    for unit in sentence.english:
        starts[id(unit)] = len(english)
        english += unit
    return _written(english), starts


def _german(sentence: Phrase, starts: dict[int, int]) -> tuple[str, Links]:
    """The German text of a sentence and its links to the English words."""
    german: list[str] = []
    links: list[tuple[int, int]] = []
    for piece in sentence.german:
        if piece.words[0] in ",.?" and german[-1] == ",":  # clauses that end together share one mark
            german.pop()
        place = len(german)
        for unit, pairs in piece.targets:
            start = starts[id(unit)]
            links += [(place + source, start + target) for source, target in pairs]
        german += piece.words
    return _written(german), tuple(sorted(links))


def generate(split: str, count: int, seed: int = 1) -> list[Caption]:
    """The first `count` captions of a split for a seed, all distinct."""
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    if count < 0:
        raise ValueError(f"count {count} is negative: it has to be 0 or more")
    author, bucket = Author(f"{split} {seed}"), BUCKETS[split]
    structures = HELD_OUT if split == "test_structures" else STRUCTURES
    captions: dict[str, Caption] = {}
    while len(captions) < count:
        structure = author.pick(structures)
        sentence = author.sentence(structure)
        target, starts = _english(sentence)
        # A phrase said twice ("in the park … in the park") reads badly, and its units are not told apart.
        if len(starts) < len(sentence.english) or zlib.crc32(target.encode()) % 100 not in bucket:
            continue
        source, alignment = _german(sentence, starts)
        if source not in captions:
            captions[source] = Caption(source, target, alignment, structure.name)
    return list(captions.values())
