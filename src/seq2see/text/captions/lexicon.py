"""The lexicon of the caption grammar: the nouns, verbs and clause structures of captions.toml with all their forms."""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

Words = tuple[str, ...]
Pair = tuple[str, str]
Marks = frozenset[str]

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, NEUTER, FEMININE, PLURAL = range(4)  # the columns of the endings


def columns(row: str) -> Words:
    """The columns of a row, "-" being an empty one."""
    return tuple("" if column == "-" else column for column in row.split())


def column_words(column: str) -> Words:
    """The words of one column, in which an underscore stands for a space."""
    return tuple(column.split("_")) if column.strip("-") else ()


def _pairs(rows: str) -> list[Pair]:
    """Rows of a German and an English word, set off by commas."""
    return [
        (german, english) for german, english in (row.split() for row in rows.split(", ") if row)
    ]


def _determiner(row: str) -> tuple[list[Words], list[Words], Pair]:
    """A determiner's forms, the endings of adjectives after it, and its English singular and plural."""
    stem, own, adjective, english, english_plural = columns(row)
    forms = [tuple(stem + ending for ending in case) for case in ENDINGS[own]]
    return forms, ENDINGS[adjective], (english, english_plural)


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
ENDINGS = {name: [columns(row) for row in rows] for name, rows in DATA["endings"].items()}
DETERMINERS = {name: _determiner(row) for name, row in DATA["determiners"].items()}
MOODS = _pairs(DATA["moods"]["any"])


