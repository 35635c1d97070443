"""Translation of one sentence, with everything that must be kept.

The sentence is translated whole first. If its translation lacks something, it is translated again
with stand-ins for what was lost. If that fails, the text between the things to keep is translated
part by part, which loses none of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from seq2see.text.documents.capitals import in_capitals, translated_in_lower_case
from seq2see.text.documents.marking import Setting
from seq2see.text.documents.phrases import Run, runs, with_tags
from seq2see.text.documents.pieces import Kind, Piece, raw_of, text_of, translatable, trimmed
from seq2see.text.documents.places import places
from seq2see.text.documents.repair import repairable, substituted
from seq2see.text.documents.sentences import spaced
from seq2see.text.documents.standins import restored, stand_ins, with_stand_ins
from seq2see.text.documents.steps import Steps, together

LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
BLANKS = re.compile("[ \t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
FULL_STOPS = (".", "。")
NO_BLANK_BEFORE = tuple(".,;:!?)]}”’»…%。，、；：！？）」』》")
NO_BLANK_AFTER = tuple("([{“„«（「『《")


def rendered(pieces: Sequence[Piece], setting: Setting) -> Steps[str]:
    """Translate a sentence, and return it as it is written in the document.

    A text whose translation is empty stays as it is.
    """
    steps = _rendered(pieces, setting)
    if in_capitals(text_of(pieces)):
        steps = translated_in_lower_case(steps)
    return (yield from steps)


def _rendered(pieces: Sequence[Piece], setting: Setting) -> Steps[str]:
    if not translatable(pieces):
        return "".join(_raw(pieces, setting))
    parts = runs(pieces)
    if parts is None:
        return (yield from _part_by_part(pieces, setting))
    asked = _asked(pieces)
    phrases = [_asked(part.pieces) for part in parts if part.is_asked]
    translation, *translated = map(_one_line, (yield [asked, *phrases]))
    if translation in ("", asked) and all(piece.kind is not Kind.TERM for piece in pieces):
        return raw_of(pieces)
    sentence = Sentence(pieces, parts, translated, setting)
    lost = places(translation, pieces)[1]
    whole = sentence.written(translation) if translation else ""
    if whole and not lost:
        return whole
    second = []  # the surest first
    if not whole or not all(piece.kind is Kind.NAME for piece in lost):
        whole = ""
        second.append(_part_by_part(pieces, setting))
    if translation and lost and setting.lexicon is not None:
        second.append(_stood_in(sentence, lost, setting.lexicon.stand_ins))
    if translation and lost and all(map(repairable, lost)):
        second.append(_repaired(translation, sentence, lost))
    results = yield from together(second)
    return next(filter(None, reversed(results)), whole)


@dataclass(frozen=True)
class Sentence:
    """A sentence, its parts between tags, and the translations of those that are asked for."""

    pieces: Sequence[Piece]
    parts: Sequence[Run]
    translated: Sequence[str]
    setting: Setting

    def written(self, translation: str) -> str:
        """Write a translation with its tags; nothing if a phrase between tags is not found."""
        escape = self.setting.escape
        return with_tags(translation, self.pieces, self.parts, self.translated, escape) or ""


def _repaired(translation: str, sentence: Sentence, lost: Sequence[Piece]) -> Steps[str]:
    """Put what is lost where its own translation is; nothing if that fails."""
    alone = map(_one_line, (yield [_asked([piece]) for piece in lost]))
    pairs = list(zip(lost, alone, strict=True))
    text = substituted(translation, pairs, sentence.setting.target)
    if text is None or places(text, sentence.pieces)[1]:
        return ""
    return sentence.written(text)


def _stood_in(sentence: Sentence, lost: Sequence[Piece], words: Sequence[str]) -> Steps[str]:
    """Translate a sentence with stand-ins for what is lost; nothing if that fails."""
    tries = stand_ins(sentence.pieces, lost, words)
    if not tries:
        return ""
    asked = [_asked(with_stand_ins(sentence.pieces, chosen)) for chosen in tries]
    translations = yield asked
    for translation, chosen in zip(translations, tries, strict=True):
        text = restored(_one_line(translation), chosen)
        if text is not None and not places(text, sentence.pieces)[1]:
            return sentence.written(text)
    return ""


def _part_by_part(pieces: Sequence[Piece], setting: Setting) -> Steps[str]:
    """Translate the texts between kept pieces and markup; names are a part of them."""
    pieces = [_as_text(piece) for piece in pieces]
    groups = [(kind, list(run)) for kind, run in groupby(pieces, lambda piece: piece.kind)]
    last = len(groups) - 1
    parts = {
        index: trimmed(run, index == last)
        for index, (kind, run) in enumerate(groups)
        if kind is Kind.TEXT
    }
    cores = [core for _, core, _ in parts.values()]
    texts = [_asked(core) for core in cores if translatable(core)]
    translations = map(_one_line, (yield texts))
    chunks: list[tuple[str, str]] = []  # as read, as written
    for index, (kind, run) in enumerate(groups):
        if kind is not Kind.TEXT:
            raws = _raw(run, setting, first=not any(text for text, _ in chunks))
            chunks += ((piece.text, raw) for piece, raw in zip(run, raws, strict=True))
            continue
        before, core, after = parts[index]
        translated = next(translations) if translatable(core) else ""
        translation = _as_part(translated, text_of(core))
        chunks.append((text_of(before), raw_of(before)))
        if translation and translation != _asked(core):
            chunks.append((translation, setting.escape(translation)))
        else:
            chunks.append((text_of(core), raw_of(core)))
        chunks.append((text_of(after), raw_of(after)))
    return "".join(_with_blanks(chunks, setting))


def _as_text(piece: Piece) -> Piece:
    return piece._replace(kind=Kind.TEXT) if piece.kind is Kind.NAME else piece


def _as_part(translation: str, source: str) -> str:
    """Undo what makes a sentence of a part: a full stop, or a capital, that its source has not."""
    if not source.endswith(FULL_STOPS) and not translation.endswith("..."):
        translation = translation.rstrip("." if translation.strip(".") else "")
    word = translation.split(" ")[0]
    if source[:1].islower() and word[:1].isupper() and (word[1:].islower() or word == "A"):
        translation = translation[0].lower() + translation[1:]
    return translation


def _with_blanks(chunks: Sequence[tuple[str, str]], setting: Setting) -> list[str]:
    """Put blanks between chunks where only the target language has them."""
    raws = [raw for _, raw in chunks]
    if spaced(setting.source) or not spaced(setting.target):
        return raws
    last = None
    for index, (text, _) in enumerate(chunks):
        if text:
            if last is not None and needs_blank(chunks[last][0], text):
                raws[last] += " "
            last = index
    return raws


def needs_blank(before: str, after: str) -> bool:
    """Tell whether a language with spaces between words has one between two texts."""
    if before[-1:].isspace() or after[:1].isspace():
        return False
    return not before.endswith(NO_BLANK_AFTER) and not after.startswith(NO_BLANK_BEFORE)


def _raw(pieces: Sequence[Piece], setting: Setting, first: bool = True) -> Iterator[str]:
    """Yield pieces as they are written in a translation.

    A term that begins a sentence begins with a capital; quotation marks are the target language's.
    """
    for piece in pieces:
        if piece.kind is Kind.QUOTE:
            yield setting.escape(piece.forms[0])
        elif piece.kind is Kind.TERM and first and piece.text[0].isupper():
            yield setting.escape(piece.forms[-1])
        else:
            yield piece.raw
        first = first and not piece.text


def _asked(pieces: Sequence[Piece]) -> str:
    return BLANKS.sub(" ", text_of(pieces)).strip()


def _one_line(translation: str) -> str:
    return LINE_BREAKS.sub(" ", translation).strip()
