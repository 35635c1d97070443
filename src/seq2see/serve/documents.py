"""Translation of whole texts: their sentences go to the queue together, round by round."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape

from seq2see.decoding.long_text import Translation
from seq2see.serve.models import Served
from seq2see.serve.patience import Patience
from seq2see.serve.problems import Problem
from seq2see.serve.translating import Options, Sentence, analyse, translate_sentences
from seq2see.text.documents import Format, Glossary, Steps, translate_document
from seq2see.text.documents.markup import Type, tokens


@dataclass(frozen=True)
class Wish:
    """Wishes beside the search: format, glossary and forced beginnings."""

    prefixes: Sequence[str]  # of each text
    format: Format = "text"
    glossary: Glossary | None = None


@dataclass(eq=False)
class Rank:
    """A text's translation made of the best translations of its sentences, or the second best …"""

    steps: Steps[str]
    rank: int
    prefix: str
    asked: list[str] = field(default_factory=list)
    text: str | None = None  # when it is done
    log_probability: float = 0.0  # of the first round, as is the score
    score: float = 0.0
    scored: bool = False
    own: bool = False  # whether any sentence has so many translations

    def sentences(self) -> list[Sentence]:
        """The sentences of this round; the text's first one has its prefix."""
        return [(text, "" if place else self.prefix) for place, text in enumerate(self.asked)]

    def advance(self, results: Sequence[list[Translation]] | None) -> None:
        """Take the translations of a round, none in the first, and ask for the next."""
        try:
            if results is None:
                self.asked = next(self.steps)
                return
            self.prefix = ""
            chosen = [result[min(self.rank, len(result) - 1)] for result in results]
            self.own = self.own or any(self.rank < len(result) for result in results)
            if not self.scored:  # later rounds search again for what was lost
                self.scored = True
                self.log_probability = sum(one.log_probability for one in chosen)
                self.score = sum(one.score for one in chosen)
            self.asked = self.steps.send([one.text for one in chosen])
        except StopIteration as stop:
            self.text = stop.value


async def translate_texts(
    served: Served, texts: Sequence[str], wish: Wish, options: Options, patience: Patience
) -> list[list[Translation]]:
    """Translate texts; return the n best translations of each, best first."""
    rows = [
        [Rank(_steps(served, text, wish), rank, prefix) for rank in range(options.n_best)]
        for text, prefix in zip(texts, wish.prefixes, strict=True)
    ]
    answers: dict[Sentence, list[Translation]] | None = None
    characters = sum(map(len, texts)) * options.n_best
    while True:
        open_ranks = [rank for row in rows for rank in row if rank.text is None]
        await analyse(characters, functools.partial(_advance, open_ranks, answers))
        open_ranks = [rank for rank in open_ranks if rank.text is None]
        if not open_ranks:
            break
        asked = list(dict.fromkeys(one for rank in open_ranks for one in rank.sentences()))
        # A request is bounded by its first round; later ones ask for several ways to translate.
        most = max(1, len(asked)) if answers is None else served.batcher.bound
        answers = {}
        for start in range(0, len(asked), most):
            part = asked[start : start + most]
            translations = await translate_sentences(served, part, options, patience)
            answers |= zip(part, translations, strict=True)
    results = [
        [
            Translation(rank.text or "", rank.log_probability, rank.score)
            for rank in row
            if rank.own or rank.rank == 0
        ]
        for row in rows
    ]
    await analyse(characters, lambda: _check_prefixes(texts, results, wish))
    return results


def _steps(served: Served, text: str, wish: Wish) -> Steps[str]:
    return translate_document(
        text,
        source=served.source,
        target=served.target,
        format=wish.format,
        glossary=wish.glossary,
        lexicon=served.engine.lexicon,
    )


def _advance(ranks: Sequence[Rank], answers: dict[Sentence, list[Translation]] | None) -> None:
    for rank in ranks:
        rank.advance(None if answers is None else [answers[one] for one in rank.sentences()])


def _check_prefixes(
    texts: Sequence[str], results: Sequence[Sequence[Translation]], wish: Wish
) -> None:
    """Refuse a prefix that a translation lost, such as in a second round; blank texts need none."""
    for text, row, prefix in zip(texts, results, wish.prefixes, strict=True):
        for one in row if prefix.strip() and text.strip() else ():
            if not _visible(one.text, wish.format).lstrip().startswith(prefix.strip()):
                reason = "the text's numbers, addresses or tags may prevent it"
                raise Problem(422, f"prefix: the translation does not begin with it; {reason}")


def _visible(text: str, format: Format) -> str:
    """Return a text without the tags of HTML."""
    if format == "text":
        return text
    return unescape("".join(token.raw for token in tokens(text) if token.type is Type.TEXT))
