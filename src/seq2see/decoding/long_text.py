"""Lines of text in, lines of text out: long ones are cut into pieces that a model takes, and joined again."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from seq2see.decoding.hypotheses import Hypothesis
from seq2see.errors import InputError
from seq2see.text.tokenizers import Tokenizer, Tokenizers

SENTENCE_END = re.compile(r"(?<=[.!?…;:])\s+")


@dataclass(frozen=True)
class Translation:
    """One translation: its text, log-probability, and score after the length penalty."""

    text: str
    log_probability: float
    score: float


def read(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """The lines of a stream as they come, in UTF-8, without their ends."""
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
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
    """What `search` finds for each text, best first; a text without tokens stays empty, a long one is cut."""
    parts: list[list[int]] = []
    bounds = [0]
    for line, text in enumerate(texts, start=first_line):
        encoded = [tokenizers.source.encode(text.strip())]
        if len(encoded[0]) > limit:
            encoded = [*map(tokenizers.source.encode, split(text, tokenizers.source, limit))]
        if len(encoded) > 1:
            warn(
                f"line {line}: longer than the model's {limit} tokens; translated in {len(encoded)} pieces"
            )
        parts += filter(None, encoded)
        bounds.append(len(parts))
    decoded = [
        [
            Translation(tokenizers.target.decode(h.ids), h.log_probability, h.score)
            for h in hypotheses
        ]
        for hypotheses in search(parts)
    ]
    return [_join(decoded[start:end]) for start, end in itertools.pairwise(bounds)]


def split(text: str, tokenizer: Tokenizer, limit: int) -> list[str]:
    """Cut a text into pieces of at most `limit` tokens: at sentence marks, else between words, else anywhere."""
    text = text.strip()
    if len(tokenizer.encode(text)) <= limit or len(text) == 1:
        return [text]
    for units in (SENTENCE_END.split(text), text.split()):
        if len(units) > 1:
            middle = len(units) // 2
            halves = " ".join(units[:middle]), " ".join(units[middle:])
            break
    else:
        halves = text[: len(text) // 2], text[len(text) // 2 :]
    return [piece for half in halves for piece in split(half, tokenizer, limit)]


def _join(pieces: list[list[Translation]]) -> list[Translation]:
    """Put the translations of a long line's pieces together, best with best."""
    if not pieces:
        return [Translation("", 0.0, 0.0)]
    ranks = min(len(translations) for translations in pieces)
    return [
        Translation(
            " ".join(translations[rank].text for translations in pieces),
            sum(translations[rank].log_probability for translations in pieces),
            sum(translations[rank].score for translations in pieces),
        )
        for rank in range(ranks)
    ]
