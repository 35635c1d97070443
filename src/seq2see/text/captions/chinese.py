"""Chinese sentences of the caption grammar, written from the clauses of the other languages."""

from seq2see.text.captions.chinese_nouns import noun_phrase, pronoun
from seq2see.text.captions.chinese_verbs import (
    Pattern,
    everything,
    fill,
    governed,
    opening,
    pattern_of,
    preposition,
    slots,
    state,
    waiting,
)
from seq2see.text.captions.grammar import Plan
from seq2see.text.captions.lexicon import PERSONS
from seq2see.text.captions.phrases import Clause, Links, Mention, Piece, gloss, link, spell

COMMA = Piece(("，",))
NOW = ("今", "此")  # first characters of the times that are now
KNOWN = ("definite", "this")  # articles of what the reader knows


def write_chinese(plan: Plan, english_starts: dict[int, int]) -> tuple[str, Links]:
    """Return the Chinese text of a sentence and the links of its characters to English words."""
    pieces = _joined(plan, plan.other) if plan.other else _single(plan)
    english, chinese = ("?", "？") if "question" in plan.structure.marks else (".", "。")
    end = gloss(english, english).english[0]
    pieces.append(spell(chinese, everything(end)))
    starts: list[int] = []
    text = ""
    for piece in pieces:
        starts.append(len(text))
        text += "".join(piece.words)
    return text, link(pieces, starts, english_starts)


def _single(plan: Plan) -> list[Piece]:
    """Write a sentence of one clause, topic before comment."""
    clause = plan.main
    front = plan.structure.front
    subject = _mention(clause.subject)
    if front == "place" and clause.place:
        place = _around(clause.place, clause.place.preposition.chinese)
        return [*place, COMMA, *subject, *_comment(clause, placed=True)]
    if front == "time":
        return [*clause.time, COMMA, *subject, *_predicate(clause)]
    if front == "complement" and clause.place and _presents(clause):
        time = [*clause.time, COMMA] if clause.time else []
        return [*time, *_presented(clause, clause.place)]
    if front == "object" and clause.object and _is_topic(clause):
        topic = _mention(clause.object, pointed=True)
        return [*topic, COMMA, *subject, *_comment(clause, gap="topic")]
    pieces = [*subject, *_comment(clause)]
    if "question" in plan.structure.marks:
        pieces.append(spell("吗", everything(clause.conjugation.auxiliary.english[0])))
    return pieces


def _joined(plan: Plan, other: Clause) -> list[Piece]:
    """Write a main clause and the one that is joined to it."""
    structure = plan.structure
    main = plan.main
    subject = _mention(main.subject)
    term = structure.conjunction
    conjunction = everything(gloss(term.german, term.english).english[0])
    same = other.subject.article == "pronoun"

    def said(text: str) -> Piece:
        return spell(text, conjunction)

    match structure.join:
        case "while" if structure.joined_first:
            clause = _clause(other, opener="在", ended=True)
            return [*clause, said("的时候"), COMMA, *subject, *_comment(main)]
        case "while":
            return [*subject, *_comment(main), COMMA, said("而"), *_clause(other)]
        case "because" if structure.joined_first:
            clause = _clause(other, dropped=same)
            return [said("因为"), *clause, COMMA, *subject, *_comment(main)]
        case "because":
            return [*subject, *_comment(main), COMMA, said("因为"), *_clause(other)]
        case "although" if structure.joined_first:
            clause = _clause(other, dropped=same)
            return [said("虽然"), *clause, COMMA, said("但"), *subject, *_comment(main)]
        case "although":
            return [*subject, *_comment(main), COMMA, said("尽管"), *_clause(other)]
        case "when" if structure.joined_first:
            time = [*_clause(other, ended=True), said("的时候")]
            return [*time, COMMA, *subject, *_comment(main, opener="会")]
        case "when":
            time = [said("在"), *_clause(other, ended=True), said("的时候")]
            return [*subject, *time, *_comment(main, opener="会")]
        case "after" if structure.joined_first:
            time = [*_clause(other, dropped=same, ended=True), said("之后")]
            return [*time, COMMA, *subject, *_comment(main, opener="在")]
        case "after":
            time = [*_clause(other, dropped=same, ended=True), said("之后")]
            before = [] if same else [said("在")]
            return [*subject, *before, *time, *_comment(main, opener="")]
        case "purpose":
            return [*subject, *_comment(main), COMMA, said("去"), *_predicate(other)]
        case "and" if waiting(main):  # 等候 with another verb behind it means waiting to do it
            between = [COMMA, said("同时")]
            return [*subject, *_comment(main), *between, *_predicate(other)]
        case _:  # that, and, try: nothing stands between the clauses
            return [*subject, *_comment(main), *_clause(other, dropped=same)]


def _clause(
    clause: Clause, opener: str = "正在", dropped: bool = False, ended: bool = False
) -> list[Piece]:
    """Write a clause without topic; its subject may be dropped, or be part of the predicate."""
    impersonal = clause.subject.article == "expletive" or "s" in clause.verb.chinese.base
    subject = [] if dropped or impersonal else _mention(clause.subject)
    return [*subject, *_comment(clause, opener, ended=ended)]


