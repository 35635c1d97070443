"""Tasks of text: a corpus, tokenizers, and examples made of ids."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from rich.markup import escape
from torch import Tensor, nn

from seq2see.batches import (
    Batch,
    Chosen,
    IdPair,
    Ids,
    Lengths,
    TextExamples,
    mixed,
    sizes_of,
    spread,
)
from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory
from seq2see.models.init import Rows, tokenizers_for
from seq2see.recipe.schema import Recipe
from seq2see.tasks.keys import FOR_PAINTING, FOR_PICTURES, PAINTED, refuse_keys
from seq2see.tasks.predict import token_loss
from seq2see.text import corpora, store, tokenizers
from seq2see.text.encoding import Encoder
from seq2see.text.exchange import Exchange
from seq2see.text.history import History
from seq2see.text.lines import Pair
from seq2see.text.parallel import Parallel, Part
from seq2see.text.progress import Progress, silent, watched
from seq2see.text.separation import Corpus
from seq2see.text.store import Store
from seq2see.text.tokenizers import Tokenizer, Tokenizers
from seq2see.training import checkpoint


class TextTask:
    """Base of the tasks of text; each defines what it reads and what it predicts."""

    medium: ClassVar[str] = "text"
    unit: ClassVar[str] = "target tokens"
    shifted: ClassVar[bool] = True  # whether targets are predicted from their own beginning
    labelled: ClassVar[bool] = False  # whether targets are labels instead of text

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def check(self) -> None:
        recipe = self.recipe
        refuse_keys(recipe, FOR_PICTURES, "pictures")
        refuse_keys(recipe, FOR_PAINTING, "task 'diffusion'")
        if recipe.data.corpus in PAINTED:
            corpus = f"data.corpus {recipe.data.corpus!r} holds pictures"
            raise ValueError(f"{corpus}; task {recipe.task!r} is for text")
        if (recipe.data.labels is not None) != self.labelled:
            raise ValueError("data.labels is what task 'classify' predicts: give both, or neither")

    def data(
        self,
        where: Path | None,
        history: History,
        progress: Progress = silent,
        folder: Path | None = None,
    ) -> "TextData":
        config = self.recipe.data
        stores = None if folder is None else store.root_of(folder)
        return TextData(self, corpora.load(config, where, history, progress, stores), progress)

    def texts(self, parallel: Part) -> Iterator[Pair]:
        """Select source and target of each line; "" where the task has none."""
        raise NotImplementedError

    def encoder(self, tokenizers: Tokenizers) -> Encoder:
        """The encoding of these texts; by default both are of the target language."""
        return Encoder(tokenizers, reads="target")

    def exchange(self) -> Exchange | None:
        """The exchange of names and numbers in the training set, if there is one."""
        return None

    def encode(self, tokenizers: Tokenizers, parallel: Part) -> list[IdPair]:
        """Encode a small set in memory."""
        return list(self.encoder(tokenizers).encode(self.texts(parallel)))

    @property
    def varies(self) -> bool:
        """Whether examples differ from epoch to epoch."""
        return self.recipe.tokenizer.sampling > 0

    def example(self, data: "TextData", epoch: int, line: int) -> IdPair:
        """The training example of a line, as drawn for (seed, epoch, line)."""
        return self.resegment(data, epoch, line) if self.varies else data.encoded[line]

    def resegment(self, data: "TextData", epoch: int, line: int) -> IdPair:
        """Segment a share of the sentences differently (subword regularisation)."""
        share = self.recipe.tokenizer.sampling
        chance = random.Random(f"cuts/{self.recipe.train.seed}/{epoch}/{line}")

        def sample(tokenizer: Tokenizer, text: str, ids: Ids) -> Ids:
            return tokenizer.sample(text, chance) if chance.random() < share and text else ids

        source, target = data.encoded.texts(line)
        source_ids, target_ids = data.encoded[line]
        source_ids = sample(self.encoder(data.tokenizers).reader, source, source_ids)
        if not self.labelled:
            target_ids = sample(data.tokenizers.target, target, target_ids)
        fits = max(len(source_ids), len(target_ids)) <= self.recipe.data.max_length
        return (source_ids, target_ids) if fits else data.encoded[line]

    def held_out(
        self, tokenizers: Tokenizers, parallel: Parallel
    ) -> tuple[list[int], TextExamples]:
        """The lines of a validation or test set that fit, and their fixed examples."""
        encoded = self.encode(tokenizers, parallel)
        limit = self.recipe.data.max_length
        lines = fitting(sizes_of(encoded), limit, parallel.name).tolist()
        return lines, TextExamples([encoded[line] for line in lines], self.shifted)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return token_loss(model, batch, self.recipe.train)

    def rows(self, vocabulary: Any) -> Rows:
        sides: Tokenizers = vocabulary.tokenizers
        return {
            "source_embedding": sides.source,
            "target_embedding": sides.target,
            "output": sides.target,
        }


class TextData:
    """A parallel corpus and, once prepared, its tokenizers and ids."""

    grows: ClassVar[bool] = True
    tokenizers: Tokenizers
    vocabulary_from: str
    encoded: Store
    lines: NDArray[np.int32]  # of the training set that fit
    root: Path  # of stores
    validation: tuple[list[int], TextExamples]

    def __init__(self, task: TextTask, corpus: Corpus, progress: Progress) -> None:
        self.task = task
        self.progress = progress
        self.corpus = corpus
        self.parts = {
            part.name: {"pairs": len(part.pairs), "sha256": part.digest}
            for part in (self.corpus.train, self.corpus.val)
        }
        self.tests = list(self.corpus.tests)
        self.notes = self.corpus.notes
        self.history = self.corpus.history
        self.left_out = self.corpus.left_out
        self.overlap = self.corpus.overlap
        held_out = {"val": self.corpus.val, **self.corpus.tests}
        self.seen = {name: part.seen for name, part in held_out.items() if part.seen}

    def prepare(self, folder: Path, parent: ModelDirectory | None) -> None:
        self.root = store.root_of(folder)
        if self.corpus.keep is not None:
            self.corpus.keep(self.root == folder / "store")
            self.corpus = replace(self.corpus, keep=None)
        self.tokenizers, self.vocabulary_from = self._tokenizers(folder, parent)
        self.notes = [*self.notes, *self.tokenizers.notes]
        self.encoded = self._store(folder)
        if counts := dict(self.encoded.exchanged):
            pairs = f"exchanged in {counts.pop('pairs'):,} of {len(self.encoded):,} training pairs"
            kinds = " · ".join(f"{count:,} {kind}" for kind, count in counts.items())
            self.notes = [*self.notes, f"{pairs}: {kinds}" if kinds else pairs]
        limit = self.task.recipe.data.max_length
        self.lines = fitting(self.encoded.sizes, limit, "train")
        self.validation = self.task.held_out(self.tokenizers, self.corpus.val)

    def _tokenizers(self, folder: Path, parent: ModelDirectory | None) -> tuple[Tokenizers, str]:
        recipe = self.task.recipe
        if checkpoint.saved_in(folder / "checkpoints"):
            # The run's own, even if this version of the library would train others.
            return tokenizers.load(folder), "the cache"
        if parent is not None:
            pair = tokenizers_for(recipe, parent)
            tokenizers.save(pair, folder, recipe.tokenizer, pair.fingerprint)
            return pair, str(parent.path)
        languages = (recipe.data.source, recipe.data.target)
        train = self.corpus.train
        shared = None if self.root == folder / "store" else self.root
        pair, cached = tokenizers.cached(
            recipe.segmentation,
            *languages,
            train.pairs,
            folder,
            self.progress,
            train.digest,
            shared,
        )
        if cached:
            return pair, "the cache"
        if pair.pairs == len(train.pairs):
            return pair, ""
        return pair, f"{pair.pairs:,} of {len(train.pairs):,} pairs"

    def _store(self, folder: Path) -> Store:
        """The training set as ids, made now unless the run or another one has made it before."""
        recipe, train = self.task.recipe, self.corpus.train
        origin = {
            "task": recipe.task,
            "corpus": train.digest,
            "tokenizers": tokenizers.identity(folder),
            "languages": [recipe.data.source, recipe.data.target],
        }
        encoder = self.task.encoder(self.tokenizers)
        kept = recipe.tokenizer.sampling > 0
        pairs, exchange = self.task.texts(train), self.task.exchange()
        texts = store.Texts(pairs, len(train.pairs), encoder, kept, exchange)
        return store.open_or_build(self.root, origin, texts, folder, self.progress)

    @cached_property
    def validation_texts(self) -> list[Pair]:
        return list(self.task.texts(self.corpus.val))

    def _lines(self, epoch: int) -> NDArray[np.int32]:
        """The lines that an epoch sees: each once, unless corpora are mixed."""
        shares = self.corpus.shares
        if all(share.weight == 1 for share in shares):
            return self.lines
        return mixed(self.lines, shares, self.task.recipe.train.seed, epoch)

    def train(self, epoch: int) -> TextExamples:
        chosen = self._lines(epoch)
        if not self.task.varies:
            pairs = Chosen(self.encoded, chosen)
            return TextExamples(pairs, self.task.shifted, self.encoded.sizes[chosen])
        lines = watched(chosen, f"drawing the examples of epoch {epoch}", self.progress)
        drawn = (self.task.example(self, epoch, int(line)) for line in lines)
        size = self.task.encoder(self.tokenizers).largest
        written = Store.drawn(drawn, size, self.root)
        return TextExamples(written, self.task.shifted, written.sizes)

    def summary(self) -> str:
        config = self.task.recipe.data
        joined = f", each {config.join} joined," if config.join > 1 else ""
        if config.mix is not None:
            joined = f", mixed to {len(self._lines(1)):,} in an epoch,"
        too_long = len(self.encoded) - len(self.lines)
        origin = f" (from {escape(self.vocabulary_from)})" if self.vocabulary_from else ""
        spelled = "".join(f" · {note}" for note in self.tokenizers.notes)
        return (
            f"{len(self.lines):,} training pairs{joined} ({too_long:,} over {config.max_length} "
            f"tokens and {self.corpus.train.dropped:,} empty ones left out) · "
            f"{len(self.corpus.val.pairs):,} for validation · vocabulary "
            f"{len(self.tokenizers.source):,} → {len(self.tokenizers.target):,}{origin}{spelled}"
        )


def fitting(sizes: Lengths, limit: int, name: str) -> NDArray[np.int32]:
    """The lines of a corpus with at most `limit` tokens on either side, by the tokens of both."""
    lines = np.flatnonzero(sizes.max(axis=1, initial=0) <= limit).astype(np.int32)
    if not len(lines):
        raise InputError(f"data.max_length = {limit}: no pair of {name} is that short")
    return lines


def distinct(texts: Sequence[str], count: int) -> list[int]:
    """Choose up to `count` different texts, spread over all."""
    first = {text: index for index, text in reversed(list(enumerate(texts)))}
    indices = sorted(first.values())
    return [indices[place] for place in spread(len(indices), count)]


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
