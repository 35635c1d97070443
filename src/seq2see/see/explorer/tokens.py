"""Tokens of a sentence, with the word that each is part of."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from seq2see.batches import Ids
from seq2see.see.alignment import word_of_piece
from seq2see.tasks.protocol import Reader
from seq2see.text import captions
from seq2see.text.documents.sentences import spaced
from seq2see.text.specials import END, SPECIALS


@dataclass(frozen=True)
class Tokens:
    """Pieces in order; special ones belong to no word."""

    pieces: list[str]
    words: list[int | None]
    special: list[bool]


def source_tokens(translator: Reader, text: str) -> Tokens:
    """Split a source text; </s> is last."""
    tokenizers = translator.tokenizers
    pieces = tokenizers.source.pieces(text)
    return _ended(pieces, _words(pieces, text, tokenizers.languages[0]))


def target_tokens(translator: Reader, ids: Ids) -> Tokens:
    """Name the ids that are predicted; </s> is last."""
    target = translator.tokenizers.target
    pieces = [target.piece(id) for id in ids]
    return _ended(pieces, _words(pieces, target.decode(ids), translator.tokenizers.languages[1]))


def input_tokens(predicted: Tokens) -> Tokens:
    """The decoder's input for these predictions: shifted, with <s> first."""
    pieces = [SPECIALS[0], *predicted.pieces[:-1]]
    return Tokens(pieces, [None, *predicted.words[:-1]], [True, *predicted.special[:-1]])


def words_of(text: str) -> list[str]:
    """Split a text into words and punctuation marks, composed as the tokenizers compose them."""
    return captions.words(unicodedata.normalize("NFC", text))


def _ended(pieces: Sequence[str], words: Sequence[int]) -> Tokens:
    specials = [piece in SPECIALS for piece in pieces]
    return Tokens([*pieces, SPECIALS[END]], [*words, None], [*specials, True])


def _words(pieces: Sequence[str], text: str, language: str) -> list[int]:
    """The word of each piece; where words are not spaced, every piece is its own."""
    words = words_of(text)
    if not spaced(language) or not words:
        return list(range(len(pieces)))
    return word_of_piece(pieces, words)
