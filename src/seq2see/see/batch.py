"""A real batch: ids, the shifted target, padding, and the masks that go with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.batches import Batch, TextExamples, by_sentences
from seq2see.errors import InputError
from seq2see.layers.masks import causal_mask, padding_mask
from seq2see.models.directory import ModelDirectory
from seq2see.recipe.schema import DataConfig, TokenizerConfig
from seq2see.see.figures import shown
from seq2see.see.numbers import Numbers
from seq2see.text import captions, tokenizers
from seq2see.text.lines import Pair
from seq2see.text.parallel import filled
from seq2see.text.reading import PairStream
from seq2see.text.specials import BEGIN, END, PAD
from seq2see.text.tokenizers import Tokenizer, Tokenizers

READ = 2000  # pairs of a corpus
SUBWORDS = TokenizerConfig(size=1000)  # where no model brings a tokenizer
KINDS = {  # of a cell, with its colour
    "word or piece": "#cfe3f3",
    "<s>": "#9fd8c5",
    "</s>": "#fbd38a",
    "padding: no real token attends to it, and it is not in the loss": "#c9c9c9",
}
OPEN, CLOSED = "#2171b5", "#ececec"
CELL, ROW = 0.82, 0.42  # inches
LETTERS = 9  # of a piece that fit into a cell


@dataclass(frozen=True)
class Drawn:
    """A batch of a corpus, and the tokenizers that made it."""

    batch: Batch
    tokenizers: Tokenizers

    def sides(self) -> list[tuple[str, str, Tensor, Tokenizer]]:
        """List the tensors with their names and shapes in words."""
        source, target = self.tokenizers.source, self.tokenizers.target
        return [
            ("source (B, S)", "the encoder reads", self.batch.source, source),
            ("target_in (B, T)", "the decoder reads", self.batch.target_in, target),
            ("target_out (B, T)", "the decoder predicts", self.batch.target_out, target),
        ]

    def numbers(self) -> list[Numbers]:
        """List the ids and pieces of each tensor as tables."""
        tables = []
        for name, role, ids, tokenizer in self.sides():
            head = ["sentence ↓  position →", *(str(i + 1) for i in range(ids.shape[1]))]
            rows = [
                [f"{b + 1}", *(f"{piece(tokenizer, id)} {id}" for id in row)]
                for b, row in enumerate(ids.tolist())
            ]
            tables.append(Numbers(f"{name}: {role}", head, rows))
        return tables

    def report(self) -> list[str]:
        """List each tensor's name, shape and share of padding."""
        lines = []
        for name, role, ids, _ in self.sides():
            padding = float((ids == PAD).float().mean())
            lines.append(f"{name}: {role}, {tuple(ids.shape)}, {padding:.0%} padding")
        return lines


def piece(tokenizer: Tokenizer, id: int) -> str:
    """Write an id as figures show it."""
    return shown([tokenizer.piece(id)])[0]


def read(paths: Sequence[str], config: DataConfig | None) -> list[Pair]:
    """Read the first pairs of a table or of two aligned files; without any, of the captions."""
    if not paths:
        return [(one.source, one.target) for one in captions.generate("train", READ)]
    if len(paths) > 2:
        raise InputError(f"CORPUS is a table or two aligned files, not {len(paths)} files")
    files = paths[0] if len(paths) == 1 else list(paths)
    stream = PairStream(files, config or DataConfig(train=files))
    pairs = list(islice(filled(stream), READ))
    if not pairs:
        raise InputError(f"{' '.join(paths)}: no pair has text on both sides")
    return pairs


