"""Where the norm stands, and which norm: what pre and post do to gradients and to training, measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import EncoderLayer, FeedForward
from seq2see.see.comparison import table

DEPTHS = [2, 4, 6, 12, 24]
SEEDS = 9
WIDTH, HEADS = 64, 4
SENTENCES, LENGTH, CLASSES = 16, 16, 64
NUDGE = 1e-3  # how far every weight is moved
SYMBOLS, WORD = 8, 6  # of the task that is learned: a word, backwards
UPDATES, RATE, WARMUP = 150, 0.006, 100
LENGTHS = [8, 10, 12, 16, 24, 32, 48, 64]  # of the longest companion


@dataclass(frozen=True)
class Norms:
    """What was measured of stacks of encoder layers at their start, of short trainings, and of two norms."""

    gradients: dict[
        str, list[list[float]]
    ]  # by norm, by depth, by layer: of the feed-forward weights
    moved: dict[
        str, list[float]
    ]  # by norm, by depth: the output's shift when every weight is nudged
    losses: dict[str, list[float]]  # by training, by update
    padding: list[float]  # the share of a batch that is padding, and what it does to one sentence:
    changed: dict[str, list[float]]  # by kind of norm


def measure() -> Norms:
    """All of it, in some seconds."""
    both = ("pre", "post")
    padding, changed = companions(LENGTHS)
    with torch.random.fork_rng(devices=[]):
        return Norms(
            gradients={norm: [gradients(depth, norm) for depth in DEPTHS] for norm in both},
            moved={norm: [moved(depth, norm) for depth in DEPTHS] for norm in both},
            losses={
                "pre, no warm-up": learn("pre", 1),
                "post, no warm-up": learn("post", 1),
                f"post, warm-up of {WARMUP}": learn("post", WARMUP),
            },
            padding=padding,
            changed=changed,
        )


def stack(depth: int, norm: str, width: int) -> nn.Sequential:
    """Encoder layers as the Transformer begins with them; pre-norm ends with one more norm."""
    layers: list[nn.Module] = [
        EncoderLayer(MultiHeadAttention(width, HEADS), FeedForward(width, 4 * width), norm=norm)
        for _ in range(depth)
    ]
    found = nn.Sequential(*layers, *([nn.LayerNorm(width)] if norm == "pre" else []))
    for name, parameter in found.named_parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return found


def gradients(depth: int, norm: str) -> list[float]:
    """The norm of each layer's gradient, of its feed-forward's weights, where the loss is that of random classes."""
    found = torch.zeros(SEEDS, depth)
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        layers: Any = stack(depth, norm, WIDTH)
        logits = (
            layers(torch.randn(SENTENCES, LENGTH, WIDTH))
            @ torch.randn(WIDTH, CLASSES)
            * WIDTH**-0.5
        )
        loss = functional.cross_entropy(
            logits.flatten(0, 1), torch.randint(CLASSES, (SENTENCES * LENGTH,))
        )
        loss.backward()  # type: ignore[no-untyped-call]
        for i in range(depth):
            both = layers[i].feed_forward.expand.weight, layers[i].feed_forward.contract.weight
            found[seed, i] = torch.cat([weight.grad.flatten() for weight in both]).norm()
    return [each.item() for each in found.mean(0)]


@torch.no_grad()
def moved(depth: int, norm: str) -> float:
    """How far the output moves, whose numbers have variance one, when every weight moves by about NUDGE."""
    found = 0.0
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        layers, x = stack(depth, norm, WIDTH), torch.randn(SENTENCES, LENGTH, WIDTH)
        before = layers(x)
        for parameter in layers.parameters():
            if parameter.dim() == 2:
                parameter.add_(NUDGE * torch.randn_like(parameter))
        found += (layers(x) - before).pow(2).mean().sqrt().item() / SEEDS
    return found


def learn(norm: str, warmup: int, seed: int = 1) -> list[float]:
    """Six layers learn to write words of random symbols backwards: the loss of each update."""
    torch.manual_seed(seed)
    width = 32
    layers, embedding, output = (
        stack(6, norm, width),
        nn.Embedding(SYMBOLS, width),
        nn.Linear(width, SYMBOLS),
    )
    parameters = [each for part in (layers, embedding, output) for each in part.parameters()]
    positions = torch.randn(WORD, width)
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
def companions(lengths: Sequence[int]) -> tuple[list[float], dict[str, list[float]]]:
    """One sentence of eight whose longest companion grows: how far do two norms' outputs for it move?"""
    generator = torch.Generator().manual_seed(1)
    words = torch.randn(8, max(lengths), WIDTH, generator=generator)
    short = min(lengths)
    norms = {"batch norm": nn.BatchNorm1d(WIDTH), "layer norm": nn.LayerNorm(WIDTH)}
    padding, changed = [], {name: list[float]() for name in norms}
    first: dict[str, Tensor] = {}
    for length in lengths:
        batch = words[:, :length].clone()
        batch[:-1, short:] = 0.0  # padding, for all but the companion that grows
        padding.append(7 / 8 * (1 - short / length))
        for name, norm in norms.items():
            rows = norm(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])[0, :short]  # (short, D)
            changed[name].append((rows - first.setdefault(name, rows)).pow(2).mean().sqrt().item())
    return padding, changed


def lines(found: Norms) -> list[str]:
    """The figures for a terminal."""
    rows = [["layers", *map(str, DEPTHS)]]
    for norm, by_depth in found.gradients.items():
        rows += [[f"{norm}, first layer", *(f"{each[0]:.3f}" for each in by_depth)]]
        rows += [[f"{norm}, last layer", *(f"{each[-1]:.3f}" for each in by_depth)]]
    moves = [["layers", *map(str, DEPTHS)]]
    moves += [
        [norm, *(f"{each:.4f}" for each in by_depth)] for norm, by_depth in found.moved.items()
    ]
    shown = range(25, UPDATES + 1, 25)
    losses = [["update", *map(str, shown)]]
    losses += [
        [name, *(f"{each[update - 1]:.2f}" for update in shown)]
        for name, each in found.losses.items()
    ]
    norms = [["padding", *(f"{share:.0%}" for share in found.padding)]]
    norms += [[name, *(f"{each:.2f}" for each in values)] for name, values in found.changed.items()]
    return [
        "gradient norm of the feed-forward weights at the start",
        *table(rows),
        "",
        f"shift of the output when every weight moves by {NUDGE:g}",
        *table(moves),
        "",
        "loss of a word written backwards, 6 layers",
        *table(losses),
        "",
        "change of one sentence's output when a companion grows",
        *table(norms),
    ]
