"""Strings that no vocabulary knows: names, addresses, emoji and numbers, drawn at random."""

import random

ONSETS = "b br c ch d dr f fl g gr h j k kl kr l m n p pr qu r s sch sh st str t th tr v w z"
VOWELS = "a a a a e e e e i i i o o o u u y ai au ea ee ei eu ie oa ou ä ö ü á é í ó"
CODAS = "b ck d f g k l ld ll m n nd ng nn r rd rg rt s ss t tz x"
DOMAINS = ("com", "org", "net", "de", "eu", "info", "io", "co.uk", "ch", "fr")
SCHEMES = ("https://", "http://", "www.", "https://www.")
# Ranges of pictures that most fonts have.
PICTURES = (
    *(range(0x1F600, 0x1F645), range(0x1F300, 0x1F321), range(0x1F400, 0x1F43F)),
    *(range(0x1F345, 0x1F37F), range(0x1F680, 0x1F6A5), range(0x2600, 0x2604)),
)


def name(chance: random.Random) -> str:
    """A name of one to four syllables, with a capital."""
    onsets, vowels, codas = ONSETS.split(), VOWELS.split(), CODAS.split()
    syllables = []
    for _ in range(chance.choice((1, 2, 2, 3, 3, 4))):
        coda = chance.choice(codas) if chance.random() < 0.3 else ""
        syllables.append(chance.choice(onsets) + chance.choice(vowels) + coda)
    end = chance.choice((*codas, "a", "o", "i", "e"))
    return "".join([*syllables, end]).capitalize()


def host(chance: random.Random) -> str:
    return f"{name(chance).lower()}.{chance.choice(DOMAINS)}"


def url(chance: random.Random) -> str:
    """An address of the web, some with a path."""
    parts = [name(chance).lower()] if chance.random() < 0.5 else []
    return "/".join([chance.choice(SCHEMES) + host(chance), *parts])


def email(chance: random.Random) -> str:
    """An e-mail address."""
    return f"{name(chance).lower()}@{host(chance)}"


def emoji(chance: random.Random) -> str:
    """One picture, or several."""
    pictures = chance.choices([chr(code) for codes in PICTURES for code in codes], k=3)
    return "".join(pictures[: chance.choice((1, 1, 1, 2, 3))])


def digits(old: str, chance: random.Random) -> str:
    """Other digits in the place of old ones, as many and with the same zeros at the beginning."""
    first = len(old) - len(old.lstrip("0"))
    least = 2 if len(old) == 1 else 1  # one is another grammatical number than two
    drawn = [str(chance.randint(least if place == first else 0, 9)) for place in range(len(old))]
    return "".join(["0" * first, *drawn[first:]])
