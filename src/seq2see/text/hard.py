"""Hard sentences: numbers, addresses, emoji, names, quotations, capitals, made by a generator."""

import random
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from seq2see.errors import InputError
from seq2see.text.documents.numbers import notations
from seq2see.text.documents.sentences import base

KINDS = ("number", "address", "emoji", "name", "quotation", "capitals")
COUNT = 300  # as many of each kind
SEED = 1
QUOTES = tuple('"„“”«»‚‘’')
SLOT = re.compile(r"\{(\w+)\}")
Forms = tuple[str, ...]  # of which a translation must have one


@dataclass(frozen=True)
class Hard:
    """A hard sentence, and what its translation must have, each in one of its forms."""

    kind: str
    source: str
    wanted: tuple[Forms, ...] = ()
    twin: str = ""  # of a sentence in capitals: the same in lower case
    reference: str = ""  # and its translation


def generate(source: str, target: str, count: int = COUNT, seed: int = SEED) -> list[Hard]:
    """Make hard sentences of a pair of languages; equal arguments give equal sentences."""
    tables = _tables()
    languages = (base(source), base(target))
    known = sorted(tables["templates"])
    if not set(languages) <= set(known) or languages[0] == languages[1]:
        pairs = ", ".join(f"{one}-{other}" for one in known for other in known if one != other)
        raise InputError(f"hard sentences: none for {source}-{target}; there are {pairs}")
    if count < 1 or count % len(KINDS):
        rule = f"a multiple of {len(KINDS)}, as many of each kind"
        raise InputError(f"hard sentences: count {count} must be {rule}")
    sentences = _capitals(tables["capitals"], languages, count // len(KINDS))
    for kind in KINDS[:-1]:
        chance = random.Random(f"hard/{seed}/{kind}/{languages[0]}")
        templates = tables["templates"][languages[0]][kind]
        fillers = Fillers(tables["fillers"], languages, chance)
        made: dict[str, Hard] = {}  # by source, each once
        while len(made) < count // len(KINDS):
            one = _filled(kind, templates[len(made) % len(templates)], fillers)
            made.setdefault(one.source, one)
        sentences += made.values()
    return sentences


class Fillers:
    """Words, numbers and addresses for the slots of templates, drawn at random."""

    def __init__(
        self, tables: Mapping[str, Any], languages: tuple[str, str], chance: random.Random
    ) -> None:
        self.words = tables["any"] | tables[languages[0]]
        self.languages = languages
        self.chance = chance

    def draw(self, slot: str) -> tuple[str, Forms]:
        """A filler, and the forms that it may have in a translation; none if it is translated."""
        if slot in ("saying", "title"):
            return self.chance.choice(self.words[slot]), ()
        if slot in ("price", "large", "decimal"):
            number = self._number(slot)
            return number, notations(number, *self.languages)
        if slot == "time":
            return self._time()
        text = str(getattr(self, f"_{slot}")())
        return text, (text,)

    def _number(self, slot: str) -> str:
        """A number in the notation of the source language."""
        if slot == "large":
            english = f"{self.chance.randint(10_000, 9_999_999):,}"
        else:
            whole = self.chance.randint(1000, 99_999) if slot == "price" else self._room()
            english = f"{whole:,}.{self.chance.randint(10, 99)}"
        if self.languages[0] == "en":
            return english
        return english.translate(str.maketrans(",.", ".,"))

    def _time(self) -> tuple[str, Forms]:
        hour, minute = self.chance.randint(1, 11), self.chance.randint(10, 59)
        afternoon = f"{hour + 12}:{minute}"
        written = afternoon if self.languages[0] == "de" else f"{hour}:{minute}"
        forms = {
            written,
            f"{hour}:{minute}",
            afternoon,
            f"{hour}.{minute}",
            f"{hour + 12}.{minute}",
        }
        return written, tuple(sorted(forms))

    def _day(self) -> int:
        return self.chance.randint(2, 28)

    def _year(self) -> int:
        return self.chance.randint(1900, 2099)

    def _room(self) -> int:
        return self.chance.randint(13, 980)

    def _id(self) -> int:
        return self.chance.randint(10**6, 10**12)

    def _emoji(self) -> str:
        return str(self.chance.choice(self.words["emoji"]))

    def _name(self) -> str:
        """A real name, or one made of syllables."""
        if self.chance.random() < 0.5:
            return str(self.chance.choice(self.words["name"]))
        syllables = self.chance.choices(self.words["syllables"], k=self.chance.choice((3, 4)))
        return "".join(syllables).capitalize()

    def _email(self) -> str:
        return f"{self._name()}.{self._name()}@{self._name()}.org".lower()

    def _url(self) -> str:
        page = f"{self._name()}/{self._room()}".lower()
        return f"https://www.{self._name().lower()}.com/{page}"


def _filled(kind: str, template: str, fillers: Fillers) -> Hard:
    """Fill the slots of a template."""
    wanted = []

    def fill(match: re.Match[str]) -> str:
        text, forms = fillers.draw(match[1])
        wanted.extend([forms] if forms else [])
        return text

    source = SLOT.sub(fill, template)
    if kind == "quotation":
        wanted += [QUOTES, QUOTES]
    return Hard(kind, source, tuple(wanted))


def _capitals(rows: list[dict[str, str]], languages: tuple[str, str], count: int) -> list[Hard]:
    source, target = languages
    if count > len(rows):
        most = len(rows) * len(KINDS)
        raise InputError(f"hard sentences: count {count * len(KINDS)} must be at most {most}")
    return [
        Hard("capitals", row[source].upper(), (), row[source].lower(), row[target])
        for row in rows[:count]
    ]


def lost(sentence: Hard, translation: str) -> Iterator[Forms]:
    """Yield what a translation lacks; every piece needs a place of its own."""
    for forms in sorted(sentence.wanted, key=lambda forms: -max(map(len, forms))):
        match = next(filter(None, (_pattern(form).search(translation) for form in forms)), None)
        if match is None:
            yield forms
        else:
            translation = translation[: match.start()] + "\n" + translation[match.end() :]


def _pattern(form: str) -> re.Pattern[str]:
    """Match a form that is no part of a longer word or number."""
    before = r"(?<!\w)(?<!\d[.,:])" if form[0].isalnum() else ""
    after = r"(?!\w)(?![.,:]\d)" if form[-1].isalnum() else ""
    return re.compile(before + re.escape(form) + after)


def _tables() -> dict[str, Any]:
    return tomllib.loads(files("seq2see.text").joinpath("hard.toml").read_text(encoding="utf-8"))
