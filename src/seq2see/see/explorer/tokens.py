"""Tokens of a sentence, with the word that each is part of."""

from collections.abc import Sequence
from dataclasses import dataclass

from seq2see.batches import Ids
from seq2see.see.alignment import word_of_piece
from seq2see.tasks.protocol import Reader
from seq2see.text import captions
from seq2see.text.documents.sentences import spaced
from seq2see.text.normalising import normalised
from seq2see.text.specials import END, SPECIALS
from seq2see.text.tokenizers import Tokenizer


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
    words = words_of(text, tokenizers.source)
    return _ended(pieces, _places(pieces, words, tokenizers.languages[0]))


def target_tokens(translator: Reader, ids: Ids) -> Tokens:
    """Name the ids that are predicted; </s> is last."""
    target = translator.tokenizers.target
    pieces = [target.piece(id) for id in ids]
    words = words_of(target.decode(ids), target)
    return _ended(pieces, _places(pieces, words, translator.tokenizers.languages[1]))


def input_tokens(predicted: Tokens) -> Tokens:
    """The decoder's input for these predictions: shifted, with <s> first."""
    pieces = [SPECIALS[0], *predicted.pieces[:-1]]
    return Tokens(pieces, [None, *predicted.words[:-1]], [True, *predicted.special[:-1]])


def words_of(text: str, tokenizer: Tokenizer) -> list[str]:
    """Split a text into words and punctuation marks, normalised as the tokenizer does."""
    return captions.words(normalised(text, tokenizer.normalise))


def _ended(pieces: Sequence[str], words: Sequence[int]) -> Tokens:
    specials = [piece in SPECIALS for piece in pieces]
    return Tokens([*pieces, SPECIALS[END]], [*words, None], [*specials, True])


def _places(pieces: Sequence[str], words: Sequence[str], language: str) -> list[int]:
    """The word of each piece; where words are not spaced, every piece is its own."""
    if not spaced(language) or not words:
        return list(range(len(pieces)))
    return word_of_piece(pieces, words)
