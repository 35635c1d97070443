"""Chinese verbs of the caption grammar: the pattern of a predicate, and its links."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from seq2see.text.captions.chinese_nouns import predicate
from seq2see.text.captions.lexicon import BEINGS, MATCHING, column_words
from seq2see.text.captions.phrases import Clause, Mention, Piece, Unit, spell

COVERBS = "跟给向听"  # before an object; they leave a pronoun behind in a relative clause
DEFINITE = ("definite", "this", "owned")  # articles of objects that 把 may precede
ASPECT = "了过"


class Token(NamedTuple):
    """Character of a predicate with its role, or a slot for a phrase."""

    text: str
    role: str  # slot, verb, aspect, goal, via, recipient, agent


Pattern = list[Token]


def slots(pattern: Pattern) -> set[str]:
    """Name the slots: agent, goal, manner, object, place, recipient, subject."""
    return {token.text for token in pattern if token.role == "slot"}


def pattern_of(clause: Clause, gap: str = "", ended: bool = False) -> Pattern:
    """Choose the pattern of a clause's verb for its tense and its objects.

    `gap` is the part that is written elsewhere: "object" in a relative clause, or "topic".
    `ended` leaves out 了 at the end, as before 的 and 之后.
    """
    if clause.tense == "passive":
        pattern = _passive(clause)
    elif clause.goal:
        pattern = _with_goal(clause)
    else:
        pattern = _acting(clause, gap)
    if gap in ("object", "topic") and not (gap == "object" and governed(pattern)):
        pattern = [token for token in pattern if token.text not in ("object", "把")]
    if gap == "object":
        pattern = [token for token in pattern if token.text != "了"]
    if about_to(clause):
        pattern.append(Token("了", "aspect"))  # 快要摔倒了
    if ended and pattern[-1].text == "了":
        pattern = pattern[:-1]
    return pattern


def governed(pattern: Pattern) -> bool:
    """Whether the object follows a coverb, and so can be neither left out nor topic."""
    before = {one.text for one, other in pairwise(pattern) if other.text == "object"}
    return bool(before & {*COVERBS}) and pattern[-1].text != "object"


def _tokens(clause: Clause, template: str) -> Pattern:
    """Read a template of the lexicon: characters, slots o r m s, and * for 了 in the perfect."""
    names = {"o": "object", "r": "recipient", "m": "manner", "s": "subject"}
    roles = dict.fromkeys(ASPECT, "aspect") if clause.tense == "perfect" else {}
    if clause.verb.via.german:
        roles["跟"] = "via"
    if clause.recipient:
        roles["给"] = "recipient"
    pattern = []
    for character in template:
        if character in names:
            pattern.append(Token(names[character], "slot"))
        elif character != "*":
            pattern.append(Token(character, roles.get(character, "verb")))
        elif clause.tense == "perfect":
            pattern.append(Token("了", "aspect"))
    return pattern


def _goal(clause: Clause) -> Pattern:
    """Read the pattern of a goal: v verb, w way of moving, N noun, and * for 了 in the perfect."""
    assert clause.place
    chinese = clause.verb.chinese
    now, _, base = clause.place.preposition.chinese.partition("|")
    going_on = clause.tense == "present" and not clause.object
    words = {"v": chinese.base.removeprefix("把"), "w": chinese.done}
    if clause.goal == "path" and clause.object:
        words = {"v": "走", "w": ""}  # 推着自行车绕着湖走
    pattern: Pattern = []
    for character in now if going_on else base or now:
        if character == "N":
            pattern.append(Token("goal", "slot"))
        elif character in words:
            pattern += [Token(part, "verb") for part in words[character]]
        elif character != "*":
            pattern.append(Token(character, "goal"))
        elif clause.tense == "perfect":
            pattern.append(Token("了", "aspect"))
    return pattern


def _with_goal(clause: Clause) -> Pattern:
    """Return the pattern of a verb with a place or goal that it cannot be without."""
    assert clause.place
    if clause.object and clause.goal == "path":
        return [*_tokens(clause, f"{clause.verb.chinese.done}o"), *_goal(clause)]
    if clause.object:
        return [*_tokens(clause, "把o"), *_goal(clause)]
    if "resting" not in clause.verb.traits and "stative" not in clause.verb.traits:
        return _goal(clause)
    verb = _tokens(clause, clause.verb.chinese.base)
    return verb if waiting(clause) else [*verb, *_goal(clause)]


def waiting(clause: Clause) -> bool:
    """Whether the verb's place precedes it, unlike that of the other verbs of posture."""
    return clause.verb.chinese.base == "等候"


def _passive(clause: Clause) -> Pattern:
    template = _matched(clause.verb.chinese.passive, clause.subject)
    agent = [Token("由" if template[0] == "由" else "被", "agent"), Token("agent", "slot")]
    place = Token("place", "slot")
    verb = _tokens(clause, template.removeprefix("由"))
    return [*agent, place, *verb] if template[0] == "由" else [place, *agent, *verb]