class Noun:
    """A noun with its forms by number and case, and the articles and adjectives that suit it."""

    def __init__(self, kind: str, row: str) -> None:
        """Derive all this from the noun's row of the lexicon and its kind."""
        article, singular, genitive, plural, english, english_plural, *pronoun = columns(row)
        self.kind, self.gender = kind, ("der", "das", "die").index(article)
        # Weak masculines (der Junge, den Jungen) are those whose genitive ends in -n.
        oblique = genitive if article == "der" and genitive.endswith("n") else singular
        dative = plural if plural.endswith(("n", "s")) else plural + "n"
        self.german = ((singular, oblique, oblique, genitive), (plural, plural, dative, plural))
        self.english = (column_words(english), column_words(english_plural))
        by_gender = ("he", "it", "she")[self.gender] if kind in PERSONS else "it"
        self.pronoun = pronoun[0] if pronoun else by_gender
        style, self.owners = KINDS[kind].get("style", "count"), KINDS[kind].get("owned", "nobody")
        self.articles = ARTICLES[style]
        self.plural_articles = (
            ARTICLES["beings" if kind in BEINGS else "things"] if style == "count" else []
        )
        size, quality, colour = (
            _pairs(KINDS[kind].get(slot, "")) for slot in ("size", "quality", "colour")
        )
        self.predicates = quality + colour
        singles = [(word,) for word in size + quality + colour]
        doubles = [(first, second) for first in size for second in colour]
        # Three nouns in five go without an adjective; of the others one in four has two, if two suit it.
        self.adjectives: list[tuple[Pair, ...]] = [
            *singles * (3 * len(doubles) or 1),
            *doubles * len(singles),
        ]
        self.adjectives += [()] * (3 * len(self.adjectives) // 2 or 1)


class Place(NamedTuple):
    """A preposition in both languages with the case and the noun it governs."""

    group: str
    preposition: Pair
    case: int
    noun: Noun
    plural: bool


class Verb:
    """A verb with its forms, what it goes with, and the traits that say where it can stand."""

    def __init__(self, row: dict[str, str]) -> None:
        """Derive all this from the verb's row of the lexicon."""
        infinitive, singular, self.participle, *auxiliary = row["de"].split()
        self.particle, _, self.base = infinitive.rpartition("|")
        self.finite = (singular, "sind" if self.base == "sein" else self.base)
        *forms, after = (row["en"] + " -").split()[:5]
        self.english = tuple((form, *column_words(after)) for form in forms)
        self.who, self.what, self.whom = (
            _nouns(row.get(role, "")) for role in ("who", "what", "whom")
        )
        german, case, english = columns(row.get("via", f"- {row.get('case', 'accusative')} -"))
        self.via, self.case, self.article = (german, english), CASES[case], row.get("article", "")
        self.places = [
            place for name in row.get("where", "").split() for place in _places("places." + name)
        ]
        self.complements = [place for name in row.get("to", "").split() for place in _places(name)]
        self.manners = _pairs(DATA["manners"].get(row.get("how"), ""))
        self.reasons = _pairs(row.get("why", ""))
        self.traits: set[str] = {*(key for key in row if row[key]), *row.get("can", "").split()}
        self.traits |= {f"where:{place.group}" for place in self.places}
        self.traits |= {f"who:{noun.kind}" for noun in self.who} | {
            f"what:{noun.kind}" for noun in self.what
        }
        subjects = {noun.kind for noun in self.who}
        self.masculines = [noun for noun in self.what if noun.gender == MASCULINE]
        clear = bool(german or self.masculines) or self.case == DATIVE
        facts = {"living": subjects <= BEINGS, "people": subjects <= PERSONS, "clear": clear}
        self.traits |= {fact for fact, holds in facts.items() if holds}
        for trait, rule in DATA["traits"].items():
            if all(
                (need.strip("!") in self.traits) != need.startswith("!") for need in rule.split()
            ):
                self.traits.add(trait)
        self.tenses = DATA["tenses"] | (
            {"perfect": DATA["tenses"]["perfect_ist"]} if auxiliary else {}
        )
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
        self.marks = frozenset(main)
        self.join, self.conjunction = "", ("-", "-")
        self.pairs: list[tuple[Marks, Marks]] = []
        if joined:
            self.join, *extra = joined[0]
            [self.conjunction] = _pairs(JOINS[self.join]["words"])
            for pair in JOINS[self.join]["pairs"]:
                left, right = (frozenset(side.split()) for side in pair.split(" > "))
                self.pairs.append((left | self.marks - {"plain"}, right | {*extra}))
        fronted = re.search(r"fronted\((\w+)\)", name)
        verb_first = "question" in main or self.joined_first
        self.front = fronted[1] if fronted else "" if verb_first else "subject"


def _nouns(names: str) -> list[Noun]:
    """The nouns of the named kinds and groups of kinds."""
    return [
        noun
        for noun in NOUNS.values()
        if {noun.kind, *KINDS[noun.kind]["of"].split()} & {*names.split()}
    ]


def _places(name: str) -> list[Place]:
    """The places of one group, in the dative, or the goals, in the accusative."""
    table, group = name.split(".")
    found = []
    for row in DATA[table][group]:
        german, english, *names = row.split()
        case = CASES[DATA["cases"].get(german, DATA["cases"][table])]
        found += [
            Place(group, (german.strip("*"), english), case, NOUNS[noun], "*" in german)
            for noun in names
        ]
    return found


@cache
def verbs_with(marks: Marks) -> list[Verb]:
    """The verbs with these traits, marks that say nothing of the verb left aside."""
    return [verb for verb in VERBS if marks - {"same", "to", "shared", "simple"} <= verb.traits]


NOUNS = {
    (noun := Noun(kind, row)).german[0][0]: noun
    for kind, rows in DATA["nouns"].items()
    for row in rows
}
PEOPLE, SUN = _nouns("person"), NOUNS["Sonne"]
VERBS = [Verb(row) for rows in DATA["verbs"].values() for row in rows]
COPULA = next(verb for verb in VERBS if "copula" in verb.traits)
STRUCTURES, HELD_OUT = (
    [Structure(name) for name, share in DATA[table].items() for _ in range(share)]
    for table in ("structures", "held_out")
)
