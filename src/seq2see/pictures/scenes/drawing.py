"""Pictures of scenes: Pillow draws the mask of each shape once, and NumPy puts them together."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from seq2see.pictures.scenes.layout import CANVAS, Box
from seq2see.pictures.scenes.scene import BACKGROUND, COLOURS, Scene

Picture = NDArray[np.uint8]  # (size, size, 3)
Mask = NDArray[np.float32]  # the share of each pixel that a shape covers
Point = tuple[float, float]

PICTURE_SIZES = (32, 48, 64)
SUPERSAMPLE = 16  # rows and columns of samples in a pixel
ARM = 0.3  # width of the arms of a cross
CORNERS_OF_A_CIRCLE = 64


def _circle(radius: float, corners: int, turn: float = 0.0, middle: float = 0.5) -> list[Point]:
    """Return corners on a circle, the first at the top, turned by parts of a corner."""
    angles = [2 * math.pi * (corner + turn) / corners for corner in range(corners)]
    return [(0.5 + radius * math.sin(a), middle - radius * math.cos(a)) for a in angles]


def _star() -> list[Point]:
    """Return the corners of a five-pointed star as wide as the unit square."""
    radius = 0.5 / math.sin(math.radians(72))
    middle = 0.5 + radius * (1 - math.cos(math.radians(36))) / 2
    points = _circle(radius, 5, 0.0, middle)
    notches = _circle(0.42 * radius, 5, 0.5, middle)
    return [corner for pair in zip(points, notches, strict=True) for corner in pair]


def _cross() -> list[Point]:
    near = 0.5 - ARM / 2
    far = 0.5 + ARM / 2
    top = [(near, near), (near, 0.0), (far, 0.0), (far, near)]
    bottom = [(far, far), (far, 1.0), (near, 1.0), (near, far)]
    return [*top, (1.0, near), (1.0, far), *bottom, (0.0, far), (0.0, near)]


# In a unit square, the outline and, for a ring, that of its hole.
OUTLINES: dict[str, list[list[Point]]] = {
    "circle": [_circle(0.5, CORNERS_OF_A_CIRCLE)],
    "square": [[(0.03, 0.03), (0.97, 0.03), (0.97, 0.97), (0.03, 0.97)]],
    "triangle": [[(0.5, 0.03), (1.0, 0.97), (0.0, 0.97)]],
    "star": [_star()],
    "cross": [_cross()],
    "diamond": [[(0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5)]],
    "ring": [_circle(0.5, CORNERS_OF_A_CIRCLE), _circle(0.23, CORNERS_OF_A_CIRCLE)],
}


def draw(shape: str, side: float, left: float, top: float) -> Mask:
    """Draw a shape in a square of `side` pixels, which begins at (left, top)."""
    width = math.ceil(left + side)
    height = math.ceil(top + side)
    image = Image.new("L", (width * SUPERSAMPLE, height * SUPERSAMPLE))
    canvas = ImageDraw.Draw(image)
    for outline, fill in zip(OUTLINES[shape], (255, 0), strict=False):
        # Half a sample back: Pillow's coordinates are those of the middles of pixels.
        corners = [(left + side * x, top + side * y) for x, y in outline]
        canvas.polygon([(x * SUPERSAMPLE - 0.5, y * SUPERSAMPLE - 0.5) for x, y in corners], fill)
    covered = np.asarray(image.reduce(SUPERSAMPLE), dtype=np.float32)
    return covered / np.float32(255)


draw_once = cache(draw)


def paint(scene: Scene, boxes: Sequence[Box], size: int) -> Picture:
    """Paint the objects of a scene, laid out in boxes, as a picture of size × size pixels."""
    canvas = np.full((size, size, 3), BACKGROUND, dtype=np.float32)
    scale = size / CANVAS
    for box in boxes:
        group = scene.groups[box.group]
        column, left = divmod(box.x * scale, 1)
        row, top = divmod(box.y * scale, 1)
        covered = draw_once(group.shape, box.side * scale, left, top)
        height, width = covered.shape
        part = canvas[int(row) : int(row) + height, int(column) : int(column) + width]
        part += covered[:, :, None] * CONTRASTS[str(group.colour)]
    return np.rint(canvas).astype(np.uint8)


CONTRASTS = {
    name: np.subtract(colour, BACKGROUND, dtype=np.float32) for name, colour in COLOURS.items()
}
