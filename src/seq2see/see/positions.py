"""Positions to look at: what is added to the words or turns them, and that only distances tell (section 3.5)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from seq2see.errors import InputError
from seq2see.layers.positions import rotate, sinusoidal
from seq2see.see import figures
from seq2see.tasks.translator import Translator

HEAD = 64  # numbers of a query or key that is turned
STARTS = (
    0.0,
    0.3,
    0.7,
)  # the positions, as shares of the length, from which distances are measured
MARKS = [(figures.BLUE, "o"), (figures.RED, "x"), (figures.GREEN, "+")]


def added(length: int, width: int) -> Tensor:
    """⟨PE(t), PE(s)⟩ for every two positions, (T, T): what two words share through sinusoidal encodings alone."""
    table = sinusoidal(length, width)
    return table @ table.T


def turned(length: int, query: Tensor, key: Tensor) -> Tensor:
    """⟨rotate(q, t), rotate(k, s)⟩ of one query and one key (K) at every two positions, (T, T)."""
    encodings = sinusoidal(length, len(query))
    return rotate(query.expand(length, -1), encodings) @ rotate(key.expand(length, -1), encodings).T


def learned(translator: Translator, directory: Path) -> dict[str, Tensor]:
    """The vectors a model learned for its positions, (T, D) by the side they are for."""
    kind = translator.recipe.model.positions
    if kind != "learned":
        raise InputError(
            f'{directory}: model.positions is "{kind}"; only "learned" ones are the model\'s own'
        )
    ending = "_positions.embedding.weight"
    weights = translator.model.state_dict()
    return {
        name.removesuffix(ending): weights[name].cpu() for name in weights if name.endswith(ending)
    }


def resemblance(table: Tensor) -> Tensor:
    """The cosine between every two positions' vectors, (T, T)."""
    unit = table / table.norm(dim=1, keepdim=True)
    return torch.mm(unit, unit.T)


def draw(length: int, width: int, tables: Mapping[str, Tensor]) -> Figure:
    """Sinusoidal encodings, what they and rotary positions make of distances, and the tables a model learned."""
    figure = Figure(figsize=(10, 5.8 + 2.9 * bool(tables)), layout="constrained")
    rows: Any = figure.subfigures(2 + bool(tables), 1, height_ratios=[2.9] * (2 + bool(tables)))
    axes = rows[0].subplots()
    shown = _map(
        axes,
        sinusoidal(length, width).T,
        "Sinusoidal: each pair of features is a clock of its own pace",
    )
    rows[0].colorbar(shown, ax=axes).ax.tick_params(labelsize=7)
    left, right = rows[1].subplots(1, 2)
    _by_distance(left, added(length, width))
    figures.label(
        left, f"Added, width {width}: the product depends on s − t alone", "s − t", "⟨PE(t), PE(s)⟩"
    )
    generator = torch.Generator().manual_seed(1)
    query, other = torch.randn(2, HEAD, dtype=torch.float64, generator=generator)
    for key, name in ((query, "k = q"), (other, "another k")):
        products = turned(length, query, key)
        _by_distance(right, products)
        left_end = int(STARTS[-1] * length)
        right.annotate(
            name,
            (-left_end, products[left_end, 0].item()),
            (0, 8),
            textcoords="offset points",
            fontsize=8,
        )
    figures.label(
        right,
        f"Rotary, size {HEAD}: so does the one of turned vectors",
        "s − t",
        "⟨rotate(q, t), rotate(k, s)⟩",
    )
    right.get_legend().remove()
    if tables:
        _learned(rows[2], tables)
    return figure


def _by_distance(axes: Axes, products: Tensor) -> None:
    """One mark for each pair of positions: seen from any t, they fall onto one curve."""
    length = len(products)
    for share, (colour, mark) in zip(STARTS, MARKS, strict=True):
        t = int(share * length)
        distances = range(-t, length - t)
        axes.plot(
            distances,
            products[t].tolist(),
            mark,
            color=colour,
            markersize=4,
            label=f"t = {t}",
            fillstyle="none",
        )


def _learned(row: Any, tables: Mapping[str, Tensor]) -> None:
    panels = row.subplots(1, 2 * len(tables), squeeze=False)[0]
    for i, (side, table) in enumerate(tables.items()):
        _map(
            panels[2 * i], table.T / table.abs().max(), f"Learned, {side}", "feature, ÷ the largest"
        )
        shown = _map(panels[2 * i + 1], resemblance(table), f"… their cosines, {side}", "position")
    row.colorbar(shown, ax=panels).ax.tick_params(labelsize=7)


def _map(axes: Axes, numbers: Tensor, title: str, rows: str = "feature") -> AxesImage:
    """Numbers from −1 to 1, red to blue; columns are positions."""
    shown = axes.imshow(
        numbers.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    figures.label(axes, title, "position", rows)
    axes.grid(False)
    return shown
