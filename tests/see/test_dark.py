"""Dark figures: every hue stays, light and dark change places, pictures stay as they are."""

from colorsys import rgb_to_hls
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import ListedColormap, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from seq2see.see import figures
from seq2see.see.dark import DARKEST, dark, darken


@pytest.mark.parametrize("colour", [figures.BLUE, figures.RED, figures.GREEN, "#f5c77e"])
def test_hue_and_saturation_stay(colour: str) -> None:
    before, after = rgb_to_hls(*to_rgba(colour)[:3]), rgb_to_hls(*dark(colour)[:3])
    assert after[::2] == pytest.approx(before[::2], abs=1e-6)
    assert (after[1] - 0.5) * (before[1] - 0.5) < 0  # from light to dark, or back


def test_order_is_turned_and_opacity_stays() -> None:
    greys = [dark(str(level))[0] for level in (0.0, 0.2, 0.5, 0.9, 1.0)]
    assert all(one > other for one, other in pairwise(greys))
    assert greys[-1] == pytest.approx(DARKEST)
    assert dark((0.1, 0.2, 0.3, 0.4))[3] == 0.4


def test_everything_drawn_changes_but_pictures() -> None:
    figure = Figure()
    axes, picture = figure.subplots(1, 2)
    (line,) = axes.plot([1, 2], [1, 2], "o", color="black", label="line")
    image = axes.imshow([[0, 1]], cmap=ListedColormap(["white", "black"]))
    note = axes.annotate("note", (0, 0), (1, 1), color="black", arrowprops={"color": "black"})
    boxed = axes.text(0, 0, "boxed", bbox={"facecolor": "white"})
    drawn = axes.vlines([1], 0, 1, colors="black")
    axes.add_patch(bar := Rectangle((0, 0), 1, 1, facecolor="black", alpha=0.5))
    photo = picture.imshow(np.zeros((2, 2)), cmap="gray", vmin=0, vmax=1)
    colours = picture.imshow(np.zeros((2, 2, 3)))
    darken(figure)
    light, background = dark("black"), dark("white")
    assert figure.get_facecolor() == axes.get_facecolor() == background
    assert line.get_markerfacecolor() == line.get_color() == note.get_color() == light
    assert note.arrow_patch is not None and note.arrow_patch.get_edgecolor() == light
    box = boxed.get_bbox_patch()
    assert box is not None and box.get_facecolor() == background
    assert tuple(drawn.get_edgecolor()[0]) == pytest.approx(light)
    assert bar.get_facecolor() == (*light[:3], 0.5)
    assert all(to_hex(tick.get_color()) == to_hex(light) for tick in axes.get_xticklabels())
    legend_line = axes.legend().get_lines()[0]
    assert legend_line.get_color() == light
    assert tuple(image.to_rgba(np.array([[0, 1]]))[0, 0]) == pytest.approx(background)
    assert photo.get_cmap().name == "gray" and not np.asarray(colours.get_array()).any()
