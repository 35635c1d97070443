"""A translation model in use: translates, scores and explains."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from seq2see.batches import IdPair, Ids, TextExamples, by_tokens, collate
from seq2see.decoding.hypotheses import Hypothesis, Prefixes, Search
from seq2see.decoding.search import Seq2Seq, search
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.recipe.schema import Recipe
from seq2see.tasks.short_repr import parameters, short_repr
from seq2see.tasks.translation_engine import TranslationEngine, string
from seq2see.text.tokenizers import Tokenizers

SCORED_TOKENS = 2048  # of a batch, padding included
AXES = {  # of a map of each kind of attention: its rows, its columns
    "encoder.self": ("source query position", "source key position"),
    "decoder.self": ("target query position", "target key position"),
    "decoder.cross": ("target query position", "source key position"),
}


def kind_of(name: str) -> str:
    """Name the kind of attention of a layer: "decoder.2.cross" → "decoder.cross"."""
    stack, _, kind = name.split(".")
    return f"{stack}.{kind}"


@dataclass(frozen=True)
class Explanation:
    """A translation with all attention weights, and the tokens of their rows and columns."""

    source: str
    target: str
    source_tokens: list[str]  # </s> last
    target_in: list[str]  # the decoder's input, <s> first
    target_out: list[str]  # its predictions, </s> last
    weights: dict[str, Tensor]  # name → (H, rows, columns)

    @property
    def axes(self) -> dict[str, tuple[str, str, str]]:
        """Names of the axes of each array of weights."""
        return {name: ("head", *AXES[kind_of(name)]) for name in self.weights}

    def tokens(self, name: str) -> tuple[list[str], list[str]]:
        """Tokens of the rows and of the columns of a layer's maps."""
        return {
            "encoder.self": (self.source_tokens, self.source_tokens),
            "decoder.self": (self.target_in, self.target_in),
            "decoder.cross": (self.target_out, self.source_tokens),
        }[kind_of(name)]

    def __repr__(self) -> str:
        texts = f"{self.source!r} → {self.target!r}"
        maps = sum(map(len, self.weights.values()))
        return short_repr("Explanation", texts, f"{maps} attention maps")


class TranslationModel(Seq2Seq[Any, Any], Protocol):
    """A sequence-to-sequence model as a translator uses it."""

    def __call__(self, batch: Any, trace: Trace | None = None, /) -> Tensor: ...
    def eval(self) -> Any: ...
    def to(self, device: torch.device, /) -> Any: ...
    def parameters(self) -> Any: ...
    def state_dict(self) -> Any: ...


class Translator(TranslationEngine):
    """Translates, scores and explains with one model."""

    def __init__(
        self,
        recipe: Recipe,
        tokenizers: Tokenizers,
        model: TranslationModel,
        device: torch.device,
        directory: Path | None = None,
    ) -> None:
        super().__init__(recipe, tokenizers, directory)
        self.device = device
        self.model = model
        self.model.to(device)
        self.model.eval()

    def __repr__(self) -> str:
        return self.described(parameters(self.model))

    def hypotheses(
        self,
        sources: Sequence[Ids],
        config: Search,
        n_best: int = 1,
        prefixes: Prefixes | None = None,
    ) -> list[list[Hypothesis]]:
        self.model.eval()
        return search(self.model, sources, config, n_best, self.device, prefixes=prefixes)

    @torch.inference_mode()
    def log_probabilities(self, pairs: Sequence[IdPair]) -> list[list[float]]:
        self.model.eval()
        examples = TextExamples(pairs)
        rows: list[list[float]] = [[] for _ in pairs]
        for lines in by_tokens(examples.lengths, SCORED_TOKENS, seed=0, epoch=0):
            batch = examples.batch(lines).to(self.device)
            log_p = self.model(batch).log_softmax(-1)
            log_p = log_p.gather(-1, batch.target_out[..., None])[..., 0]  # (B, T)
            for line, row in zip(lines, log_p.tolist(), strict=True):
                rows[line] = row[: len(pairs[line][1]) + 1]
        return rows

    @torch.inference_mode()
    def explain(self, text: str, target: str | None = None) -> Explanation:
        """Translate a text, or take the given translation, and return all attention weights."""
        if not string("text", text).strip():
            raise InputError("the text to explain is empty")
        source_ids = self.tokenizers.source.encode(text)
        target_ids = self.target_ids(source_ids, target)
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

    def target_ids(self, source: Ids, target: str | None) -> Ids:
        """Encode the given translation, or search for the model's own."""
        self.model.eval()
        if target is not None:
            return self.tokenizers.target.encode(string("target", target))
        # The model's own ids: its text may be segmented differently.
        ((best,),) = self.hypotheses([source], Search.of(self.recipe))
        return best.ids
