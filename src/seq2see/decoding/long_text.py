"""Translation of texts of any length: long ones are split into pieces, translated and rejoined."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from seq2see.decoding.hypotheses import Hypothesis
from seq2see.errors import InputError
from seq2see.text.documents.sentences import sentences, spaced
from seq2see.text.tokenizers import Tokenizer, Tokenizers

CLAUSE_END = re.compile(r"(?<=[,.!?…;:،؛؟।])\s+|(?<=[，、。；：！？])(?![”’」』）])")
BLANK = re.compile(r"\s+")


@dataclass(frozen=True)
class Translation:
    """A translation: its text, log-probability, and score after the length penalty."""

    text: str
    log_probability: float
    score: float


def read_stream(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """Decode the lines of a UTF-8 stream as they arrive, without their line ends."""
    for number, line in enumerate(stream, start=1):
        encoding = "utf-8-sig" if number == 1 else "utf-8"
        try:
            yield line.decode(encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}:{number}: not UTF-8 at byte {error.start} of the line"
            ) from None


def translate(
    texts: Sequence[str],
    search: Callable[[list[list[int]]], list[list[Hypothesis]]],
    tokenizers: Tokenizers,
    limit: int,
    first_line: int,
    warn: Callable[[str], None],
) -> list[list[Translation]]:
    """Translate texts with `search`; return the hypotheses of each, best first.

    Texts without tokens stay empty; texts of more than `limit` tokens are split, with a warning
    that names the line.
    """
    pieces: list[list[int]] = []
    bounds = [0]  # text i has pieces[bounds[i] : bounds[i + 1]]
    for line, text in enumerate(texts, start=first_line):
        encoded = encode_pieces(text, tokenizers, limit)
        if len(encoded) > 1:
            warn(
                f"line {line}: longer than the model's {limit} tokens; "
                f"translated in {len(encoded)} pieces"
            )
        pieces += encoded
        bounds.append(len(pieces))
    decoded = [decode(hypotheses, tokenizers.target) for hypotheses in search(pieces)]
    return [join(decoded[a:b], tokenizers) for a, b in itertools.pairwise(bounds)]


def encode_pieces(text: str, tokenizers: Tokenizers, limit: int) -> list[list[int]]:
    """Encode a text in pieces of at most `limit` tokens; none for a text without tokens."""
    tokenizer = tokenizers.source
    ids = tokenizer.encode(text.strip())
    if len(ids) <= limit:
        return [ids] if ids else []
    pieces = split_text(text, tokenizer, limit, tokenizers.languages[0])
    return [ids for ids in map(tokenizer.encode, pieces) if ids]


def split_text(text: str, tokenizer: Tokenizer, limit: int, language: str) -> list[str]:
    """Split a text into pieces of at most `limit` tokens.

    Sentences become pieces of their own, as models are trained on them. One that is too long is
    split between clauses, else between words, else between characters; a character never is.
    """
    text = text.strip()
    if len(tokenizer.encode(text)) <= limit or len(text) == 1:
        return [text]
    parts = [text[start:end] for start, end in sentences(text, language)]
    if len(parts) == 1:
        parts = _halves(text)
    return [piece for part in parts for piece in split_text(part, tokenizer, limit, language)]


def _halves(text: str) -> list[str]:
    for mark in (CLAUSE_END, BLANK):
        ends = [match.end() for match in mark.finditer(text) if match.end() < len(text)]
        if ends:
            middle = ends[len(ends) // 2]
            break
    else:
        middle = _between_letters(text)
    return [text[:middle], text[middle:]]


def _between_letters(text: str) -> int:
    """The place nearest to the middle that does not part a letter from its accents and vowels."""
    places = sorted(range(1, len(text)), key=lambda place: abs(2 * place - len(text)))
    whole = (place for place in places if not unicodedata.category(text[place]).startswith("M"))
    return next(whole, places[0])


def decode(hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer) -> list[Translation]:
    """Convert the hypotheses of a piece to text."""
    return [
        Translation(tokenizer.decode(hypothesis.ids), hypothesis.log_probability, hypothesis.score)
        for hypothesis in hypotheses
    ]


def join(pieces: list[list[Translation]], tokenizers: Tokenizers) -> list[Translation]:
    """Join the translations of a text's pieces rank by rank, best with best."""
    if not pieces:
        return [Translation("", 0.0, 0.0)]
    blank = " " if spaced(tokenizers.languages[1]) else ""
    ranks = zip(*pieces, strict=False)  # as many as every piece has
    return [
        Translation(
            blank.join(translation.text for translation in translations),
            sum(translation.log_probability for translation in translations),
            sum(translation.score for translation in translations),
        )
        for translations in ranks
    ]
