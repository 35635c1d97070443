"""A diffusion model at work: a picture as it forms, attention to words, guidance, and merging."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any, TypeVar

import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, SubFigure
from torch import Tensor
from torch.nn import functional

from seq2see.decoding.denoising import Denoising, Step
from seq2see.errors import InputError
from seq2see.models.diffusion import Grid, Place
from seq2see.models.merged import MergedDiffusion
from seq2see.pictures.prompts import words_of
from seq2see.see.pictures import HEAT, overlay
from seq2see.see.reduction_charts import draw_borders
from seq2see.tasks.painter import Painter

SIDE = 1.2  # inches, of a picture
STATES = 8  # steps at which the picture is drawn
ATTENDED = 4  # of them, those at which attention is drawn
GUIDANCES = {0.0: "no prompt", 1.0: "as trained", 2.0: "", 3.0: "", 5.0: "", 8.0: ""}
SEEDS = 3  # rows of the guidance view
MATCHED = 4  # steps at which merged positions are drawn
LAYERS = 6  # rows of the merging view, at most
PANEL = 1.9  # inches, width of a picture with the borders of its groups

Item = TypeVar("Item")
View = Callable[[Painter, str, int, Denoising], Figure]  # of a painter, prompt, seed, settings


def view_of(name: str) -> View:
    """The function that draws a view."""
    if name not in VIEWS:
        raise InputError(f"--view {name!r} is not one of {', '.join(VIEWS)}")
    return VIEWS[name]


def forming(painter: Painter, prompt: str, seed: int, settings: Denoising) -> Figure:
    """Draw x_t and the predicted picture over the steps, and the attention to each word."""
    if settings.guidance == 0:
        raise InputError("guidance 0 ignores the prompt; there is no attention to its words")
    steps = painter.watch(prompt, seed, settings)
    words = words_of(prompt)
    heights = [2 * SIDE + 0.8, -(-len(words) // 2) * SIDE + 1.3]
    figure = Figure(figsize=(STATES * SIDE + 1.8, sum(heights) + 0.7), layout="constrained")
    _title(figure, painter, prompt, _settings(seed, settings))
    parts: Any = figure.subfigures(2, 1, height_ratios=heights)
    upper, lower = parts
    shown = evenly(steps, STATES)
    _draw_states(upper, painter, shown)
    _draw_attention(lower, painter, evenly(shown, ATTENDED), words, _pixels(painter, steps[-1].x))
    return figure


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Choose `count` items at about equal distances, the first and the last among them."""
    places = torch.linspace(0, len(items) - 1, min(count, len(items)))
    return [items[place] for place in places.round().int().tolist()]


def _settings(seed: int, settings: Denoising) -> str:
    return f"seed {seed}, {settings.steps} steps, guidance {settings.guidance:g}"


def _title(figure: Figure, painter: Painter, prompt: str, settings: str) -> None:
    text = fill(prompt, 80, break_long_words=True)
    if isinstance(painter.model, MergedDiffusion):
        settings += f", merging ratio {painter.model.merging.ratio:g}"
    figure.suptitle(f"{text}\n{settings}", fontsize=12, parse_math=False)


def _pixels(painter: Painter, numbers: Tensor) -> Tensor:
    """The first of some pictures (B, C, H, W) as bytes (C, H, W)."""
    return painter.format.pixels(numbers.cpu())[0]


def _draw_states(figure: SubFigure, painter: Painter, steps: Sequence[Step]) -> None:
    """Draw a column for each step: x_t above the picture that the model predicts."""
    figure.suptitle("From noise to a picture", fontsize=11, fontweight="bold")
    panels = _grid(figure, 2, len(steps))
    for column, step in zip(panels.T, steps, strict=True):
        overlay(column[0], _pixels(painter, step.x))
        overlay(column[1], _pixels(painter, step.picture))
        column[0].set_title(f"step {step.number}\nt = {step.time:.2f}", fontsize=9)
    _name_row(panels[0][0], "$x_t$ after\nthe step")
    _name_row(panels[1][0], "predicted\npicture")


