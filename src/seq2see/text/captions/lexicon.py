"""Lexicon of the caption grammar: nouns, verbs and clause structures read from captions.toml."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

Words = tuple[str, ...]
Marks = frozenset[str]


class Term(NamedTuple):
    """Word or preposition in each language."""

    german: str
    english: str
    chinese: str = ""


NO_TERM = Term("", "")

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, NEUTER, FEMININE, PLURAL = range(4)  # the columns of the tables of endings


def columns(row: str) -> Words:
    """Split a row into columns; "-" is an empty one."""
    return tuple("" if column == "-" else column for column in row.split())


def column_words(column: str) -> Words:
    """Split a column into words; an underscore stands for a space."""
    return tuple(column.split("_")) if column.strip("-") else ()


def _terms(rows: str) -> list[Term]:
    """Parse comma-separated rows of a German, an English and perhaps a Chinese word."""
    return [Term(*row.split()) for row in rows.split(", ") if row]


def _determiner(row: str) -> tuple[list[Words], list[Words], tuple[str, str]]:
    """Parse a determiner: forms, endings of adjectives after it, English singular and plural."""
    stem, table, adjective_table, english, english_plural, _ = columns(row)
    forms = [tuple(stem + ending for ending in endings) for endings in ENDINGS[table]]
    return forms, ENDINGS[adjective_table], (english, english_plural)


DATA: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("captions.toml").read_text("utf-8")
)
CASES = {"accusative": ACCUSATIVE, "dative": DATIVE}
KINDS = DATA["kinds"]
JOINS = DATA["joins"]
BEINGS = {name for name, kind in KINDS.items() if "being" in kind["of"].split()}
PERSONS = {name for name, kind in KINDS.items() if "person" in kind["of"].split()}
ORDERS = {name: row.split() for name, row in DATA["orders"].items()}
ARTICLES = {name: row.split() for name, row in DATA["articles"].items()}
ENDINGS = {name: [columns(row) for row in rows] for name, rows in DATA["endings"].items()}
DETERMINERS = {name: _determiner(row) for name, row in DATA["determiners"].items()}
CHINESE_DETERMINERS = {name: columns(row)[-1] for name, row in DATA["determiners"].items()}
MATCHING = {
    name: {noun: verb for verb, *nouns in map(str.split, rows.split(", ")) for noun in nouns}
    for name, rows in DATA["matching"].items()
}
MOODS = _terms(DATA["moods"]["any"])


class Noun:
    """Noun with its forms by number and case, and the articles and adjectives that suit it."""

    def __init__(self, kind: str, row: str) -> None:
        """Derive the forms from the noun's kind and its row of the lexicon."""
        cells = columns(row)
        article, singular, genitive, plural, english, english_plural = cells[:6]
        chinese, *pronoun = cells[6:]
        self.classifier = chinese[0]
        self.chinese = chinese[1:]
        self.kind = kind
        self.gender = ("der", "das", "die").index(article)
        # Weak masculines (der Junge, den Jungen) have a genitive in -n.
        oblique = genitive if article == "der" and genitive.endswith("n") else singular
        dative = plural if plural.endswith(("n", "s")) else plural + "n"
        self.german = ((singular, oblique, oblique, genitive), (plural, plural, dative, plural))
        self.english = (column_words(english), column_words(english_plural))
        by_gender = ("he", "it", "she")[self.gender] if kind in PERSONS else "it"
        self.pronoun = pronoun[0] if pronoun else by_gender
        style = KINDS[kind].get("style", "count")
        self.owners = KINDS[kind].get("owned", "nobody")
        self.articles = ARTICLES[style]
        self.plural_articles: list[str] = []
        if style == "count":
            self.plural_articles = ARTICLES["beings" if kind in BEINGS else "things"]
        size, quality, colour = (
            _terms(KINDS[kind].get(slot, "")) for slot in ("size", "quality", "colour")
        )
        self.predicates = quality + colour
        singles = [(word,) for word in size + quality + colour]
        doubles = [(first, second) for first in size for second in colour]
        # Drawn uniformly: three nouns in five have no adjective; one in four of the others has
        # two, where two suit it.
        self.adjectives: list[tuple[Term, ...]] = [
            *singles * (3 * len(doubles) or 1),
            *doubles * len(singles),
        ]
        self.adjectives += [()] * (3 * len(self.adjectives) // 2 or 1)


class Place(NamedTuple):
    """Preposition in both languages with the case and the noun it governs."""

    group: str
    preposition: Term
    case: int
    noun: Noun
    plural: bool


class ChineseVerb(NamedTuple):
    """Chinese patterns of a verb: o object, r recipient, m manner, v verb, * 了 in the perfect."""

    base: str
    done: str = ""
    disposal: str = ""  # after 把 and the object
    passive: str = ""


class Verb:
    """Verb with its forms, its arguments, and the traits that decide where it can be used."""

    def __init__(self, row: dict[str, str]) -> None:
        """Derive the forms, arguments and traits from the verb's row of the lexicon."""
        infinitive, singular, self.participle, *auxiliary = row["de"].split()
        self.particle, _, self.base = infinitive.rpartition("|")
        self.finite = (singular, "sind" if self.base == "sein" else self.base)
        *forms, after = (row["en"] + " -").split()[:5]
        self.english = tuple((form, *column_words(after)) for form in forms)
        self.who, self.what, self.whom = (
            _nouns(row.get(role, "")) for role in ("who", "what", "whom")
        )
        german, case, english = columns(row.get("via", f"- {row.get('case', 'accusative')} -"))
        self.via = Term(german, english)
        self.chinese = ChineseVerb(*columns(row["zh"]))
        self.case = CASES[case]
        self.article = row.get("article", "")
        self.places = _places(f"places.{name}" for name in row.get("where", "").split())
        self.complements = _places(row.get("to", "").split())
        self.manners = _terms(DATA["manners"].get(row.get("how"), ""))
        self.reasons = _terms(row.get("why", ""))
        self.masculines = [noun for noun in self.what if noun.gender == MASCULINE]
        self.traits = self._traits(row)
        self.tenses = dict(DATA["tenses"])
        if auxiliary:
            self.tenses["perfect"] = DATA["tenses"]["perfect_ist"]
        if "stative" in self.traits:
            state = self.tenses["copula" if "copula" in self.traits else "simple"]
            self.tenses |= {"present": state, "simple": state}

    def _traits(self, row: dict[str, str]) -> set[str]:
        """Collect the traits: keys of the row, kinds of arguments, and traits derived by rule."""
        traits = {*(key for key in row if row[key]), *row.get("can", "").split()}
        traits |= {f"where:{place.group}" for place in self.places}
        traits |= {f"who:{noun.kind}" for noun in self.who}
        traits |= {f"what:{noun.kind}" for noun in self.what}
        subjects = {noun.kind for noun in self.who}
        if subjects <= BEINGS:
            traits.add("living")
        if subjects <= PERSONS:
            traits.add("people")
        if self.via[0] or self.masculines or self.case == DATIVE:
            traits.add("clear")  # an object whose form shows that it is not the subject
        for trait, rule in DATA["traits"].items():
            if all((need.strip("!") in traits) != need.startswith("!") for need in rule.split()):
                traits.add(trait)
        return traits


class Structure:
    """Clause structure, such as "fronted(place)+modal" or "while, plain"."""

    def __init__(self, name: str) -> None:
        """Parse the name into the marks of one clause, or the pairs of marks of two joined ones."""
        clauses = [clause.split("+") for clause in name.split(", ")]
        self.name = name
        self.joined_first = clauses[0][0] in JOINS
        main, *joined = reversed(clauses) if self.joined_first else clauses
        self.marks = frozenset(main)
        self.join = ""
        self.conjunction = Term("-", "-")
        self.pairs: list[tuple[Marks, Marks]] = []
        if joined:
            self.join, *extra = joined[0]
            [self.conjunction] = _terms(JOINS[self.join]["words"])
            for pair in JOINS[self.join]["pairs"]:
                left, right = (frozenset(side.split()) for side in pair.split(" > "))
                self.pairs.append((left | self.marks - {"plain"}, right | {*extra}))
        if fronted := re.search(r"fronted\((\w+)\)", name):
            self.front = fronted[1]
        else:
            verb_first = "question" in main or self.joined_first
            self.front = "" if verb_first else "subject"


def _nouns(names: str) -> list[Noun]:
    """List the nouns of the named kinds and groups of kinds."""
    kinds = {*names.split()}
    return [noun for noun in NOUNS.values() if {noun.kind, *KINDS[noun.kind]["of"].split()} & kinds]


def _places(groups: Iterable[str]) -> list[Place]:
    """List the places (dative) or goals (accusative) of groups named "table.group"."""
    places = []
    for name in groups:
        table, group = name.split(".")
        for row in DATA[table][group]:
            german, english, chinese, *nouns = row.split()
            case = CASES[DATA["cases"].get(german, DATA["cases"][table])]
            preposition = Term(german.strip("*"), english, chinese)
            plural = "*" in german
            places += [Place(group, preposition, case, NOUNS[noun], plural) for noun in nouns]
    return places


@cache
def verbs_with(marks: Marks) -> list[Verb]:
    """List the verbs that have all marks as traits, apart from marks that concern no verb."""
    needed = marks - {"same", "to", "shared", "simple"}
    return [verb for verb in VERBS if needed <= verb.traits]


NOUNS = {
    (noun := Noun(kind, row)).german[0][0]: noun
    for kind, rows in DATA["nouns"].items()
    for row in rows
}
PEOPLE = _nouns("person")
SUN = NOUNS["Sonne"]
VERBS = [Verb(row) for rows in DATA["verbs"].values() for row in rows]
COPULA = next(verb for verb in VERBS if "copula" in verb.traits)
# Repeated by weight, to be drawn uniformly.
STRUCTURES = [Structure(name) for name, weight in DATA["structures"].items() for _ in range(weight)]
HELD_OUT = [Structure(name) for name, weight in DATA["held_out"].items() for _ in range(weight)]
