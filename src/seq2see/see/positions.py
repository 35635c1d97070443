"""Figures of position encodings: their dot products depend on distance alone (section 3.5)."""

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

HEAD_SIZE = 64  # of the query and key that are rotated
STARTS = (0.0, 0.3, 0.7)  # query positions t, as shares of the length
MARKERS = [(figures.BLUE, "o"), (figures.RED, "x"), (figures.GREEN, "+")]


def sinusoidal_products(length: int, width: int) -> Tensor:
    """⟨PE(t), PE(s)⟩ for every two positions t and s, (T, T)."""
    table = sinusoidal(length, width)
    return table @ table.T


def rotary_products(length: int, query: Tensor, key: Tensor) -> Tensor:
    """⟨rotate(q, t), rotate(k, s)⟩ of one query and one key (K) for every t and s, (T, T)."""
    encodings = sinusoidal(length, len(query))
    return rotate(query.expand(length, -1), encodings) @ rotate(key.expand(length, -1), encodings).T


def learned(translator: Translator, directory: Path) -> dict[str, Tensor]:
    """Return a model's learned position embeddings (T, D), by side."""
    kind = translator.recipe.model.positions
    if kind != "learned":
        raise InputError(
            f'{directory}: model.positions is "{kind}"; only "learned" ones can be drawn'
        )
    suffix = "_positions.embedding.weight"
    return {
        name.removesuffix(suffix): weights.cpu()
        for name, weights in translator.model.state_dict().items()
        if name.endswith(suffix)
    }


def cosine_similarity(table: Tensor) -> Tensor:
    """Cosine of every two position embeddings, (T, D) → (T, T)."""
    unit = table / table.norm(dim=1, keepdim=True)
    return torch.mm(unit, unit.T)


def draw(length: int, width: int, tables: Mapping[str, Tensor]) -> Figure:
    """Draw the sinusoidal table, dot products by distance, and the given learned tables."""
    count = 3 if tables else 2
    figure = Figure(figsize=(10, 2.9 * count), layout="constrained")
    rows: Any = figure.subfigures(count, 1, height_ratios=[2.9] * count)
    axes = rows[0].subplots()
    title = "Sinusoidal encoding: each pair of features rotates at its own rate"
    image = _heat_map(axes, sinusoidal(length, width).T, title)
    rows[0].colorbar(image, ax=axes).ax.tick_params(labelsize=7)
    left, right = rows[1].subplots(1, 2)
    _sinusoidal_by_distance(left, length, width)
    _rotary_by_distance(right, length)
    if tables:
        _learned_tables(rows[2], tables)
    return figure


def _sinusoidal_by_distance(axes: Axes, length: int, width: int) -> None:
    _by_distance(axes, sinusoidal_products(length, width))
    title = f"Sinusoidal, width {width}: depends only on s − t"
    figures.label(axes, title, "distance s − t", "⟨PE(t), PE(s)⟩")


def _rotary_by_distance(axes: Axes, length: int) -> None:
    generator = torch.Generator().manual_seed(1)
    query, other = torch.randn(2, HEAD_SIZE, dtype=torch.float64, generator=generator)
    for key, name in ((query, "k = q"), (other, "another k")):
        products = rotary_products(length, query, key)
        _by_distance(axes, products, legend=False)
        t = int(STARTS[-1] * length)
        leftmost = (-t, products[t, 0].item())
        axes.annotate(name, leftmost, (0, 8), textcoords="offset points", fontsize=8)
    title = f"Rotary, head size {HEAD_SIZE}: depends only on s − t"
    figures.label(axes, title, "distance s − t", "⟨rotate(q, t), rotate(k, s)⟩")


def _by_distance(axes: Axes, products: Tensor, legend: bool = True) -> None:
    """Plot products (T, T) against s − t for some query positions t; they share one curve."""
    length = len(products)
    for share, (colour, marker) in zip(STARTS, MARKERS, strict=True):
        t = int(share * length)
        axes.plot(
            range(-t, length - t),
            products[t].tolist(),
            marker,
            color=colour,
            markersize=4,
            label=f"t = {t}" if legend else None,
            fillstyle="none",
        )


def _learned_tables(row: Any, tables: Mapping[str, Tensor]) -> None:
    panels = row.subplots(1, 2 * len(tables), squeeze=False)[0]
    for i, (side, table) in enumerate(tables.items()):
        values = table.T / table.abs().max()
        _heat_map(panels[2 * i], values, f"Learned, {side}", "feature, values ÷ maximum")
        cosines = cosine_similarity(table)
        image = _heat_map(panels[2 * i + 1], cosines, f"Cosine similarity, {side}", "position")
    row.colorbar(image, ax=panels).ax.tick_params(labelsize=7)


def _heat_map(axes: Axes, values: Tensor, title: str, y: str = "feature") -> AxesImage:
    """Draw values from −1 (red) to 1 (blue); columns are positions."""
    image = axes.imshow(
        values.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    figures.label(axes, title, "position", y)
    axes.grid(False)
    return image
