"""Names beside points: over no other name, no point and not over the legend."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from seq2see.see.labels import name_points

places = st.tuples(st.integers(0, 6), st.integers(0, 4))


@settings(max_examples=10)
@given(st.lists(places, min_size=2, max_size=7))
def test_names_cover_nothing(points: list[tuple[int, int]]) -> None:
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*points, strict=True), "o", label="points")
    axes.margins(0.2)
    legend = axes.legend(loc="upper left")
    names = [f"{number / 4:g}" for number in range(len(points))]
    name_points(axes, points, names, ["black"] * len(points))
    figure.draw_without_rendering()
    notes = [child for child in axes.get_children() if isinstance(child, Annotation)]
    boxes = [note.get_window_extent() for note in notes]
    assert [note.get_text() for note in notes] == names
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    marks = axes.transData.transform(points)
    assert not any(box.contains(x, y) for box in boxes for x, y in marks)
    assert not any(box.overlaps(legend.get_window_extent()) for box in boxes)
    assert all(
        axes.get_window_extent().contains(*corner) for box in boxes for corner in box.corners()
    )


def test_a_lone_point_has_its_name_above_it() -> None:
    axes = Figure().subplots()
    axes.plot([1], [2], "o")
    name_points(axes, [(1, 2)], ["one"], ["red"])
    (note,) = [child for child in axes.get_children() if isinstance(child, Annotation)]
    assert note.xyann == pytest.approx((0, 5)) and note.get_color() == "red"
