"""The judge: right on clean and worn pictures, deaf to wrong prompts, precise in its verdicts."""

import importlib
import sys
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scenes_judge import changed, shows, worn, wrong

from seq2see.errors import InputError
from seq2see.pictures.scenes import SPLITS, Drawings, generate
from seq2see.pictures.scenes.drawing import CONTRASTS, Picture, draw
from seq2see.pictures.scenes.judge import Verdict, compare, judge
from seq2see.pictures.scenes.objects import Seen, find
from seq2see.pictures.scenes.scene import BACKGROUND, COLOURS, SHAPES, SIZES, Group, Scene

ATTRIBUTES = ("colour", "shape", "size", "count", "relation")
BLANK = np.full((32, 32, 3), BACKGROUND, dtype=np.uint8)


def seen(colour: str, shape: str, size: str, x: float, y: float) -> Seen:
    return Seen(colour, shape, size, (x, y), {"small": 7.5, "large": 11.5}[size], 1.0)


@pytest.mark.parametrize("split", SPLITS)
def test_clean_pictures_are_right_and_wrong_prompts_refused(split: str) -> None:
    random = np.random.default_rng(1)
    for drawing in Drawings(split, 100, "both"):
        objects = find(drawing.picture)
        verdict = judge(drawing.picture, drawing.prompt)
        assert verdict.all and compare(objects, drawing.scene, 32).all
        for attribute, scene in wrong(drawing, random).items():
            assert not compare(objects, scene, 32).all, (drawing.prompt, attribute)


@pytest.mark.parametrize("split", ["val", "test"])
def test_worn_pictures_are_judged_as_well(split: str) -> None:
    random = np.random.default_rng(2)
    right = 0
    refused = []
    for drawing in Drawings(split, 150):
        objects = find(worn(drawing.picture, random))
        right += compare(objects, drawing.scene, 32).all
        for scene in wrong(drawing, random).values():
            refused.append(not compare(objects, scene, 32).all)
    assert right >= 149
    assert sum(refused) >= 0.995 * len(refused)


@pytest.mark.parametrize("size", [48, 64])
def test_larger_pictures_are_judged_as_well(size: int) -> None:
    random = np.random.default_rng(3)
    for drawing in Drawings("val", 25, size=size):
        assert judge(drawing.picture, drawing.scene).all
        assert judge(worn(drawing.picture, random), drawing.scene).all


def test_the_judge_agrees_with_the_layout_on_any_prompt() -> None:
    answers = []
    for drawing in generate("train", 60):
        objects = find(drawing.picture)
        for _, scene in changed(drawing.prompt.said):
            answers.append(shows(drawing, scene))
            assert compare(objects, scene, 32).all == answers[-1], (drawing.prompt, scene)
    assert len(answers) > 1000


def test_objects_are_found_where_they_are() -> None:
    for drawing in generate("train", 60):
        objects = find(drawing.picture)
        middles = [((b.x + b.side / 2) / 4, (b.y + b.side / 2) / 4) for b in drawing.boxes]
        assert len(objects) == len(middles)
        for found in objects:
            distances = [np.hypot(*np.subtract(found.centre, middle)) for middle in middles]
            box = drawing.boxes[int(np.argmin(distances))]
            assert min(distances) < 0.3 and found.side == pytest.approx(box.side / 4, rel=0.13)
            group = drawing.scene.groups[box.group]
            assert (found.colour, found.shape, found.size) == (
                group.colour,
                group.shape,
                group.size,
            )


RED = seen("red", "circle", "large", 10, 8)
BLUE = seen("blue", "square", "small", 12, 24)
SAID = Scene((Group(1, "circle", "red", "large"), Group(1, "square", "blue", "small")), "above", 2)


@pytest.mark.parametrize(
    ("objects", "false"),
    [
        ([RED, BLUE], ""),
        ([seen("green", "circle", "large", 10, 8), BLUE], "colour"),
        ([seen("red", "star", "large", 10, 8), BLUE], "shape"),
        ([seen("red", "circle", "small", 10, 8), BLUE], "size"),
        ([seen("red", "circle", "large", 10, 26), BLUE], "relation"),
        ([seen("green", "star", "large", 10, 8), BLUE], "colour shape"),
        ([seen("blue", "circle", "large", 10, 8), seen("red", "square", "small", 9, 24)], "colour"),
        ([RED, BLUE, seen("white", "ring", "small", 25, 25)], "count"),
        ([RED, BLUE, seen("blue", "square", "small", 25, 3)], "count"),
        ([RED, seen("red", "circle", "large", 25, 8)], "colour shape size count relation"),
        ([RED], "colour shape size count relation"),
        ([], "colour shape size count relation"),
    ],
)
def test_the_verdict_names_what_is_wrong(objects: list[Seen], false: str) -> None:
    verdict = compare(objects, SAID, 32)
    assert [name for name in ATTRIBUTES if getattr(verdict, name) is False] == [
        name for name in ATTRIBUTES if name in false.split()
    ]
    assert verdict.all == (not false) and verdict.objects == tuple(objects)


