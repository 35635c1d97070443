"""HTML: passages between block elements, with their inline tags; all else stays as it is."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import IntEnum
from html import escape, unescape

from seq2see.text.documents.markup import Token, Type, tokens
from seq2see.text.documents.pieces import Kind, Piece

# Elements that end a passage; all others may be parts of a sentence.
BLOCKS = "address article aside base blockquote body br button caption center col colgroup dd"
BLOCKS += " details dialog dir div dl dt fieldset figcaption figure footer form frame frameset"
BLOCKS += " h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li link main menu meta nav noscript"
BLOCKS += " ol optgroup option p param pre search section select summary table tbody td template"
BLOCKS += " tfoot th thead title tr ul"
VOID = "area base br col embed frame hr img input link meta param source track wbr"
CODE = "code kbd pre samp tt var"
HIDDEN = "audio canvas iframe math noembed noframes object plaintext script style svg textarea"
HIDDEN += " video xmp"
OPTIONAL_END = "dd dt li option p td th tr"
REFERENCE = re.compile(r"(&(?:#[0-9]++;?|#[xX][0-9A-Fa-f]++;?|[A-Za-z][A-Za-z0-9]{0,31}+;?))")


class Mode(IntEnum):
    """Treatment of the text in an element."""

    TRANSLATED = 0
    KEPT = 1  # a part of its sentence that is not translated
    HIDDEN = 2  # no part of any sentence


def written(text: str) -> str:
    """Write a text as HTML."""
    return escape(text, quote=False)


def passages(document: str) -> Iterator[str | list[Piece]]:
    """Yield a document in parts: strings to keep, and the pieces of passages to translate."""
    elements = Elements()
    passage: list[Piece] = []
    for token in tokens(document):
        mode = elements.mode
        matched = elements.follow(token)
        if token.name in BLOCKS.split() and Mode.HIDDEN not in (mode, elements.mode):
            if passage:
                yield passage
            passage = []
            yield token.raw
        elif token.type is Type.TEXT and mode is not Mode.HIDDEN:
            passage += [_kept(token.raw)] if mode is Mode.KEPT else _text(token.raw)
        else:
            hidden = Mode.HIDDEN in (mode, elements.mode)
            passage.append(Piece(_kind(token, matched and not hidden), "", token.raw))
    if passage:
        yield passage


class Elements:
    """Elements that are open at a place of a document."""

    def __init__(self) -> None:
        self._open: list[tuple[str, Mode]] = []
        self._count: Counter[str] = Counter()

    @property
    def mode(self) -> Mode:
        return self._open[-1][1] if self._open else Mode.TRANSLATED

    def follow(self, token: Token) -> bool:
        """Open or close elements; tell whether a tag is one of a pair, as far as is known."""
        if token.type is Type.START:
            if token.name in VOID.split() or _closes_itself(token):
                return False
            last = self._open[-1][0] if self._open else ""
            ends = last == token.name and last in OPTIONAL_END.split()
            if ends or (last == "p" and token.name in BLOCKS.split()):
                self._close(last)
            self._open.append((token.name, _mode(token.name, token.attributes, self.mode)))
            self._count[token.name] += 1
            return True
        if token.type is Type.END and self._count[token.name]:
            self._close(token.name)
            return True
        return False

    def _close(self, name: str) -> None:
        """Close the innermost element of a name, and those in it."""
        closed = ""
        while closed != name:
            closed, _ = self._open.pop()
            self._count[closed] -= 1


def _mode(name: str, attributes: Mapping[str, str], outer: Mode) -> Mode:
    if outer is Mode.HIDDEN or name in HIDDEN.split():
        return Mode.HIDDEN
    wish = attributes.get("translate")
    if wish is not None and wish.lower() in ("no", "yes", ""):
        return Mode.KEPT if wish.lower() == "no" else Mode.TRANSLATED
    unwanted = "notranslate" in attributes.get("class", "").split()
    return Mode.KEPT if unwanted or name in CODE.split() else outer


def _closes_itself(token: Token) -> bool:
    return token.name in ("math", "svg") and token.raw.endswith("/>")


def _kind(token: Token, paired: bool) -> Kind:
    if not paired:
        return Kind.MARK
    return Kind.OPEN if token.type is Type.START else Kind.CLOSE


def _kept(raw: str) -> Piece:
    text = unescape(raw)
    return Piece(Kind.KEPT, text, raw, (text,)) if text else Piece(Kind.MARK, "", raw)


def _text(raw: str) -> Iterator[Piece]:
    """Yield the pieces of a text; a character reference is one of its own."""
    for part in filter(None, REFERENCE.split(raw)):
        text = unescape(part)
        yield Piece(Kind.TEXT if text else Kind.MARK, text, part)
