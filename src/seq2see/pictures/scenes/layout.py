"""Layouts of scenes: boxes for all objects, apart from each other, as the relation says."""

from typing import NamedTuple

import numpy as np

from seq2see.pictures.scenes.scene import Scene
from seq2see.pictures.scenes.wording import Random

# All lengths are in quarters of a pixel of a 32 × 32 picture.
CANVAS = 128
SIDES = {"small": 30, "large": 46}
MARGIN = 3  # between objects and the border
GAP = 8  # between the boxes of two objects
# Groups one above another share this much of their horizontal range at least, so that neither is
# also left of the other; and the other way round.
SHARED = 12
ATTEMPTS = 8


class Box(NamedTuple):
    """Square of an object of a group."""

    group: int
    x: int
    y: int
    side: int


Range = tuple[int, int]
Zone = tuple[Range, Range]  # columns and rows


def place(scene: Scene, random: Random) -> list[Box] | None:
    """Draw a layout of a scene, or return None where it does not fit or none is found."""
    for _ in range(ATTEMPTS):
        zones = _zones(scene, random)
        if zones is None:
            return None
        boxes = _fill(scene, zones, random)
        if boxes is not None:
            return boxes
    return None


def _zones(scene: Scene, random: Random) -> list[Zone] | None:
    """Divide the canvas between the related groups; the others have all of it."""
    whole = (MARGIN, CANVAS - MARGIN)
    zones: list[Zone] = [(whole, whole)] * len(scene.groups)
    if scene.relation is None:
        return zones
    chain = list(range(scene.related))
    if scene.relation in ("below", "right of"):
        chain.reverse()
    needs = [_depth(scene, number) for number in chain]
    spare = CANVAS - 2 * MARGIN - sum(needs) - GAP * (len(needs) - 1)
    if spare < 0:
        return None
    cuts = sorted(int(random() * (spare + 1)) for _ in chain[1:])
    start = MARGIN
    used = 0
    for number, need, cut in zip(chain, needs, [*cuts, spare], strict=True):
        end = start + need + cut - used
        across = scene.relation in ("left of", "right of")
        zones[number] = ((start, end), whole) if across else (whole, (start, end))
        start = end + GAP
        used = cut
    return zones


def _depth(scene: Scene, number: int) -> int:
    """Return the least depth of a group along the axis of its relation: one row or two."""
    group = scene.groups[number]
    side = SIDES[str(group.size)]
    row = (CANVAS - 2 * MARGIN + GAP) // (side + GAP)
    return side if group.count <= row else 2 * side + GAP


def _fill(scene: Scene, zones: list[Zone], random: Random) -> list[Box] | None:
    """Place the objects of each group in its zone, or return None if one finds no room."""
    boxes: list[Box] = []
    for number, (group, zone) in enumerate(zip(scene.groups, zones, strict=True)):
        side = SIDES[str(group.size)]
        beside = zone
        if 0 < number < scene.related:
            beside = _beside(scene, boxes, number - 1, zone, side)
        for index in range(group.count):
            corner = _corner(boxes, beside if index == 0 else zone, side, random)
            if corner is None:
                return None
            boxes.append(Box(number, *corner, side))
    return boxes


def _beside(scene: Scene, boxes: list[Box], other: int, zone: Zone, side: int) -> Zone:
    """Narrow a zone to the range that the group before spans across the relation's axis."""
    columns, rows = zone
    group = [box for box in boxes if box.group == other]
    if scene.relation in ("above", "below"):
        first = min(box.x for box in group)
        last = max(box.x + box.side for box in group)
        return _narrowed(columns, first, last, side), rows
    first = min(box.y for box in group)
    last = max(box.y + box.side for box in group)
    return columns, _narrowed(rows, first, last, side)


def _narrowed(whole: Range, first: int, last: int, side: int) -> Range:
    reach = side - SHARED
    return max(whole[0], first - reach), min(whole[1], last + reach)


def _corner(boxes: list[Box], zone: Zone, side: int, random: Random) -> tuple[int, int] | None:
    """Draw the corner of a new box in a zone from all that keep their distance from the others."""
    (left, right), (top, bottom) = zone
    free = np.ones((bottom - top - side + 1, right - left - side + 1), dtype=np.bool_)
    for box in boxes:
        reach = side + GAP - 1
        rows = slice(max(0, box.y - reach - top), max(0, box.y + box.side + GAP - top))
        columns = slice(max(0, box.x - reach - left), max(0, box.x + box.side + GAP - left))
        free[rows, columns] = False
    corners = np.flatnonzero(free)
    if not len(corners):
        return None
    row, column = divmod(int(corners[int(random() * len(corners))]), free.shape[1])
    return left + column, top + row