def _acting(clause: Clause, gap: str) -> Pattern:
    """Return the pattern of any other verb; 把 precedes a known object that something is done to."""
    chinese = clause.verb.chinese
    mention = clause.object
    template = chinese.base
    if clause.tense == "perfect" and chinese.done:
        template = chinese.done
    if clause.tense != "present" or "negation" in clause.parts:
        template = template.replace("~着", "")
    template = template.replace("~", "")
    if not mention:
        return _tokens(clause, template)
    template = _matched(template, mention)
    # 把 means that something becomes of the object, which an action that goes on leaves open.
    known = mention.article in DEFINITE or mention.article.startswith(("sein ", "ihr "))
    done_to = clause.tense in ("perfect", "modal", "to") and known
    done_to = done_to or bool(clause.recipient and gap in ("object", "topic"))
    if chinese.disposal and done_to:
        template = "把" + _matched(chinese.disposal, mention)
    if template.startswith("把"):
        template = "把o" + template.removeprefix("把")
    elif "o" not in template:
        template += "o"
    return _tokens(clause, template)


def _matched(template: str, mention: Mention) -> str:
    """Choose between alternatives: for a being or a thing, and by the noun."""
    being, _, thing = template.partition("/")
    template = thing if thing and mention.noun.kind not in BEINGS else being
    for name, verbs in MATCHING.items():
        template = template.replace(f"@{name}", verbs.get(mention.noun.chinese, ""))
    return template


def opening(clause: Clause, pattern: Pattern, opener: str, place: bool) -> list[Piece]:
    """Write the particles before the predicate: negation, modal, or that an action goes on."""
    auxiliary = clause.conjugation.auxiliary.english[0]
    main = clause.conjugation.main.english[0]
    lasts = "stative" in clause.verb.traits or _rests(clause) or _continues(clause, pattern)
    pieces = []
    if "negation" in clause.parts:
        pieces.append(spell("没有", everything(clause.parts["negation"].english[0])))
        opener = "在"
    if clause.tense == "modal":
        return [*pieces, spell(clause.modal, everything(auxiliary))]
    if clause.tense == "simple" and opener == "会":
        return [*pieces, spell("会", everything(main))]
    if clause.tense not in ("present", "passive") or (lasts and clause.tense == "present"):
        return pieces
    if about_to(clause):
        opener = "快要"
    elif place or pattern[0].text == "由":
        opener = opener.removesuffix("在")
    return [*pieces, spell(opener, everything(auxiliary))] if opener else pieces


def about_to(clause: Clause) -> bool:
    """Whether the clause says that a mishap is near, since none goes on for long."""
    mishap = "mishap" in clause.verb.traits and clause.tense == "present"
    return mishap and "negation" not in clause.parts


def _continues(clause: Clause, pattern: Pattern) -> bool:
    """Whether 着 shows that the action goes on."""
    return Token("着", "verb") in pattern and "try" not in clause.verb.traits


def _rests(clause: Clause) -> bool:
    return "resting" in clause.verb.traits and not waiting(clause)


def fill(
    clause: Clause, pattern: Pattern, phrases: Mapping[str, Sequence[Piece]], realised: bool
) -> list[Piece]:
    """Write a pattern with its phrases; `realised`: the English auxiliary has been linked to."""
    auxiliary = everything(clause.conjugation.auxiliary.english[0])
    main = [everything(clause.conjugation.main.english[0])]
    realised = realised or any(token.role == "aspect" for token in pattern)
    if not realised:
        main.append(auxiliary)
    if clause.subject.article == "expletive":
        main.append(everything(clause.subject.unit))
    roles = {token.role for token in pattern}
    via, recipient, agent, goal = (
        preposition(mention)
        for mention in (clause.object, clause.recipient, clause.object, clause.place)
    )
    if "via" not in roles and clause.tense != "passive":
        main.append(via)
    verbs = [token for token in pattern if token.role == "verb" and token.text != "把"]
    targets = {
        "verb": main,
        "aspect": [auxiliary] if auxiliary[0] else main,
        "goal": [goal],
        "via": [via],
        "recipient": [recipient] if verbs else [recipient, *main],
        "agent": [agent],
    }
    pieces: list[Piece] = []
    for token in pattern:
        if token.role == "slot":
            pieces += phrases[token.text]
        else:
            pieces.append(spell(token.text, *targets[token.role]))
    return pieces


def state(clause: Clause) -> Piece:
    """Write an adjective as predicate."""
    auxiliary = everything(clause.conjugation.auxiliary.english[0])
    complement = everything(clause.parts["complement"].english[0])
    return spell(predicate(clause.state), auxiliary, complement)


def preposition(mention: Mention | None) -> tuple[Unit, range]:
    """Return the target of links to a mention's English preposition."""
    if mention is None:
        return [], range(0)
    return mention.unit, range(len(column_words(mention.preposition.english)))


def everything(unit: Unit) -> tuple[Unit, range]:
    """Return the target of links to all words of a unit."""
    return unit, range(len(unit))