def test_counts_are_those_of_groups() -> None:
    said = Scene((Group(1, "circle", "red"), Group(2, "square", "blue")))
    circles = [seen("red", "circle", "small", x, 5) for x in (5, 15)]
    verdict = compare([*circles, seen("blue", "square", "small", 5, 20)], said, 32)
    assert (verdict.count, verdict.colour, verdict.shape) == (False, True, True)
    squares = [seen("blue", "square", "small", x, 20) for x in (5, 15)]
    assert compare([circles[0], *squares], said, 32).all


def test_open_attributes_are_not_judged() -> None:
    verdict = compare([seen("black", "ring", "large", 9, 9)], Scene((Group(1, "ring"),)), 32)
    assert (verdict.colour, verdict.size, verdict.relation) == (None, None, None)
    assert verdict.all


@pytest.mark.parametrize(("gap", "above"), [(2.0, True), (-0.9, True), (-1.1, False)])
def test_an_overlap_of_a_pixel_is_tolerated(gap: float, above: bool) -> None:
    lower = seen("blue", "square", "small", 12, 8 + 5.75 + gap + 3.75)
    assert compare([RED, lower], SAID, 32).relation is above


def painted(mask: NDArray[Any], colour: str = "red", share: float = 1.0) -> Picture:
    picture = BLANK.astype(np.float32)
    picture[8 : 8 + len(mask), 8 : 8 + mask.shape[1]] += (
        share * mask[:, :, None] * CONTRASTS[colour]
    )
    return picture.round().astype(np.uint8)


def test_other_shapes_and_colours_are_not_recognised() -> None:
    circle = draw("circle", 11.5, 0.0, 0.0)
    half = circle.copy()
    half[6:] = 0
    corner = draw("square", 11.5, 0.0, 0.0).copy()
    corner[:7, 5:] = 0
    for mask in (half, corner, np.ones((4, 14)), np.ones((20, 20))):
        (found,) = find(painted(mask))
        assert (found.colour, found.shape, found.size) == ("red", None, None)
    orange = BLANK.copy()
    orange[8:20, 8:20] = (255, 140, 0)
    assert [found.colour for found in find(orange)] == [None]


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_faint_and_tiny_blotches_are_background(share: float) -> None:
    assert find(painted(draw("circle", 11.5, 0.0, 0.0), "black", share)) == []
    assert find(painted(np.ones((2, 4)))) == []
    verdict = judge(BLANK, SAID)
    assert isinstance(verdict, Verdict) and not verdict.all


def test_every_kind_of_object_is_recognised_at_any_position() -> None:
    for shape in SHAPES:
        for colour, (size, side) in zip(
            COLOURS, [*zip(SIZES, (7.5, 11.5), strict=True)] * 4, strict=True
        ):
            for left, top in ((0.0, 0.0), (0.37, 0.81), (0.5, 0.12)):
                (found,) = find(painted(draw(shape, side, left, top), colour))
                assert (found.colour, found.shape, found.size) == (colour, shape, size)


@pytest.mark.parametrize(
    "picture", [BLANK[:, :, 0], BLANK[:20], BLANK / 255, np.zeros((33, 33, 3), np.uint8)]
)
def test_other_arrays_are_refused(picture: Picture) -> None:
    with pytest.raises(InputError, match=r"must be of uint8 \(size, size, 3\), size one of 32"):
        find(picture)


def test_without_scipy_its_name_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "seq2see.pictures.scenes.objects"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(InputError, match="pip install scipy"):
        importlib.import_module(name)


def test_noise_is_judged_in_bounded_time() -> None:
    random = np.random.default_rng(4)
    start = time.perf_counter()
    for drawing in Drawings("val", 5, groups=3):
        noise = random.integers(0, 256, (8, 8, 3)).repeat(4, 0).repeat(4, 1).astype(np.uint8)
        assert not judge(noise, drawing.prompt).all
    assert time.perf_counter() - start < 5
