"""Spans of a text that no translation may change: addresses, placeholders, code, numbers, emoji."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Every pattern takes time in proportion to the text: no part can be matched in two ways.
ASCII = "[A-Za-z0-9_]"
PRINTF = "diouxXeEfFgGcrsa@"
LOCAL = r"[A-Za-z0-9_.+%-]"
LINK = r"\]\((?:[^()\s]|\([^()\s]*+\))++\)"
WORD = r"[A-Za-z0-9_-]"
ENDS_URL = r"\s<>\"`{}|\\^«»“”„‘’，。；：！？、（）「」『』《》\ufffc"
PICTURES = r"\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
PATTERNS = {
    "code": r"`[^`\n]++`|```",
    "url": rf"(?:https?|ftps?|file)://[^{ENDS_URL}]++|(?:mailto:|www\.)[^{ENDS_URL}]++",
    "link": rf"\[(?=[^\[\]\n]*+{LINK})|{LINK}",  # both ends of [text](address)
    "email": rf"(?<!{LOCAL}){LOCAL}++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++",
    "placeholder": "|".join(
        (
            r"\{\{[^{}\n]{0,100}\}\}|\{%[^{}\n]{0,100}%\}|[$#%@]?\{[^{}\s]{0,100}\}",
            rf"%(?:\d+\$|\(\w{{1,100}}\))?[-+0#]*+(?:\d++|\*)?(?:\.\d++)?l?[{PRINTF}](?!{ASCII})",
            r"%%|\$[A-Za-z_][A-Za-z0-9_]*+",
            r"</?[A-Za-z0-9][^<>\n]{0,200}>|&(?:#\w{1,10}|[A-Za-z]\w{1,30});",
        )
    ),
    "name": "|".join(
        (
            rf"(?<![\w.-])(?:{WORD}++\.)+[a-z][a-z0-9]{{1,5}}(?![\w-])",  # example.org, train.py
            r"(?<![\w/.])(?:~|\.{1,2})?(?:/[\w.@-]++){2,}+/?|(?<!\w)[A-Z]:\\[^\s<>\"]++",
            rf"(?<![\w-])--[A-Za-z][A-Za-z0-9_-]*+|(?<!{WORD})[@#][A-Za-z_][A-Za-z0-9_]*+",
            r"(?<![A-Za-z0-9_])[A-Za-z0-9]*+_[A-Za-z0-9_]++(?:\(\))?",  # max_length
            r"(?<![A-Za-z0-9_])(?:[A-Za-z]++\d|\d++[A-Z]|0x)[A-Za-z0-9]*+",  # MP3, 5G, 0x1f
        )
    ),
    "emoji": rf"[0-9#*]\ufe0f?\u20e3|(?:[{PICTURES}][\ufe0e\ufe0f\u200d\u20e3]*+)++",
    "number": r"(?:(?<![^\s(])[-−+])?\d++(?:[.,:/’'\u00a0\u202f-]\d++)*+",
}
SCANNER = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in PATTERNS.items()))
# Most sentences: nothing but letters and the usual marks, where no pattern matches.
PLAIN = re.compile(rf"(?:[^\W\d_{PICTURES}]++|[ ,;!?'\"()]|\.(?=\s|$)|-(?!-))*+")
CLOSING = {")": "(", "]": "["}


class Span(NamedTuple):
    """A part of a text: text[start:end]."""

    start: int
    end: int
    kind: str


def protected(text: str) -> Iterator[Span]:
    """Yield the protected spans of a text, from left to right."""
    if PLAIN.fullmatch(text):  # in a tenth of the time of a search
        return
    position = 0
    while match := SCANNER.search(text, position):
        kind = match.lastgroup or ""
        start, end = match.span()
        if kind == "url":
            end = start + len(_address(match.group()))
        yield Span(start, end, kind)
        position = end


def _address(match: str) -> str:
    """Leave to the sentence what is its own: a full stop, or a bracket that was opened before."""
    surplus = {mark: match.count(mark) - match.count(opens) for mark, opens in CLOSING.items()}
    end = len(match)
    while end > 1:
        last = match[end - 1]
        if last in CLOSING and surplus[last] > 0:
            surplus[last] -= 1
        elif last not in ".,;:!?'*_~":
            break
        end -= 1
    return match[:end]
