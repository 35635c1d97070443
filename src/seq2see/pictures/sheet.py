"""Sheets: several small pictures side by side in one file."""

import io
from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Pictures = NDArray[np.uint8]  # (N, height, width, channels)

GAP = 6  # pixels between pictures
FONT_SIZE = 11
LETTER = 5.6  # mean width of a letter of the font, in pixels
LINE = 13  # height of a line of text, in pixels


def sheet(
    pictures: Pictures, columns: int, scale: int = 4, labels: Sequence[str] | None = None
) -> bytes:
    """Arrange pictures in rows of `columns`, each pixel enlarged to a square; return a PNG file.

    Labels are written below their pictures.
    """
    _, height, width, channels = pictures.shape
    height, width = height * scale, width * scale
    texts = [wrap(label, int(width / LETTER)) for label in labels or ()]
    room = max(map(len, texts), default=0) * LINE
    rows = -(-len(pictures) // columns)
    down, across = height + room + GAP, width + GAP
    canvas = Image.new("RGB" if channels == 3 else "L", (columns * across, rows * down), "white")
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(FONT_SIZE)
    for number, picture in enumerate(pictures):
        left, top = number % columns * across + GAP // 2, number // columns * down + GAP // 2
        enlarged = picture.repeat(scale, axis=0).repeat(scale, axis=1)
        canvas.paste(Image.fromarray(enlarged if channels == 3 else enlarged[..., 0]), (left, top))
        if texts:
            draw.text((left, top + height), "\n".join(texts[number]), "black", font, spacing=0)
    content = io.BytesIO()
    canvas.save(content, "PNG")
    return content.getvalue()
