"""Chinese noun phrases: classifiers, number without plurals, and attributes before the noun."""

from collections.abc import Sequence

from seq2see.text.captions.lexicon import (
    CHINESE_DETERMINERS,
    FEMININE,
    PERSONS,
    Noun,
    Term,
    column_words,
)
from seq2see.text.captions.phrases import Mention, Piece, gloss, spell


def noun_phrase(
    mention: Mention,
    relative: Sequence[Piece] = (),
    *,
    pointed: bool = False,
    each: bool = False,
    linked: bool = False,
) -> list[Piece]:
    """Write a noun phrase, with a relative clause that ends in 的.

    A definite singular noun takes 那 only if `pointed`, as the object behind its verb does.
    `each` leaves out the number of objects that a plural subject has one of each. `linked` says
    that the English preposition has Chinese words of its own; otherwise it links to the noun.
    """
    if mention.article == "pronoun":
        return [spell(pronoun(mention), (mention.unit, range(len(mention.unit))))]
    before = len(column_words(mention.preposition.english))
    adjectives = len(mention.adjectives)
    name = len(mention.noun.english[mention.plural])
    determined = range(before, len(mention.unit) - adjectives - name)
    named = [*range(0 if linked else before), *range(len(mention.unit) - name, len(mention.unit))]
    determiner = _determiner(mention, bool(relative), pointed, each)
    opening = [spell(determiner, (mention.unit, determined or named))] if determiner else []
    if mention.owner:
        owner = mention.owner
        opening = [
            *noun_phrase(owner),
            spell("的", (owner.unit, [len(owner.unit) - 1])),
            *opening,
        ]
    # A clause with a subject of its own, which may have a determiner, stands before all others.
    behind = mention.article == "definite" and not mention.plural
    behind = behind or (mention.relative is not None and mention.relative.gap == "object")
    pieces = [*relative, *opening] if behind else [*opening, *relative]
    described = bool(relative or mention.owner) or determiner.startswith("自己的")
    for position, text in _attributes(mention, described):
        pieces.append(spell(text, (mention.unit, [determined.stop + position])))
    text = mention.noun.chinese
    if _has_men(mention, bool(relative)):
        text += "们"
    if not determiner:
        named = [*named, *determined]
    pieces.append(spell(text, (mention.unit, sorted(named))))
    if mention.partner:
        conjunction = gloss("und", "and").english[0]
        return [*pieces, spell("和", (conjunction, [0])), *noun_phrase(mention.partner)]
    return pieces


def pronoun(mention: Mention) -> str:
    """Return the personal pronoun that stands for a mention."""
    noun = mention.noun
    if noun.kind not in PERSONS:
        singular = "它"
    elif noun.gender == FEMININE or noun.pronoun == "she":
        singular = "她"
    else:
        singular = "他"
    return singular + "们" if mention.plural else singular


def predicate(state: Term) -> str:
    """Return an adjective as a predicate: 很大, 是红色的."""
    stem = state.chinese.removesuffix("的")
    if stem[-1] == "色" or stem in ("新", "旧"):
        return f"是{stem}的"
    return stem if "很" in stem or stem[-1] == "了" else f"很{stem}"


def _has_men(mention: Mention, described: bool) -> bool:
    """Whether 们 shows the number; behind a number, or a long attribute, it does not stand."""
    definite = mention.article == "definite" and mention.plural and not mention.partner
    return definite and mention.noun.kind in PERSONS and not described


def _determiner(mention: Mention, described: bool, pointed: bool, each: bool) -> str:
    """Return the determiner with its classifier."""
    article = mention.article
    counted = _counted(mention.noun, CHINESE_DETERMINERS[article])
    plural = mention.plural and not mention.partner
    if article == "definite" and plural:
        return "" if _has_men(mention, described) else "那些"
    if article == "definite":
        return counted if pointed else ""
    if article == "bare":
        return "一些" if plural and not each else ""
    several = _counted(mention.noun, "几") if plural and not each else ""
    if article == "owned":
        return several
    if counted.startswith("自己的"):
        return f"自己的{several}"
    return counted


def _counted(noun: Noun, determiner: str) -> str:
    """Put the classifier behind a determiner that takes one."""
    if determiner in ("", "许多", "自己的", "的", "一些"):
        return determiner
    return determiner + noun.classifier


def _attributes(mention: Mention, described: bool) -> list[tuple[int, str]]:
    """Order adjectives, with their English positions: what ends in 的 comes first.

    A colour has no 的 of its own behind another 的.
    """
    texts = [*enumerate(adjective.chinese for adjective in mention.adjectives)]
    if described:
        alone = len(texts) == 1
        texts = [(place, _short(text, mention.noun, alone)) for place, text in texts]
    if len(texts) < 2:
        return texts
    (_, first), (_, second) = texts
    if first.endswith("的"):
        return [(0, first), (1, _short(second, mention.noun))]
    return [(1, second), (0, first)]


def _short(adjective: str, noun: Noun, adjoining: bool = True) -> str:
    """Shorten a colour: 红色外套, and next to a noun of one character 黑狗."""
    if len(adjective) != 3 or not adjective.endswith("色的"):
        return adjective
    monosyllabic = adjoining and len(noun.chinese) == 1 and adjective != "棕色的"
    return adjective[0] if monosyllabic else adjective.removesuffix("的")
