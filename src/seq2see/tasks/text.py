"""What each task makes of a corpus: ids to read and to write, hidden words, labels; and how its models are looked at.

`translate` reads the source and writes the target. The others have one side alone, the target: `language` writes it,
`masked` reads it with words hidden and says what they were, `classify` reads it and says its label. `images` does so
with pictures.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import Collate, IdPair, Ids, by_tokens, collate, collate_answers
from seq2see.decoding.sampling import Sampling, generate
from seq2see.errors import InputError
from seq2see.layers.reduction.encoder import cost, watch
from seq2see.models.language import CausalModel
from seq2see.pictures.augment import collate_shown
from seq2see.recipe.schema import Recipe
from seq2see.scoring.confusion import Confusion, confusion_of, table
from seq2see.text import labels
from seq2see.text.corpora import Parallel
from seq2see.text.tokenizers import Tokenizer, Tokenizers
from seq2see.text.vocab import MASK, PAD, UNKNOWN, Vocab
from seq2see.training.loop import Validation
from seq2see.training.loss import smoothed_loss

VALIDATION_TOKENS = 4096
SHOWN = 3  # sentences of a validation
HIDDEN, MASKED, REPLACED = (
    0.15,
    0.8,
    0.1,
)  # of all words; of the hidden ones: by <mask>, by another (Devlin et al.)


def texts_of(recipe: Recipe, parallel: Parallel) -> list[tuple[str, str]]:
    """What is read and what is written; nothing where a task does not read, or writes what it read."""
    if recipe.task == "translate":
        return parallel.pairs
    if recipe.task == "classify":
        return labels.labelled(parallel, recipe.data)
    return [
        ("", target) if recipe.task == "language" else (target, "") for _, target in parallel.pairs
    ]


def encode(recipe: Recipe, pair: Tokenizers, parallel: Parallel) -> list[IdPair]:
    """Text → ids."""
    read, names = _reader(recipe, pair), labels.vocabulary(recipe.data)
    return [
        (
            read.encode(source),
            names.ids([target]) if recipe.task == "classify" else pair.target.encode(target),
        )
        for source, target in texts_of(recipe, parallel)
    ]


def _reader(recipe: Recipe, pair: Tokenizers) -> Tokenizer:
    return pair.source if recipe.task == "translate" else pair.target


def collate_of(recipe: Recipe) -> Collate:
    """How the pairs of a task become a batch."""
    if recipe.task == "images":
        return collate_shown
    return collate_answers if recipe.task in ("masked", "classify") else collate


def fitting(encoded: Sequence[IdPair], limit: int, name: str) -> list[int]:
    """The lines of a corpus whose sides both have at most `limit` tokens."""
    lines = [line for line, sides in enumerate(encoded) if max(map(len, sides)) <= limit]
    if not lines:
        raise InputError(f"data.max_length = {limit}: no pair of {name} is that short")
    return lines


def examples(
    recipe: Recipe, train: Parallel, pair: Tokenizers, encoded: list[IdPair], fits: list[int]
) -> Callable[[int], Sequence[IdPair]]:
    """The training pairs of an epoch: some sentences cut anew, other words hidden, or always the same."""
    share, seed, limit = recipe.tokenizer.sampling, recipe.train.seed, recipe.data.max_length
    read, texts = _reader(recipe, pair), texts_of(recipe, train) if share else []

    def drawn(epoch: int, line: int) -> IdPair:
        chance = random.Random(f"cuts/{seed}/{epoch}/{line}")

        def cut(tokenizer: Tokenizer, text: str, ids: Ids) -> Ids:
            return tokenizer.sample(text, chance) if chance.random() < share and text else ids

        (source, target), (source_ids, target_ids) = texts[line], encoded[line]
        source_ids = cut(read, source, source_ids)
        sampled = (
            source_ids,
            target_ids if recipe.task == "classify" else cut(pair.target, target, target_ids),
        )
        return sampled if max(map(len, sampled)) <= limit else encoded[line]

    def hidden(epoch: int, line: int) -> IdPair:
        ids, _ = drawn(epoch, line) if share else encoded[line]
        return hide(ids, random.Random(f"hidden/{seed}/{epoch}/{line}"), len(pair.target))

    if recipe.task == "masked":
        return lambda epoch: [hidden(epoch, line) for line in fits]
    if not share:
        fixed = [encoded[line] for line in fits]
        return lambda epoch: fixed
    return lambda epoch: [drawn(epoch, line) for line in fits]


def hide(ids: Ids, chance: random.Random, size: int) -> IdPair:
    """15 % of a sentence, a word at least, hidden: what is read, and what is to be said, which is nothing elsewhere.

    Of the hidden words 80 % are read as <mask> and 10 % as any other word. The rest stay as they are: the model cannot
    tell which words are to be trusted, and learns a state for all.
    """
    read, answers = list(ids), [PAD] * (len(ids) + 1)  # of </s> nothing is asked
    for place in chance.sample(range(len(ids)), min(len(ids), max(1, round(HIDDEN * len(ids))))):
        answers[place] = ids[place]
        kind = chance.random()
        if kind < MASKED:
            read[place] = MASK
        elif kind < MASKED + REPLACED:
            read[place] = chance.randrange(UNKNOWN, size)
    return read, answers


@dataclass(frozen=True)
class Look:
    """What a model makes of pairs: sums over all target tokens, and its likeliest id at each."""

    loss: float
    log_probability: float
    tokens: int
    right: int
    guesses: list[Ids]

    @property
    def perplexity(self) -> float:
        return (
            math.exp(min(-self.log_probability / self.tokens, 700))
            if math.isfinite(self.loss)
            else math.inf
        )


@torch.inference_mode()
def look(recipe: Recipe, model: nn.Module, pairs: Sequence[IdPair], device: torch.device) -> Look:
    """Loss and likelihood of the answers, each sentence in a batch of its like."""
    loss = log_p = 0.0
    tokens = right = 0
    guesses: list[Ids] = [[] for _ in pairs]
    for lines in by_tokens(pairs, VALIDATION_TOKENS, seed=0, epoch=0):
        batch = collate_of(recipe)(pairs, lines).to(device)
        trace = watch(model)
        logits, target = model(batch, trace), batch.target_out
        loss += float(
            smoothed_loss(logits, target, recipe.train.label_smoothing, recipe.train.smoothing)
        )
        loss += float(
            batch.target_tokens * cost(model, trace)
        )  # or a model that keeps all would be chosen
        log_p -= float(smoothed_loss(logits, target, 0.0))
        likeliest: Tensor = logits.argmax(-1)  # (B, T)
        tokens += batch.target_tokens
        right += int(((likeliest == target) & (target != PAD)).sum())
        for line, row in zip(lines, likeliest.tolist(), strict=True):
            guesses[line] = row
    return Look(loss, log_p, tokens, right, guesses)


def _fixed(recipe: Recipe, pair: Tokenizers, parallel: Parallel) -> tuple[list[int], list[IdPair]]:
    """The lines of a set that is not trained on, and their pairs, of which the same words are always hidden."""
    encoded = encode(recipe, pair, parallel)
    lines = fitting(encoded, recipe.data.max_length, parallel.name)
    if recipe.task != "masked":
        return lines, [encoded[line] for line in lines]
    size = len(pair.target)
    return lines, [
        hide(encoded[line][0], random.Random(f"hidden/{parallel.name}/{line}"), size)
        for line in lines
    ]


def validator(
    recipe: Recipe, parallel: Parallel, pair: Tokenizers, device: torch.device
) -> Callable[[nn.Module], Validation]:
    """How a model of one side is looked at: loss and perplexity on all of val, and a few examples."""
    lines, pairs = _fixed(recipe, pair, parallel)
    texts = texts_of(recipe, parallel)
    shown = [texts[line] for line in lines[:SHOWN]]

    def validate(model: nn.Module) -> Validation:
        found = look(recipe, model, pairs, device)
        loss, samples = found.loss / found.tokens, list[tuple[str, str, str]]()
        if math.isfinite(loss):
            samples = [
                _sample(recipe, pair, model, *each)
                for each in zip(shown, pairs, found.guesses, strict=False)
            ]
        accuracy = found.right / found.tokens if recipe.task == "classify" else None
        return Validation(loss, found.perplexity, None, samples, accuracy)

    return validate


def _sample(
    recipe: Recipe,
    pair: Tokenizers,
    model: nn.Module,
    text: tuple[str, str],
    ids: IdPair,
    guess: Ids,
) -> tuple[str, str, str]:
    """For a reader: what was given, what would be right, what the model says."""
    if recipe.task == "classify":
        return *text, labels.vocabulary(recipe.data).words(guess)[0]
    tokenizer = pair.target
    if recipe.task == "masked":
        read, answers = ids
        given = " ".join("<mask>" if id == MASK else tokenizer.piece(id) for id in read)
        said = [
            id if answer == PAD else said
            for id, answer, said in zip(read, answers, guess, strict=False)
        ]
        return given, text[0], tokenizer.decode(said)
    assert isinstance(model, CausalModel)
    begun = ids[1][: len(ids[1]) // 2]
    device = model.output.weight.device
    (written,) = generate(model, begun, Sampling(temperature=0), 1, 2 * len(ids[1]) + 1, device)
    return tokenizer.decode(begun), text[1], tokenizer.decode([*begun, *written.ids])


COUNTED = {
    "language": "tokens with </s>",
    "masked": "hidden words",
    "classify": "labels",
    "images": "pictures",
}


@dataclass(frozen=True)
class Examination:
    """A test set, looked at by a model of one side, or of pictures."""

    task: str
    perplexity: float  # per token: with </s>; of hidden words; of labels
    log_probability: float
    tokens: int
    accuracy: float  # share of the tokens of which the likeliest is the right one
    sentences: int  # or pictures
    left_out: int  # longer than data.max_length
    confusion: Confusion

    @classmethod
    def of(
        cls, task: str, found: Look, sentences: int, left_out: int, confusion: Confusion
    ) -> "Examination":
        accuracy, sums = (
            found.right / found.tokens,
            (found.perplexity, found.log_probability, found.tokens),
        )
        return cls(task, *sums, accuracy, sentences, left_out, confusion)

    def values(self) -> dict[str, Any]:
        """What a score card holds of a test set."""
        kept = vars(self).copy()
        del kept["task"]
        if self.task not in ("classify", "images"):
            del kept["confusion"]
        return kept

    def lines(self) -> list[str]:
        """For a reader."""
        right = f"{self.accuracy:.1%} of {self.tokens:,} {COUNTED[self.task]} guessed right"
        return [f"perplexity {self.perplexity:.3f} · {right}", *table(self.confusion)]


def confusion_by_id(names: Vocab, pairs: Sequence[IdPair], guesses: Sequence[Ids]) -> Confusion:
    """Confusion matrix of labels that are given as ids."""
    right = names.words(answer[0] for _, answer in pairs)
    guessed = names.words(guess[0] for guess in guesses)
    return confusion_of(right, guessed, names.words(range(len(names))))


def examine(
    recipe: Recipe, model: nn.Module, pair: Tokenizers, parallel: Parallel, device: torch.device
) -> Examination:
    """Look at a test set."""
    lines, pairs = _fixed(recipe, pair, parallel)
    model.eval()
    found = look(recipe, model, pairs, device)
    known = recipe.task == "classify"
    confusion = (
        confusion_by_id(labels.vocabulary(recipe.data), pairs, found.guesses) if known else {}
    )
    return Examination.of(
        recipe.task, found, len(lines), len(parallel.pairs) - len(lines), confusion
    )