def _comment(
    clause: Clause,
    opener: str = "正在",
    *,
    placed: bool = False,
    gap: str = "",
    ended: bool = False,
) -> list[Piece]:
    """Write the time of a clause and its predicate."""
    # 正在 is said of now, not of "a sunny day".
    if clause.time and clause.time[0].words[0] not in NOW:
        opener = ""
    predicated = _predicate(clause, opener, placed=placed, gap=gap, ended=ended)
    return [*clause.time, *predicated]


def _mention(
    mention: Mention, *, pointed: bool = False, each: bool = False, linked: bool = False
) -> list[Piece]:
    """Write a noun phrase with its relative clause, before the noun."""
    relative = _relative(mention.relative) if mention.relative else []
    return noun_phrase(mention, relative, pointed=pointed, each=each, linked=linked)


def _relative(clause: Clause) -> list[Piece]:
    """Write a relative clause; 的 is linked to the pronoun of the other languages."""
    role = clause.subject if clause.gap == "subject" else clause.object
    assert role
    subject = [] if clause.gap == "subject" else _mention(clause.subject)
    word = len(role.unit) - 1
    predicated = _predicate(clause, gap=clause.gap, ended=True)
    return [*subject, *predicated, spell("的", (role.unit, [word]))]


def _presents(clause: Clause) -> bool:
    """Whether the place can be the topic that presents a new subject: 长椅上坐着一个男人."""
    subject = clause.subject
    new = subject.article not in KNOWN and not subject.partner
    return new and not clause.manner.german and clause.verb.chinese.base != "等候"


def _presented(clause: Clause, place: Mention) -> list[Piece]:
    """Write a clause whose place presents its subject."""
    place_pieces = _around(place, place.preposition.chinese.removeprefix("在"))
    main = clause.conjugation.main.english[0]
    auxiliary = clause.conjugation.auxiliary.english[0]
    verb = spell(clause.verb.chinese.base, everything(main))
    return [*place_pieces, verb, spell("着", everything(auxiliary)), *_mention(clause.subject)]


def _is_topic(clause: Clause) -> bool:
    """Whether the object can be the topic: a known thing, governed by the verb alone."""
    mention = clause.object
    assert mention
    known = mention.article in KNOWN and mention.noun.kind not in PERSONS
    pattern = pattern_of(clause)
    lasts = any(token.text == "着" for token in pattern)
    return known and not (lasts or clause.time or governed(pattern))


def _around(place: Mention, pattern: str) -> list[Piece]:
    """Write a place: the preposition of the other languages is before and behind the noun."""
    before, _, behind = pattern.partition("N")
    prepositions = preposition(place)
    noun = noun_phrase(place, linked=bool(before or behind))
    opening = [spell(before, prepositions)] if before else []
    closing = [spell(behind, prepositions)] if behind else []
    return [*opening, *noun, *closing]


def _predicate(
    clause: Clause,
    opener: str = "正在",
    *,
    placed: bool = False,
    gap: str = "",
    ended: bool = False,
) -> list[Piece]:
    """Write all but the subject: particles of time, place, manner, and the verb with its objects.

    `opener` begins an action that goes on; `placed`: its place has been written; `gap`: the part
    that is written elsewhere; `ended`: 了 is left out at the end.
    """
    if "copula" in clause.verb.traits:
        return [state(clause)]
    pattern = pattern_of(clause, gap, ended)
    place: list[Piece] = []
    if clause.place and not placed and (waiting(clause) or not clause.goal):
        place = _around(clause.place, clause.place.preposition.chinese)
    manner: list[Piece] = []
    if clause.manner.german:
        target = everything(clause.parts["manner"].english[0])
        manner = [spell(clause.manner.chinese, target)]
    pieces = opening(clause, pattern, opener, bool(place))
    auxiliary = clause.conjugation.auxiliary.english[0]
    realised = any(unit is auxiliary for piece in pieces for unit, _ in piece.targets)
    phrases = _phrases(clause, pattern, gap) | {"place": place, "manner": manner}
    if "place" not in slots(pattern):
        pieces += place
    if "manner" not in slots(pattern):
        pieces += manner
    return [*pieces, *fill(clause, pattern, phrases, realised)]


def _phrases(clause: Clause, pattern: Pattern, gap: str) -> dict[str, list[Piece]]:
    """Write the phrases that a pattern has slots for."""
    phrases: dict[str, list[Piece]] = {}
    names = slots(pattern)
    if "subject" in names:
        phrases["subject"] = _mention(clause.subject)
    if "goal" in names and clause.place:
        phrases["goal"] = noun_phrase(clause.place, linked=_has_role(pattern, "goal"))
    if "recipient" in names and clause.recipient:
        phrases["recipient"] = noun_phrase(clause.recipient, linked=True)
    if "agent" in names and clause.object:
        phrases["agent"] = noun_phrase(clause.object, linked=True)
    if "object" in names and clause.object:
        phrases["object"] = _object(clause, clause.object, pattern, gap)
    return phrases


def _object(clause: Clause, mention: Mention, pattern: Pattern, gap: str) -> list[Piece]:
    """Write the object; 那 shows that it is definite where it follows its verb."""
    if gap == "object":
        return [spell(pronoun(mention), (mention.unit, [len(mention.unit) - 1]))]
    last = pattern[-1].text == "object" and pattern[0].text != "把"
    pointed = last and mention.noun.kind not in PERSONS
    each = "each" in clause.verb.traits and clause.subject.plural
    return _mention(mention, pointed=pointed, each=each, linked=True)


def _has_role(pattern: Pattern, role: str) -> bool:
    return any(token.role == role for token in pattern)