def draw_lines(
    paths: Sequence[str], model: Path | None, sentences: int, longest: int, seed: int
) -> Drawn:
    """Make a batch of random sentences of a corpus, as training does, of those short enough."""
    if model is None:
        pairs = read(paths, None)
        sides = tokenizers.train(SUBWORDS, "source", "target", pairs)
    else:
        directory = ModelDirectory.open(model)
        pairs = read(paths, directory.recipe.data)
        sides = directory.tokenizers
    encoded = [(sides.source.encode(a), sides.target.encode(b)) for a, b in pairs]
    short = [pair for pair in encoded if max(map(len, pair)) <= longest]
    if len(short) < sentences:
        rule = f"--longest {longest}: {len(short)} of the first {len(pairs):,} pairs are that short"
        raise InputError(f"{rule}, fewer than --sentences {sentences}")
    examples = TextExamples(short)
    lines = by_sentences(examples.lengths, sentences, accumulate=1, seed=seed, epoch=1)[0]
    return Drawn(examples.batch(lines), sides)


def draw(drawn: Drawn) -> Figure:
    """Draw the three tensors with pieces and ids, then the masks of the encoder and the decoder."""
    batch = drawn.batch
    count, width = batch.source.shape
    targets = batch.target_in.shape[1]
    columns = max(width, targets)
    heights = [ROW * count + 0.5] * 3 + [0.26 * max(targets, count) + 1.7]
    figure = Figure(figsize=(CELL * columns + 1.2, sum(heights) + 0.6), layout="constrained")
    figure.suptitle("A batch as the model gets it", fontsize=12, fontweight="bold")
    rows: Any = figure.subfigures(4, 1, height_ratios=heights)
    *parts, below = rows
    for part, (name, role, ids, tokenizer) in zip(parts, drawn.sides(), strict=True):
        axes = part.subplots()
        _ids(axes, ids, tokenizer, columns)
        axes.set_title(f"{name}: {role}", fontsize=10, fontweight="bold", loc="left")
    left, right = below.subplots(1, 2)
    padding = padding_mask(batch.source, PAD)[:, 0, 0]  # (B, S)
    _mask(left, padding, "Padding mask: source tokens that may be attended to")
    left.set(xlabel="key: source position", ylabel="sentence")
    _mask(right, causal_mask(targets), "Causal mask: the same for each sentence")
    right.set(xlabel="key: position in target_in", ylabel="query")
    keys = [Patch(color=colour, label=name) for name, colour in KINDS.items()]
    keys += [Patch(color=OPEN, label="may attend"), Patch(color=CLOSED, label="masked")]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _ids(axes: Axes, ids: Tensor, tokenizer: Tokenizer, columns: int) -> None:
    kinds = np.zeros(ids.shape, dtype=int)
    for kind, special in enumerate((BEGIN, END, PAD), start=1):
        kinds[(ids == special).numpy()] = kind
    _grid(axes, kinds, list(KINDS.values()))
    axes.set_xlim(-0.5, columns - 0.5)  # positions of all tensors below each other
    axes.set_ylabel("sentence", fontsize=8)
    for b, row in enumerate(ids.tolist()):
        for t, id in enumerate(row):
            word = piece(tokenizer, id)
            word = word if len(word) <= LETTERS else word[: LETTERS - 1] + "…"
            axes.text(t, b, f"{word}\n{id}", fontsize=8, ha="center", va="center", parse_math=False)


def _mask(axes: Axes, mask: Tensor, title: str) -> None:
    _grid(axes, mask.int().numpy(), [CLOSED, OPEN])
    axes.set_aspect("equal")
    axes.set_anchor("N")
    axes.set_title(title, fontsize=9, fontweight="bold")


def _grid(axes: Axes, kinds: NDArray[Any], colours: Sequence[str]) -> None:
    """Draw cells in the colours of their kinds, their rows and columns counted from 1."""
    axes.imshow(
        kinds,
        cmap=ListedColormap(colours),
        vmin=0,
        vmax=len(colours) - 1,
        aspect="auto",
        interpolation="nearest",
    )
    for axis, count in ((axes.yaxis, kinds.shape[0]), (axes.xaxis, kinds.shape[1])):
        axis.set_ticks(range(count), [str(i + 1) for i in range(count)])
        axis.set_ticks([i - 0.5 for i in range(count)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0, labelsize=8)
    axes.spines[:].set_visible(False)
