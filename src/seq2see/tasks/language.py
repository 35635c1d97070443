"""A model of one language in use: it writes, fills blanks, or tells what a sentence is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from seq2see.batches import IdPair, Ids, by_tokens, collate, collate_answers
from seq2see.decoding.sampling import Sampling, generate
from seq2see.errors import InputError
from seq2see.models.language import CausalModel
from seq2see.recipe.schema import Recipe
from seq2see.tasks.translate import SCORED_TOKENS, USES, merging, opened, pick_device
from seq2see.text import labels
from seq2see.text.tokenizers import Tokenizers
from seq2see.text.vocab import MASK, PAD, SPECIALS

BLANK = "<mask>"
PLACEHOLDER = "\ufffc"  # "object replacement character": one that no text and no vocabulary has


@dataclass(frozen=True)
class Written:
    """A text that begins with the prompt, and log p of what follows it."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class Candidate:
    """A token for a blank."""

    token: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """A sentence with the likeliest token in each blank, and the candidates for each, likeliest first."""

    text: str
    blanks: list[list[Candidate]]


@dataclass(frozen=True)
class Labelled:
    """The likeliest label, and the probability of each."""

    label: str
    probabilities: dict[str, float]


class LanguageModel:
    """Writes (task `language`), fills blanks (`masked`) or tells labels (`classify`)."""

    def __init__(
        self, recipe: Recipe, tokenizers: Tokenizers, model: nn.Module, device: torch.device
    ) -> None:
        self.recipe, self.tokenizers, self.device = recipe, tokenizers, device
        self.model = model.to(device).eval()

    def generate(
        self,
        prompt: str = "",
        count: int = 1,
        how: Sampling | None = None,
        longest: int | None = None,
    ) -> list[Written]:
        """Texts that begin with the prompt; `longest` counts the tokens of all."""
        self._for("language")
        tokenizer, most = self.tokenizers.target, self.recipe.data.max_length
        if longest is None or self.recipe.model.positions == "learned":
            longest = min(longest or most, most)
        ids = tokenizer.encode(prompt)
        if len(ids) >= longest:
            raise InputError(
                f"the prompt has {len(ids)} tokens; with what follows there may be {longest}"
            )
        assert isinstance(self.model, CausalModel)
        self.model.eval()
        found = generate(self.model, ids, how or Sampling(), count, longest, self.device)
        return [
            Written(tokenizer.decode([*ids, *each.ids]), each.log_probability) for each in found
        ]

    @torch.inference_mode()
    def log_probabilities(self, texts: Sequence[str]) -> list[list[float]]:
        """log p of each token of each text, </s> last."""
        self._for("language")
        pairs: list[IdPair] = [([], self._ids(text)) for text in texts]
        found: list[list[float]] = [[] for _ in pairs]
        for lines in by_tokens(pairs, SCORED_TOKENS, seed=0, epoch=0):
            batch = collate(pairs, lines).to(self.device)
            log_p = (
                self.model(batch).log_softmax(-1).gather(-1, batch.target_out[..., None])[..., 0]
            )  # (B, T)
            for line, row in zip(lines, log_p.tolist(), strict=True):
                found[line] = row[: len(pairs[line][1]) + 1]
        return found

    @torch.inference_mode()
    def fill(self, text: str, top: int = 5) -> Filled:
        """The likeliest tokens for each <mask> of a text, each blank for itself."""
        self._for("masked")
        ids = self._blanked(text)
        batch = collate_answers([(ids, [PAD])], [0]).to(self.device)
        probabilities = self.model(batch)[0].softmax(-1)  # (S, V)
        probabilities[:, : len(SPECIALS)] = 0.0
        tokenizer, blanks = self.tokenizers.target, []
        for place in [place for place, id in enumerate(ids) if id == MASK]:
            best, tokens = probabilities[place].topk(min(top, len(tokenizer) - len(SPECIALS)))
            found = [
                Candidate(tokenizer.piece(id), p)
                for id, p in zip(tokens.tolist(), best.tolist(), strict=True)
            ]
            blanks.append(found)
            ids[place] = int(tokens[0])
        return Filled(tokenizer.decode(ids), blanks)

    def _blanked(self, text: str) -> Ids:
        """The ids of a text, <mask> being one token."""
        tokenizer = self.tokenizers.target
        if (
            self.recipe.tokenizer.kind == "words"
        ):  # set off, or the rules would take a full stop along
            parts = [part.strip() for part in re.split(f"({BLANK})", text)]
            marked = " ".join(PLACEHOLDER if part == BLANK else part for part in parts if part)
        else:
            marked = text.replace(BLANK, PLACEHOLDER)
        ids: Ids = []
        for id, piece in zip(self._ids(marked), tokenizer.pieces(marked), strict=True):
            if PLACEHOLDER not in piece:
                ids.append(id)
                continue
            if ids and tokenizer.piece(ids[-1]) == "▁" and self.recipe.tokenizer.kind != "char":
                ids.pop()  # the space before a subword belongs to it
            ids += [MASK] * piece.count(PLACEHOLDER)
        if MASK not in ids:
            raise InputError(f"{text!r} has no {BLANK} to fill")
        return ids

    @torch.inference_mode()
    def classify(self, texts: Sequence[str]) -> list[Labelled]:
        """The label of each text."""
        self._for("classify")
        names = labels.vocabulary(self.recipe.data)
        known = names.words(range(len(SPECIALS), len(names)))
        pairs: list[IdPair] = [(self._ids(text), [PAD]) for text in texts]
        found: dict[int, Labelled] = {}
        for lines in by_tokens(pairs, SCORED_TOKENS, seed=0, epoch=0):
            logits = self.model(collate_answers(pairs, lines).to(self.device))[
                :, 0, len(SPECIALS) :
            ]
            for line, row in zip(lines, logits.softmax(-1).tolist(), strict=True):
                probabilities = dict(zip(known, row, strict=True))
                found[line] = Labelled(
                    max(probabilities, key=lambda name: probabilities[name]), probabilities
                )
        return [found[line] for line in range(len(texts))]

    def _ids(self, text: str) -> Ids:
        ids, limit = self.tokenizers.target.encode(text), self.recipe.data.max_length
        if len(ids) > limit:
            shown = text.replace(PLACEHOLDER, BLANK)[:40]
            raise InputError(
                f"{len(ids)} tokens in {shown!r}…; the model takes at most data.max_length = {limit}"
            )
        return ids

    def _for(self, task: str) -> None:
        if self.recipe.task != task:
            raise InputError(
                f"a model of task {self.recipe.task!r} is for {USES[self.recipe.task]}"
            )


def load_language(
    directory: str | Path, device: str = "auto", task: str | None = None, merge: int | None = None
) -> LanguageModel:
    """Open the directory of a model that writes, fills blanks or classifies; `task` allows but that one.

    A classifier may merge so many tokens in each layer.
    """
    recipe, pair, model = opened(
        directory, *([task] if task else ("language", "masked", "classify"))
    )
    return LanguageModel(recipe, pair, merging(model, merge), pick_device(device))