def _draw_attention(
    figure: SubFigure,
    painter: Painter,
    steps: Sequence[Step],
    words: Sequence[str],
    picture: Tensor,
) -> None:
    """Draw a row for each word and a column for each step, in two halves side by side."""
    title = "Cross-attention to each word, mean over heads and layers"
    figure.suptitle(title, fontsize=11, fontweight="bold")
    places = painter.model.places()
    shares = torch.stack([attention_on_picture(step, places, picture.shape[1:]) for step in steps])
    most = shares.amax((0, 2, 3)).tolist()  # of each word
    rows = -(-len(words) // 2)
    panels = _grid(figure, rows, 2 * len(steps))
    for place, word in enumerate(words):
        half, row = divmod(place, rows)
        first = half * len(steps)
        _name_row(panels[row][first], f"{word}\nat most {most[place]:.0%}")
        for axes, step, of_step in zip(panels[row][first:], steps, shares, strict=False):
            overlay(axes, picture, of_step[place], most[place])
            if row == 0:
                axes.set_title(f"step {step.number}", fontsize=9)
    figure.colorbar(
        ScalarMappable(cmap=HEAT),
        ax=panels,
        location="bottom",
        shrink=0.5,
        aspect=50,
        label="attention of a position to the word, as a share of the word's largest",
    )


def attention_on_picture(step: Step, places: Mapping[str, Place], size: Sequence[int]) -> Tensor:
    """Compute the share of each word in the attention of each pixel: (words, height, width).

    The weights of each layer are averaged over its heads and upsampled from its grid to the
    picture; then the layers are averaged. The shares of a pixel sum to one.
    """
    assert step.trace is not None
    layers = []
    for name, place in places.items():
        weights = step.trace.weights[f"{name}.cross"][0].mean(0)  # (positions, words)
        maps = torch.unflatten(weights.T, 1, place.grid)  # (words, rows, columns)
        layers.append(functional.interpolate(maps[None], tuple(size), mode="bilinear")[0])
    return torch.stack(layers).mean(0).cpu()


def guidances(painter: Painter, prompt: str, seed: int, settings: Denoising) -> Figure:
    """Draw a row of pictures for each of several seeds, with guidance from 0 to 8."""
    seeds = range(seed, seed + SEEDS)
    size = (len(GUIDANCES) * SIDE + 1.2, SEEDS * SIDE + 1.3)
    figure = Figure(figsize=size, layout="constrained")
    _title(figure, painter, prompt, f"{settings.steps} steps")
    panels = _grid(figure, SEEDS, len(GUIDANCES))
    for column, (guidance, meaning) in zip(panels.T, GUIDANCES.items(), strict=True):
        chosen = replace(settings, guidance=guidance)
        pictures = torch.from_numpy(painter.paint([prompt] * SEEDS, seeds, chosen))
        for axes, picture in zip(column, pictures, strict=True):
            overlay(axes, picture.permute(2, 0, 1))
        column[0].set_title(f"guidance {guidance:g}\n{meaning}", fontsize=9)
    for axes, number in zip(panels[:, 0], seeds, strict=True):
        _name_row(axes, f"seed {number}")
    return figure


def merging(painter: Painter, prompt: str, seed: int, settings: Denoising) -> Figure:
    """Draw which positions merge: a row for each layer that merges, a column for each step."""
    model = painter.model
    if not isinstance(model, MergedDiffusion) or not model.merged():
        raise InputError("nothing is merged; --merge takes the share of positions, above 0")
    steps = painter.watch(prompt, seed, settings)
    shown = evenly(steps, MATCHED)
    layers = evenly([*model.merged().items()], LAYERS)
    picture = _pixels(painter, steps[-1].x)
    widths = [PANEL + 0.3, len(shown) * PANEL + 1.6]
    panel_height = PANEL * picture.shape[1] / picture.shape[2]
    height = max(2, len(layers)) * (panel_height + 0.2) + 1.0
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    _title(figure, painter, prompt, _settings(seed, settings))
    parts: Any = figure.subfigures(1, 2, width_ratios=widths)
    plain = replace(painter, model=model.model).paint([prompt], [seed], settings)[0]
    _draw_results(parts[0], picture, torch.from_numpy(plain).permute(2, 0, 1))
    _draw_groups(parts[1], shown, layers, picture)
    return figure


def _draw_results(figure: SubFigure, merged: Tensor, plain: Tensor) -> None:
    """Draw the picture (C, H, W) painted with merging above the one without."""
    figure.suptitle("Painted", fontsize=11, fontweight="bold")
    upper, lower = _grid(figure, 2, 1)[:, 0]
    overlay(upper, merged)
    upper.set_title("with merging", fontsize=9)
    overlay(lower, plain)
    lower.set_title("without", fontsize=9)


def _draw_groups(
    figure: SubFigure, steps: Sequence[Step], layers: Sequence[tuple[str, Place]], picture: Tensor
) -> None:
    """Draw the groups of merged positions in their mean colours of the picture (C, H, W)."""
    title = "Merged positions, in the mean colour of the picture under them"
    figure.suptitle(title, fontsize=11, fontweight="bold")
    figure.supxlabel("lines separate groups; a dot marks a position that is not merged", fontsize=9)
    panels = _grid(figure, len(layers), len(steps))
    for row, (name, place) in zip(panels, layers, strict=True):
        for axes, step in zip(row, steps, strict=True):
            assert step.trace is not None
            groups = step.trace.merged[name][0].cpu()  # (N,)
            _draw_merged(axes, picture, groups, place.grid)
        counts = f"{len(groups)} → {int(groups.max()) + 1}"
        _name_row(row[0], f"{layer_title(name)}\n{counts} positions")
    for axes, step in zip(panels[0], steps, strict=True):
        axes.set_title(f"step {step.number}", fontsize=9)


def layer_title(name: str) -> str:
    """Name a layer for people, who count from 1: "up.1" → "up, stage 2"."""
    part, number = name.split(".")
    kind = "layer" if part == "decoder" else f"{part}, stage"
    return f"{kind} {int(number) + 1}"


def _draw_merged(axes: Axes, picture: Tensor, groups: Tensor, grid: Grid) -> None:
    """Draw each group in its mean colour, with borders, and a dot on positions left alone."""
    overlay(axes, group_colours(picture, groups, grid))
    draw_borders(axes, torch.unflatten(groups, 0, grid), thickness=0.8)
    alone = groups.bincount()[groups] == 1
    rows, columns = torch.unflatten(alone, 0, grid).nonzero().T
    # A white edge keeps the dots visible on dark colours.
    axes.scatter(columns + 0.5, rows + 0.5, s=3, color="black", edgecolors="white", linewidths=0.3)


def group_colours(picture: Tensor, groups: Tensor, grid: Grid) -> Tensor:
    """Compute the mean colour of a picture under the group of each position.

    picture (C, H, W), the number of the group of each position (N,) → (C, rows, columns).
    """
    colours = functional.adaptive_avg_pool2d(picture.float(), grid).flatten(1)  # (C, N)
    member = functional.one_hot(groups).float()  # (N, groups)
    means = colours @ member / member.sum(0)  # (C, groups)
    return torch.unflatten(means[:, groups], 1, grid)


def _grid(figure: Figure | SubFigure, rows: int, columns: int) -> Any:
    """Add panels (rows, columns) without ticks and frames."""
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return panels


def _name_row(axes: Any, name: str) -> None:
    axes.set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center")


# A view is a function from painter, prompt, seed and settings to a figure.
VIEWS: dict[str, View] = {"forming": forming, "guidance": guidances, "merging": merging}
