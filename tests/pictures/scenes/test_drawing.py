"""Pictures: objects apart from each other, on the said side, alike at every size."""

import math
import random
from itertools import combinations

import numpy as np
import pytest
from scenes_judge import shows

from seq2see.pictures.scenes import Drawing, Drawings, generate
from seq2see.pictures.scenes.drawing import draw
from seq2see.pictures.scenes.layout import CANVAS, GAP, MARGIN, SHARED, SIDES, Box, place
from seq2see.pictures.scenes.scene import BACKGROUND, COLOURS, RELATIONS, SHAPES, Group, Scene


@pytest.fixture(scope="module")
def drawings() -> list[Drawing]:
    return [*generate("train", 400), *generate("test_combinations", 200)]


def ends(boxes: list[Box], axis: int) -> tuple[int, int]:
    """First and last coordinate of boxes along an axis."""
    starts = [(box.x, box.y)[axis] for box in boxes]
    return min(starts), max(s + box.side for s, box in zip(starts, boxes, strict=True))


def gap(first: tuple[int, int], second: tuple[int, int]) -> int:
    """Distance of two ranges; negative where they overlap."""
    return max(second[0] - first[1], first[0] - second[1])


def test_objects_are_apart_and_inside(drawings: list[Drawing]) -> None:
    for drawing in drawings:
        assert len(drawing.boxes) == drawing.scene.objects
        for box in drawing.boxes:
            assert box.side == SIDES[str(drawing.scene.groups[box.group].size)]
            assert min(box.x, box.y) >= MARGIN
            assert max(box.x, box.y) + box.side <= CANVAS - MARGIN
        for box, other in combinations(drawing.boxes, 2):
            assert max(gap(ends([box], axis), ends([other], axis)) for axis in (0, 1)) >= GAP


def test_relations_hold_and_no_other_does(drawings: list[Drawing]) -> None:
    related = [drawing for drawing in drawings if drawing.scene.relation]
    assert {drawing.scene.relation for drawing in related} == {*RELATIONS}
    for drawing in related:
        scene = drawing.scene
        axis = 0 if scene.relation in ("left of", "right of") else 1
        for pair in scene.pairs:
            first, second = ([b for b in drawing.boxes if b.group == number] for number in pair)
            if scene.relation in ("below", "right of"):
                first, second = second, first
            assert ends(second, axis)[0] - ends(first, axis)[1] >= GAP
            assert gap(ends(first, 1 - axis), ends(second, 1 - axis)) <= -SHARED
        for relation in RELATIONS:
            other = Scene(scene.groups, relation, scene.related)
            assert shows(drawing, other) == (relation == scene.relation)


def test_a_picture_has_its_objects_and_nothing_else(drawings: list[Drawing]) -> None:
    for drawing in drawings[:200]:
        picture = drawing.picture
        assert picture.shape == (32, 32, 3) and picture.dtype == np.uint8
        background = np.ones((32, 32), dtype=bool)
        for box in drawing.boxes:
            rows = slice(box.y // 4, -(-(box.y + box.side) // 4))
            columns = slice(box.x // 4, -(-(box.x + box.side) // 4))
            background[rows, columns] = False
            colour = COLOURS[str(drawing.scene.groups[box.group].colour)]
            inside = picture[rows, columns].reshape(-1, 3)
            assert (inside == colour).all(1).sum() >= 3  # some pixels are covered completely
        assert (picture[background] == BACKGROUND).all()


AREAS = {
    "circle": math.pi / 4,
    "square": 0.94**2,
    "triangle": 0.94 / 2,
    "cross": 2 * 0.3 - 0.3**2,
    "diamond": 0.5,
    "ring": math.pi * (0.5**2 - 0.23**2),
}


@pytest.mark.parametrize("side", [7.5, 11.5])
def test_masks_cover_the_area_of_their_shapes(side: float) -> None:
    for shape in SHAPES:
        masks = [draw(shape, side, left, top) for left in (0.0, 0.25) for top in (0.5, 0.75)]
        areas = [float(mask.sum()) / side**2 for mask in masks]
        if shape in AREAS:
            assert areas == pytest.approx([AREAS[shape]] * 4, rel=0.04)
        assert max(areas) - min(areas) < 0.02
        assert all(mask.min() >= 0 and mask.max() <= 1 for mask in masks)


@pytest.mark.parametrize("size", [48, 64])
def test_larger_pictures_show_the_same(size: int) -> None:
    small = generate("val", 15)
    for drawing, other in zip(Drawings("val", 15, size=size), small, strict=True):
        assert drawing.picture.shape == (size, size, 3)
        # Repeated to 192 × 192 and averaged to 16 × 16, both are alike.
        grids = [
            np.kron(d.picture, np.ones((192 // len(d.picture),) * 2 + (1,))).reshape(
                16, 12, 16, 12, 3
            )
            for d in (drawing, other)
        ]
        assert np.abs(grids[0].mean((1, 3)) - grids[1].mean((1, 3))).max() < 8


def test_scenes_that_do_not_fit_have_no_layout() -> None:
    three = Group(3, "circle", "red", "large")
    one = Group(1, "star", "blue", "small")
    generator = random.Random(1)
    assert place(Scene((three, one), "above", 2), generator.random) is None
    assert place(Scene((three, three)), generator.random) is None
    assert place(Scene((one, one, one), "left of", 3), generator.random) is not None
