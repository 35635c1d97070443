"""Names of byte pieces, such as <0xE4>, as parts of the characters that they spell."""

import codecs
import re
from collections.abc import Sequence

BYTE = re.compile("<0x([0-9A-F]{2})>")
SUBSCRIPTS = "₁₂₃₄"
CONTINUED = "89AB"  # first digits of bytes that are not the first of a character


def surfaces(pieces: Sequence[str]) -> list[str]:
    """Put each spelled character in the place of its last byte, and nothing before it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    surfaces: list[str] = []
    for piece in pieces:
        byte = BYTE.fullmatch(piece)
        if byte:
            surfaces.append(decoder.decode(bytes.fromhex(byte[1])))
            continue
        if broken := decoder.decode(b"", final=True):
            surfaces[-1] += broken
        decoder.reset()
        surfaces.append(piece)
    return surfaces


def labels(pieces: Sequence[str]) -> list[str]:
    """Label the bytes of a character by it and their number: 龘₁ 龘₂ 龘₃; others keep their name."""
    labels = list(pieces)
    first = 0  # of the bytes of a character
    for place, surface in enumerate(surfaces(pieces)):
        byte = BYTE.fullmatch(pieces[place])
        if byte is None:
            continue
        if byte[1][0] not in CONTINUED:
            first = place
        if len(surface) == 1 and surface.isprintable() and surface != "\ufffd":
            numbers = SUBSCRIPTS if place > first else ("",)
            for number, index in enumerate(range(first, place + 1)):
                labels[index] = surface + numbers[number]
    return labels
