"""Translation of texts by any engine; without torch, which not every engine needs."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, overload

from seq2see.decoding.hypotheses import BROKEN_MODEL, Hypothesis, Prefixes, Search
from seq2see.decoding.kept import kept
from seq2see.decoding.long_text import Translation, translate
from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import Recipe
from seq2see.scoring.likelihood import Scored
from seq2see.tasks.short_repr import short_repr
from seq2see.text.documents import Lexicon
from seq2see.text.documents.standins import STAND_INS
from seq2see.text.specials import END
from seq2see.text.tokenizers import Tokenizers

Ids = list[int]


def translates(recipe: Recipe) -> bool:
    """Whether the models of a recipe are for translation engines."""
    return recipe.task == "translate"


def string(name: str, text: str) -> str:
    """Return a text that a caller gave; refuse what is not a string."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is {text!r:.60}; it must be a string")
    return text


def strings(name: str, texts: Iterable[str]) -> list[str]:
    """Return the texts that a caller gave; refuse one string, and name what is not a string."""
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a list of strings, not one string")
    return [string(f"{name}[{index}]", text) for index, text in enumerate(texts)]


class TranslationEngine(ABC):
    """Base of the engines, which search and score ids: translates and scores texts."""

    def __init__(
        self, recipe: Recipe, tokenizers: Tokenizers, directory: Path | None = None
    ) -> None:
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.directory = directory

    def described(self, *facts: str) -> str:
        """A short repr: languages, layers, the facts and the directory."""
        data, model = self.recipe.data, self.recipe.model
        layers = f"{model.encoder_layers}+{model.decoder_layers}"
        if model.kind == "prefix":
            layers = str(model.encoder_layers)  # of one stack
        names = (f"{data.source}→{data.target}", f"{layers} layers")
        return short_repr(type(self).__name__, *names, *facts, self.directory)

    @abstractmethod
    def hypotheses(
        self,
        sources: Sequence[Ids],
        config: Search,
        n_best: int = 1,
        prefixes: Prefixes | None = None,
    ) -> list[list[Hypothesis]]:
        """Search; return the n best hypotheses of each source, in order.

        They begin with the tokens of their prefix, if prefixes are given.
        """

    @abstractmethod
    def log_probabilities(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[list[float]]:
        """Forced decoding: log p(y_t | y_<t, x) of every target token, </s> last."""

    def search(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        first_line: int = 1,
        warn: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
    ) -> list[list[Translation]]:
        """Translate texts; return the n best translations of each, best first.

        Empty texts stay empty; long ones are split, with a warning that names the line.
        """
        config = Search.of(self.recipe, beam)

        def decode(sources: list[Ids]) -> list[list[Hypothesis]]:
            return self.hypotheses(sources, config, n_best)

        def first(texts: Sequence[str]) -> list[list[Translation]]:
            return translate(texts, decode, self.tokenizers, limit, first_line, warn)

        def again(texts: Sequence[str]) -> list[list[Translation]]:
            return translate(texts, decode, self.tokenizers, limit, first_line, lambda _: None)

        limit = self.recipe.data.max_length
        lines = strings("texts", texts)
        if not self.recipe.decode.keep:
            return first(lines)
        return kept(lines, first, again, self.tokenizers.languages, self.lexicon)

    @property
    def lexicon(self) -> Lexicon | None:
        """The words that the model knows, and those that it has learned to copy."""
        lexicon = self.tokenizers.lexicon
        if not self.recipe.decode.keep or not lexicon.words:
            return None
        return replace(lexicon, stand_ins=STAND_INS) if self.recipe.data.exchange else lexicon

    @overload
    def translate(
        self, texts: Sequence[str], beam: int | None = None, n_best: Literal[1] = 1
    ) -> list[str]: ...
    @overload
    def translate(
        self, texts: Sequence[str], beam: int | None = None, n_best: int = 2
    ) -> list[list[str]]: ...
    def translate(
        self, texts: Sequence[str], beam: int | None = None, n_best: int = 1
    ) -> list[str] | list[list[str]]:
        """Translate texts, with the recipe's beam unless one is given.

        Returns the best translation of each text or, for n_best > 1, a list of its n best.
        """
        results = self.search(texts, beam=beam, n_best=n_best)
        if n_best == 1:
            return [translations[0].text for translations in results]
        return [[translation.text for translation in translations] for translations in results]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Compute log p(target | source) of given translations, </s> included."""
        return [scored.log_probability for scored in self.score_tokens(sources, targets)]

    def score_tokens(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """Compute log p of every token of given translations; an empty text is </s> alone."""
        source_ids = self.ids("source", sources)
        target_ids = self.ids("target", targets)
        if len(source_ids) != len(target_ids):
            counts = f"{len(source_ids)} sources and {len(target_ids)} targets"
            raise ValueError(f"{counts}; they must pair up")
        return self.force(list(zip(source_ids, target_ids, strict=True)))

    def ids(
        self,
        side: Literal["source", "target"],
        texts: Sequence[str],
        file: Path | None = None,
    ) -> list[Ids]:
        """Encode texts; refuse one that is too long by its index, or by its line in `file`."""
        tokenizer = self.tokenizers.source if side == "source" else self.tokenizers.target
        limit = self.recipe.data.max_length
        encoded = [tokenizer.encode(text) for text in strings(f"{side}s", texts)]
        for index, ids in enumerate(encoded):
            if len(ids) > limit:
                place = f"{side}s[{index}]" if file is None else f"{file}:{index + 1}"
                rule = f"the model takes at most data.max_length = {limit}"
                raise InputError(f"{place}: {len(ids)} tokens; {rule}")
        return encoded

    def force(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Scored]:
        """Forced decoding: log p of each target id, </s> last, given the source and its prefix."""
        keys = [(tuple(source), tuple(target)) for source, target in pairs]
        # Equal pairs are scored once, so that their scores agree to the last bit.
        unique = list(dict.fromkeys(keys))
        rows = self.log_probabilities([([*source], [*target]) for source, target in unique])
        scores: dict[tuple[tuple[int, ...], tuple[int, ...]], Scored] = {}
        for key, row in zip(unique, rows, strict=True):
            tokens = [self.tokenizers.target.piece(id) for id in (*key[1], END)]
            scores[key] = Scored(sum(row), tokens, row)
        if not all(math.isfinite(scored.log_probability) for scored in scores.values()):
            raise WorkError(BROKEN_MODEL)
        return [scores[key] for key in keys]
