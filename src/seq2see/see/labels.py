"""Names of the points of a chart, placed so that they cover nothing."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

DIRECTIONS = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]  # right, up
DISTANCES = (5, 10, 16, 24)  # typographic points
RADIUS = 5  # pixels, of a mark
# The side of a name that is nearest to its point.
SIDEWAYS: dict[int, Literal["left", "center", "right"]] = {1: "left", 0: "center", -1: "right"}
UPRIGHT: dict[int, Literal["bottom", "center", "top"]] = {1: "bottom", 0: "center", -1: "top"}


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    colours: Sequence[str],
) -> None:
    """Write a name beside each point, over no other point or name and not over the legend.

    Nor over a line, if there is room. Where everything near a point is taken, the last place tried
    has to do.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # lays the figure out: only then are places in pixels known
    inside = axes.get_window_extent()
    marks = axes.transData.transform(points)
    taken = [Bbox.from_extents(x, y, x, y).padded(RADIUS) for x, y in marks.tolist()]
    if (legend := axes.get_legend()) is not None:
        taken.append(legend.get_window_extent())
    lines = [line.get_transform().transform_path(line.get_path()) for line in axes.lines]

    def free(box: Bbox) -> bool:
        return _contains(inside, box) and not box.count_overlaps(taken)

    def off_lines(box: Bbox) -> bool:
        return free(box) and not any(line.intersects_bbox(box, filled=False) for line in lines)

    for point, name, colour in zip(points, names, colours, strict=True):
        note = axes.annotate(
            name, point, (0, 0), textcoords="offset points", fontsize=7, color=colour
        )
        if not _move(note, off_lines):
            _move(note, free)
        taken.append(note.get_window_extent())


def _move(note: Annotation, fits: Callable[[Bbox], bool]) -> bool:
    """Move a name to the nearest place that fits; tell whether there is one."""
    for distance, (right, up) in product(DISTANCES, DIRECTIONS):
        note.set_position((distance * right, distance * up))
        note.set_horizontalalignment(SIDEWAYS[right])
        note.set_verticalalignment(UPRIGHT[up])
        if fits(note.get_window_extent()):
            return True
    return False


def _contains(outer: Bbox, inner: Bbox) -> bool:
    return all(outer.contains(x, y) for x, y in inner.corners())
