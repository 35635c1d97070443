"""Task `masked`: a sentence with hidden words → those words (Devlin et al., 2019)."""

import random
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import nn

from seq2see.batches import IdPair, Ids, TextExamples, collate_labels, sizes_of
from seq2see.errors import InputError
from seq2see.models.language import MaskedModel
from seq2see.tasks.keys import refuse_reduction
from seq2see.tasks.one_sided import Candidate, Case, Filled, LanguageModel, OneSidedTask, Sample
from seq2see.tasks.text import TextData, fitting
from seq2see.tasks.translation_engine import string
from seq2see.text.lines import Pair
from seq2see.text.parallel import Parallel, Part
from seq2see.text.specials import MASK, PAD, SPECIALS, UNKNOWN
from seq2see.text.tokenizers import Tokenizers

HIDDEN = 0.15  # of all words
MASKED, REPLACED = 0.8, 0.1  # of the hidden ones: by <mask>, by another word
BLANK = "<mask>"
PLACEHOLDER = "\ufffc"  # "object replacement character", which no text and no vocabulary has


def hide(ids: Ids, chance: random.Random, size: int) -> IdPair:
    """Hide 15 % of a sentence, one word at least: return the input and the labels, PAD for none.

    80 % of the hidden words are read as <mask> and 10 % as another word. The rest stay: as the
    model cannot tell which words to trust, it learns a state for all of them.
    """
    read = list(ids)
    labels = [PAD] * (len(ids) + 1)  # </s> has none
    count = min(len(ids), max(1, round(HIDDEN * len(ids))))
    for place in chance.sample(range(len(ids)), count):
        labels[place] = ids[place]
        kind = chance.random()
        if kind < MASKED:
            read[place] = MASK
        elif kind < MASKED + REPLACED:
            read[place] = chance.randrange(UNKNOWN, size)
    return read, labels


class Filler(LanguageModel):
    """A masked model that fills blanks."""

    @torch.inference_mode()
    def fill(self, text: str, top: int = 5) -> Filled:
        tokenizer = self.tokenizers.target
        ids = self.blanked(text)
        if MASK not in ids:
            raise InputError(f"{text!r} has no {BLANK} to fill")
        batch = collate_labels([(ids, [PAD])], [0]).to(self.device)
        probabilities = self.model(batch)[0].softmax(-1)  # (S, V)
        probabilities[:, : len(SPECIALS)] = 0.0
        count = min(top, len(tokenizer) - len(SPECIALS))
        blanks: list[list[Candidate]] = []
        for place in [place for place, id in enumerate(ids) if id == MASK]:
            best, tokens = probabilities[place].topk(count)
            pairs = zip(tokens.tolist(), best.tolist(), strict=True)
            blanks.append([Candidate(tokenizer.piece(id), p) for id, p in pairs])
            ids[place] = int(tokens[0])
        return Filled(tokenizer.decode(ids), blanks)

    def blanked(self, text: str) -> Ids:
        """Encode a text with one token for each <mask>."""
        tokenizer = self.tokenizers.target
        marked = string("text", text).replace(BLANK, PLACEHOLDER)
        if self.recipe.tokenizer.kind == "words":
            # Between spaces: spaCy's rules would keep a full stop that follows at the blank.
            parts = [part.strip() for part in re.split(f"({BLANK})", text)]
            marked = " ".join(PLACEHOLDER if part == BLANK else part for part in parts if part)
        try:
            encoded = self.ids(marked)
        except InputError as error:
            raise InputError(str(error).replace(PLACEHOLDER, BLANK)) from None
        ids: Ids = []
        for id, piece in zip(encoded, tokenizer.pieces(marked), strict=True):
            if PLACEHOLDER not in piece:
                ids.append(id)
                continue
            if ids and tokenizer.piece(ids[-1]) == "▁" and self.recipe.tokenizer.kind != "char":
                ids.pop()  # the space before a subword belongs to it
            ids += [MASK] * piece.count(PLACEHOLDER)
        return ids


class Masked(OneSidedTask):
    """Predicts the hidden words of the target, other words in each epoch."""

    command: ClassVar[str] = "seq2see fill"
    counted: ClassVar[str] = "hidden words"
    model_type = Filler
    shifted: ClassVar[bool] = False

    def check(self) -> None:
        super().check()
        refuse_reduction(self.recipe)

    @property
    def varies(self) -> bool:
        return True

    def texts(self, parallel: Part) -> Iterator[Pair]:
        return ((target, "") for _, target in parallel.pairs)

    def network(self, size: int) -> nn.Module:
        return MaskedModel(self.recipe.model, size, self.recipe.tie != "none")

    def example(self, data: TextData, epoch: int, line: int) -> IdPair:
        ids, _ = data.encoded[line]
        if self.recipe.tokenizer.sampling:
            ids, _ = self.resegment(data, epoch, line)
        chance = random.Random(f"hidden/{self.recipe.train.seed}/{epoch}/{line}")
        return hide(ids, chance, len(data.tokenizers.target))

    def held_out(
        self, tokenizers: Tokenizers, parallel: Parallel
    ) -> tuple[list[int], TextExamples]:
        """As for every task, with the same words hidden each time."""
        encoded = self.encode(tokenizers, parallel)
        limit = self.recipe.data.max_length
        lines = fitting(sizes_of(encoded), limit, parallel.name).tolist()
        size = len(tokenizers.target)
        pairs = [
            hide(encoded[line][0], random.Random(f"hidden/{parallel.name}/{line}"), size)
            for line in lines
        ]
        return lines, TextExamples(pairs, self.shifted)

    def inside(self) -> str:
        return "blanks"

    def sample(self, model: Any, tokenizers: Tokenizers, case: Case) -> Sample:
        """A sentence with its blanks, without, and as the model fills them."""
        tokenizer = tokenizers.target
        read, labels = case.example
        shown = " ".join(BLANK if id == MASK else tokenizer.piece(id) for id in read)
        filled = [
            id if label == PAD else best
            for id, label, best in zip(read, labels, case.guess, strict=False)
        ]
        return shown, case.texts[0], tokenizer.decode(filled)
