"""Word-level differences between an output and its reference, as HTML."""

import re
from difflib import SequenceMatcher
from html import escape

CJK = "぀-ヿ㐀-鿿"  # Chinese and Japanese have no spaces, so every character counts as a word
PUNCTUATION = r"!-/:-@\[-`{-~«»‐-⁞、。！，？：；（）"
# A word keeps the space before it, so that joining the words restores the text.
TOKEN = re.compile(rf"\s*(?:[{CJK}{PUNCTUATION}]|[^\s{CJK}{PUNCTUATION}]+)")


def differences(output: str, reference: str) -> str:
    """Mark the output's words that the reference lacks; strike out the words missing from it."""
    hypothesis = TOKEN.findall(output)
    expected = TOKEN.findall(reference)
    matcher = SequenceMatcher(
        None, [word.strip() for word in expected], [word.strip() for word in hypothesis]
    )
    html = ""
    for operation, start, end, first, last in matcher.get_opcodes():
        written = "".join(hypothesis[first:last])
        missing = "".join(expected[start:end])
        if operation == "equal":
            html += escape(written)
            continue
        # The output's first word has no space of its own to part it from a missing word.
        space = " " if missing and not first else ""
        html += _tagged("del", missing) + space + _tagged("mark", written)
    return html.strip()


def _tagged(tag: str, text: str) -> str:
    words = text.lstrip()
    spaces = text[: len(text) - len(words)]
    return f"{spaces}<{tag}>{escape(words)}</{tag}>" if words else ""
