"""Measurements of pre- and post-norm on gradients and training, and of layer and batch norm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import EncoderLayer, FeedForward
from seq2see.see.tables import table

DEPTHS = [2, 4, 6, 12, 24]
SEEDS = 9
WIDTH, HEADS = 64, 4
SENTENCES, LENGTH, CLASSES = 16, 16, 64
NOISE = 1e-3  # standard deviation of the noise added to every weight
SYMBOLS, WORD = 8, 6  # alphabet and word length of the reversal task
REVERSAL_WIDTH, REVERSAL_LAYERS = 32, 6
UPDATES, RATE, WARMUP = 150, 0.006, 100
LENGTHS = [8, 10, 12, 16, 24, 32, 48, 64]  # of the longest sentence in the batch


@dataclass(frozen=True)
class Norms:
    """Everything that `seq2see see norms` shows."""

    gradients: dict[str, list[list[float]]]  # by norm, depth, layer: of the feed-forward weights
    shifts: dict[str, list[float]]  # by norm, depth: change of the output under weight noise
    losses: dict[str, list[float]]  # by training run, update
    padding: list[float]  # share of padding in each batch
    changes: dict[str, list[float]]  # by kind of norm, batch: of one sentence's output


def measure() -> Norms:
    """Run all measurements; this takes some seconds."""
    norms = ("pre", "post")
    padding, changes = padding_effect(LENGTHS)
    with torch.random.fork_rng(devices=[]):
        return Norms(
            gradients={norm: [gradient_norms(depth, norm) for depth in DEPTHS] for norm in norms},
            shifts={norm: [output_shift(depth, norm) for depth in DEPTHS] for norm in norms},
            losses={
                "pre, no warm-up": train_reversal("pre", 1),
                "post, no warm-up": train_reversal("post", 1),
                f"post, warm-up of {WARMUP}": train_reversal("post", WARMUP),
            },
            padding=padding,
            changes=changes,
        )


def stack(depth: int, norm: str, width: int) -> nn.Sequential:
    """Stack encoder layers initialised as in the Transformer; pre-norm adds a final norm."""
    layers: list[nn.Module] = [
        EncoderLayer(MultiHeadAttention(width, HEADS), FeedForward(width, 4 * width), norm=norm)
        for _ in range(depth)
    ]
    if norm == "pre":
        layers.append(nn.LayerNorm(width))
    encoder = nn.Sequential(*layers)
    for name, parameter in encoder.named_parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return encoder


def gradient_norms(depth: int, norm: str) -> list[float]:
    """Average over seeds the norm of each layer's feed-forward gradient, for random classes."""
    norms = torch.zeros(SEEDS, depth)
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        layers: Any = stack(depth, norm, WIDTH)
        states = layers(torch.randn(SENTENCES, LENGTH, WIDTH))
        logits = states @ torch.randn(WIDTH, CLASSES) * WIDTH**-0.5
        classes = torch.randint(CLASSES, (SENTENCES * LENGTH,))
        loss = functional.cross_entropy(logits.flatten(0, 1), classes)
        loss.backward()  # type: ignore[no-untyped-call]
        for i in range(depth):
            feed_forward = layers[i].feed_forward
            weights = (feed_forward.expand.weight, feed_forward.contract.weight)
            norms[seed, i] = torch.cat([weight.grad.flatten() for weight in weights]).norm()
    return [value.item() for value in norms.mean(0)]


@torch.no_grad()
def output_shift(depth: int, norm: str) -> float:
    """Average over seeds the RMS change of the output, of variance one, under weight noise."""
    shift = 0.0
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        layers = stack(depth, norm, WIDTH)
        x = torch.randn(SENTENCES, LENGTH, WIDTH)
        before = layers(x)
        for parameter in layers.parameters():
            if parameter.dim() == 2:
                parameter.add_(NOISE * torch.randn_like(parameter))
        shift += (layers(x) - before).pow(2).mean().sqrt().item() / SEEDS
    return shift


def train_reversal(norm: str, warmup: int, seed: int = 1) -> list[float]:
    """Train six layers to reverse random words; return the loss of each update."""
    torch.manual_seed(seed)
    layers = stack(REVERSAL_LAYERS, norm, REVERSAL_WIDTH)
    embedding = nn.Embedding(SYMBOLS, REVERSAL_WIDTH)
    output = nn.Linear(REVERSAL_WIDTH, SYMBOLS)
    positions = torch.randn(WORD, REVERSAL_WIDTH)
    parameters = [*layers.parameters(), *embedding.parameters(), *output.parameters()]
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for update in range(1, UPDATES + 1):
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, update / warmup)
        words = torch.randint(SYMBOLS, (SENTENCES, WORD))
        logits = output(layers(embedding(words) + positions))
        loss = functional.cross_entropy(logits.flatten(0, 1), words.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def padding_effect(lengths: Sequence[int]) -> tuple[list[float], dict[str, list[float]]]:
    """Measure how one sentence's normalised output changes as another sentence grows.

    A batch holds eight sentences, seven of them of the shortest length. Returns the share of
    padding for each length of the eighth, and by kind of norm the RMS change of the first.
    """
    generator = torch.Generator().manual_seed(1)
    words = torch.randn(8, max(lengths), WIDTH, generator=generator)
    short = min(lengths)
    norms = {"batch norm": nn.BatchNorm1d(WIDTH), "layer norm": nn.LayerNorm(WIDTH)}
    padding: list[float] = []
    changes: dict[str, list[float]] = {name: [] for name in norms}
    first: dict[str, Tensor] = {}
    for length in lengths:
        batch = words[:, :length].clone()
        batch[:-1, short:] = 0.0
        padding.append(7 / 8 * (1 - short / length))
        for name, norm in norms.items():
            rows = norm(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])[0, :short]  # (short, D)
            change = rows - first.setdefault(name, rows)
            changes[name].append(change.pow(2).mean().sqrt().item())
    return padding, changes


def report(norms: Norms) -> list[str]:
    """Format the measurements as tables for a terminal."""
    depths = ["layers", *map(str, DEPTHS)]
    gradients = [depths]
    for norm, by_depth in norms.gradients.items():
        gradients.append([f"{norm}, first layer", *(f"{layers[0]:.3f}" for layers in by_depth)])
        gradients.append([f"{norm}, last layer", *(f"{layers[-1]:.3f}" for layers in by_depth)])
    shifts = [depths]
    for norm, values in norms.shifts.items():
        shifts.append([norm, *(f"{value:.4f}" for value in values)])
    updates = range(25, UPDATES + 1, 25)
    losses = [["update", *map(str, updates)]]
    for name, values in norms.losses.items():
        losses.append([name, *(f"{values[update - 1]:.2f}" for update in updates)])
    changes = [["padding", *(f"{share:.0%}" for share in norms.padding)]]
    for name, values in norms.changes.items():
        changes.append([name, *(f"{value:.2f}" for value in values)])
    return [
        "gradient norm of the feed-forward weights at initialisation",
        *table(gradients),
        "",
        f"shift of the output under noise of {NOISE:g} on every weight",
        *table(shifts),
        "",
        f"training loss of reversing a word, {REVERSAL_LAYERS} layers",
        *table(losses),
        "",
        "change of one sentence's output as another sentence in the batch grows",
        *table(changes),
    ]
