"""A translation model in use: translates, scores and explains."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, overload

import torch
from torch import Tensor

from seq2see.batches import Example, IdPair, Ids, TextExamples, by_tokens, collate
from seq2see.decoding.hypotheses import BROKEN_MODEL, Hypothesis, Search
from seq2see.decoding.long_text import Translation, translate
from seq2see.decoding.search import Seq2Seq, search
from seq2see.errors import InputError, WorkError
from seq2see.layers.trace import Trace
from seq2see.recipe.schema import Recipe
from seq2see.scoring.likelihood import Scored
from seq2see.text.specials import END
from seq2see.text.tokenizers import Tokenizers

SCORED_TOKENS = 2048  # of a batch, padding included


@dataclass(frozen=True)
class Explanation:
    """A translation with all attention weights, and the tokens of their rows and columns."""

    source: str
    target: str
    source_tokens: list[str]  # </s> last
    target_in: list[str]  # the decoder's input, <s> first
    target_out: list[str]  # its predictions, </s> last
    weights: dict[str, Tensor]  # name → (H, rows, columns)


class TranslationModel(Seq2Seq[Any, Any], Protocol):
    """A sequence-to-sequence model as a translator uses it."""

    def __call__(self, batch: Any, trace: Trace | None = None, /) -> Tensor: ...
    def eval(self) -> Any: ...
    def to(self, device: torch.device, /) -> Any: ...
    def parameters(self) -> Any: ...
    def state_dict(self) -> Any: ...


class Translator:
    """Translates, scores and explains with one model."""

    def __init__(
        self,
        recipe: Recipe,
        tokenizers: Tokenizers,
        model: TranslationModel,
        device: torch.device,
    ) -> None:
        self.recipe = recipe
        self.tokenizers = tokenizers
        self.device = device
        self.model = model
        self.model.to(device)
        self.model.eval()

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
            self.model.eval()
            return search(self.model, sources, config, n_best, self.device)

        limit = self.recipe.data.max_length
        return translate(texts, decode, self.tokenizers, limit, first_line, warn)

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
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        results = self.search(texts, beam=beam, n_best=n_best)
        if n_best == 1:
            return [translations[0].text for translations in results]
        return [[translation.text for translation in translations] for translations in results]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Compute log p(target | source) of given translations, </s> included."""
        return [scored.log_probability for scored in self.score_tokens(sources, targets)]

    def score_tokens(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """Compute log p of every token of given translations; an empty text is </s> alone."""
        if len(sources) != len(targets):
            counts = f"{len(sources)} sources and {len(targets)} targets"
            raise ValueError(f"{counts}; they must pair up")
        pairs = zip(self.ids("source", sources), self.ids("target", targets), strict=True)
        return self.force(list(pairs))

    def ids(
        self,
        side: Literal["source", "target"],
        texts: Sequence[str],
        file: Path | None = None,
    ) -> list[Ids]:
        """Encode texts; refuse one that is too long by its index, or by its line in `file`."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        tokenizer = self.tokenizers.source if side == "source" else self.tokenizers.target
        limit = self.recipe.data.max_length
        encoded = [tokenizer.encode(text) for text in texts]
        for index, ids in enumerate(encoded):
            if len(ids) > limit:
                place = f"{side}s[{index}]" if file is None else f"{file}:{index + 1}"
                rule = f"the model takes at most data.max_length = {limit}"
                raise InputError(f"{place}: {len(ids)} tokens; {rule}")
        return encoded

    @torch.inference_mode()
    def force(self, pairs: Sequence[IdPair]) -> list[Scored]:
        """Forced decoding: log p of each target id, </s> last, given the source and its prefix."""
        self.model.eval()
        keys = [(tuple(source), tuple(target)) for source, target in pairs]
        # Equal pairs are scored once, so that their scores agree to the last bit.
        unique = list(dict.fromkeys(keys))
        examples = TextExamples([Example([*source], [*target]) for source, target in unique])
        scores: dict[tuple[tuple[int, ...], tuple[int, ...]], Scored] = {}
        for lines in by_tokens(examples.lengths, SCORED_TOKENS, seed=0, epoch=0):
            batch = examples.batch(lines).to(self.device)
            log_p = self.model(batch).log_softmax(-1)
            log_p = log_p.gather(-1, batch.target_out[..., None])[..., 0]  # (B, T)
            for line, row in zip(lines, log_p.tolist(), strict=True):
                tokens = [self.tokenizers.target.piece(id) for id in (*unique[line][1], END)]
                row = row[: len(tokens)]
                scores[unique[line]] = Scored(sum(row), tokens, row)
        if not all(math.isfinite(scored.log_probability) for scored in scores.values()):
            raise WorkError(BROKEN_MODEL)
        return [scores[key] for key in keys]

    @torch.inference_mode()
    def explain(self, text: str, target: str | None = None) -> Explanation:
        """Translate a text, or take the given translation, and return all attention weights."""
        if not text.strip():
            raise InputError("the text to explain is empty")
        source_ids = self.tokenizers.source.encode(text)
        target_ids = self._target_ids(source_ids, target)
        limit = self.recipe.data.max_length
        for name, ids in (("text", source_ids), ("translation", target_ids)):
            if len(ids) > limit:
                raise InputError(f"the {name} has more than the model's {limit} tokens")
        trace = Trace()
        self.model(collate([(source_ids, target_ids)], [0]).to(self.device), trace)
        pieces = [self.tokenizers.target.piece(id) for id in target_ids]
        return Explanation(
            source=text,
            target=self.tokenizers.target.decode(target_ids) if target is None else target,
            source_tokens=[*self.tokenizers.source.pieces(text), "</s>"],
            target_in=["<s>", *pieces],
            target_out=[*pieces, "</s>"],
            weights={name: weights[0].cpu() for name, weights in trace.on_tokens().items()},
        )

    def _target_ids(self, source: Ids, target: str | None) -> Ids:
        self.model.eval()
        if target is not None:
            return self.tokenizers.target.encode(target)
        # The model's own ids: its text may be segmented differently.
        (hypotheses,) = search(self.model, [source], Search.of(self.recipe), device=self.device)
        return hypotheses[0].ids
