"""Tokens of HTML as the standard's tokenizer cuts them, each with its source, none left out."""

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

RAW = {"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"}
SPACE = r"\t\n\f\r "
NAME = re.compile(rf"</?([A-Za-z][^{SPACE}/>]*+)")
ATTRIBUTE = re.compile(
    rf"[{SPACE}/]*+([^{SPACE}/>][^{SPACE}/>=]*+)(?:[{SPACE}]*+=[{SPACE}]*+"
    rf"(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^{SPACE}>]*+)))?"
)
TAG_END = re.compile(rf"[{SPACE}/]*+>")
OTHER = re.compile(
    r"<!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>|\Z))"  # a comment
    r"|<(?:[!?]|/[^A-Za-z])[^>]*+(?:>|\Z)|</>"  # a doctype, or what is taken for a comment
)


class Type(Enum):
    """Types of token."""

    TEXT = auto()
    START = auto()
    END = auto()
    OTHER = auto()  # a comment, a doctype, a tag that the end of the document cuts off


class Token(NamedTuple):
    """A token, its source, and for tags the name and attributes."""

    type: Type
    raw: str
    name: str = ""  # in lower case
    attributes: Mapping[str, str] = MappingProxyType({})


def tokens(html: str) -> Iterator[Token]:
    """Yield the tokens of a document or a fragment; their sources together are the document."""
    position = 0
    text = 0  # the start of text that has not been yielded
    while (start := html.find("<", position)) >= 0:
        token = _token(html, start)
        if token is None:
            position = start + 1
            continue
        if text < start:
            yield Token(Type.TEXT, html[text:start])
        yield token
        text = position = start + len(token.raw)
        if token.type is Type.START and token.name in RAW:
            end = _end_of_raw(html, position, token.name)
            if position < end:
                yield Token(Type.TEXT, html[position:end])
            text = position = end
    if text < len(html):
        yield Token(Type.TEXT, html[text:])


def _token(html: str, start: int) -> Token | None:
    """Read what begins with a "<"; None if that is a character of the text."""
    if match := OTHER.match(html, start):
        return Token(Type.OTHER, match.group())
    name = NAME.match(html, start)
    if name is None:
        return None
    attributes: dict[str, str] = {}
    end = name.end()
    while match := ATTRIBUTE.match(html, end):
        value = next(filter(None, match.group(2, 3, 4)), "")
        attributes.setdefault(match[1].lower(), value)
        end = match.end()
    closed = TAG_END.match(html, end)
    if closed is None:
        return Token(Type.OTHER, html[start:])
    kind = Type.END if html[start + 1] == "/" else Type.START
    return Token(kind, html[start : closed.end()], name[1].lower(), attributes)


def _end_of_raw(html: str, start: int, name: str) -> int:
    """Find the end of an element whose content has no tags."""
    if name == "plaintext":
        return len(html)
    closing = re.compile(rf"</{name}(?=[{SPACE}/>])", re.IGNORECASE).search(html, start)
    return closing.start() if closing else len(html)
