"""Objects in a picture of a scene: colour, shape, size and place, found without a network.

Touching pixels that differ from the background in the direction of one colour are an object. It is
compared with the renderer's masks of every shape, at several sides, sharp and slightly blurred, at
positions around its centre of mass; the nearest mask names shape and size.

Tolerated together, at most: noise of standard deviation 0.08, a blur of 0.6 pixels, contrasts and
colours off by 0.1, and blotches of 0.1 in the background, where colours go from 0 to 1 and pixels
are those of a 32 × 32 picture. Pixels of less than 0.45 of a colour's contrast, and patches of less
than 9 pixels, are background. An object is unrecognisable if no mask explains 0.85 of it.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import InputError
from seq2see.pictures.scenes.drawing import CONTRASTS, PICTURE_SIZES, Picture, draw
from seq2see.pictures.scenes.layout import CANVAS, SIDES
from seq2see.pictures.scenes.scene import BACKGROUND, SHAPES

try:
    from scipy import ndimage
except ImportError:
    raise InputError("judging scenes needs SciPy: pip install scipy") from None

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

# Lengths in pixels of a 32 × 32 picture; colours from 0 to 1.
STRENGTH = 0.45  # least share of a colour's contrast in a pixel of an object
LEAST_AREA = 9.0
SCALES = (0.88, 1.0, 1.12)  # of the sides of objects, in the masks
BLURS = (0.0, 0.6)  # of the masks
STEP = 0.25  # between the positions of masks
WINDOW = 19  # holds the largest mask at each position
GAINS = (0.7, 1.3)  # least and most contrast of an object, in shares of its colour's
BACKGROUND_OFF = 0.12  # the farthest that the background is taken to be from its own colour
COLOUR_OFF = 0.35  # the farthest from a colour that still has its name
LEAST_FIT = 0.85  # least share of an object's energy that its mask explains

NAMES = tuple(CONTRASTS)
VECTORS = np.stack([CONTRASTS[name] for name in NAMES]) / np.float32(255)  # (8, 3)
NORMS = np.sqrt((VECTORS**2).sum(1))  # (8,)
NEIGHBOURS = np.ones((3, 3))
NORMAL_MEDIAN = 0.6745  # of |x|, for a normal x of standard deviation 1


@dataclass(frozen=True, slots=True)
class Seen:
    """Object found in a picture; colour, shape or size is None where it cannot be told."""

    colour: str | None
    shape: str | None
    size: str | None
    centre: tuple[float, float]  # x and y, in pixels
    side: float  # of its box, in pixels
    fit: float  # share of its energy that the nearest mask explains


class Kind(NamedTuple):
    """Shape and size of masks, the side of their box, and its centre's depth below the mass's."""

    shape: str
    size: str
    side: float
    below: float


class Masks(NamedTuple):
    """Masks with their centres of mass at positions around the middle of a window."""

    kinds: list[Kind]
    values: Floats  # (K, P, P, window, window)
    energies: Floats  # (K, P, P)
    step: float  # between positions, in pixels

    @property
    def reach(self) -> int:
        """Number of positions on either side of the middle."""
        return int(self.values.shape[1] // 2)


class Match(NamedTuple):
    """Nearest mask of an object."""

    kind: Kind
    mask: Floats  # (window, window)
    x: float  # its centre of mass, from the middle of the window
    y: float
    energy: float  # of the object, as far as the mask explains it


def find(picture: Picture) -> list[Seen]:
    """Find the objects of a picture, the largest first."""
    if picture.dtype != np.uint8 or picture.shape not in [(s, s, 3) for s in PICTURE_SIZES]:
        raise InputError(
            f"picture of {picture.dtype} {picture.shape} must be of uint8 (size, size, 3), "
            f"size one of {', '.join(map(str, PICTURE_SIZES))}"
        )
    difference = _difference(picture)
    noise = _noise(difference)
    along = difference @ (VECTORS / NORMS[:, None]).T  # (size, size, 8)
    nearest = along.argmax(2)
    strong = along.max(2) > STRENGTH * NORMS[nearest]
    least = LEAST_AREA * (len(picture) / 32) ** 2
    components: list[tuple[int, int, Bools]] = []
    for colour in np.unique(nearest[strong]):
        labels, _ = ndimage.label(strong & (nearest == colour), NEIGHBOURS)
        areas = np.bincount(labels.ravel())
        for number in range(1, len(areas)):
            if areas[number] >= least:
                components.append((int(areas[number]), int(colour), labels == number))
    components.sort(key=lambda component: component[0], reverse=True)
    return [_recognise(difference, noise, colour, where) for _, colour, where in components]


def _difference(picture: Picture) -> Floats:
    """Subtract the background, which is the median of the border unless that is too far off."""
    pixels = picture.astype(np.float32) / np.float32(255)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    expected = np.divide(BACKGROUND, 255, dtype=np.float32)
    off = np.median(border, axis=0) - expected
    background: Floats = expected + off.clip(-BACKGROUND_OFF, BACKGROUND_OFF)
    return pixels - background


def _noise(difference: Floats) -> float:
    """Estimate the standard deviation of the noise from neighbours, most of which are alike."""
    steps = np.abs(difference[:, 1:] - difference[:, :-1])
    return float(np.median(steps)) / (NORMAL_MEDIAN * math.sqrt(2))


def _recognise(difference: Floats, noise: float, colour: int, where: Bools) -> Seen:
    """Name colour, shape and size of a component by the nearest mask."""
    around = ndimage.binary_dilation(where, NEIGHBOURS)
    alone = difference * around[:, :, None]
    strength = alone @ VECTORS[colour] / NORMS[colour] ** 2
    y, x = _centre_of_mass(strength)
    row, column = int(y), int(x)
    match = _match(_window(strength, row, column), y - row - 0.5, x - column - 0.5, len(alone))
    seen = np.tensordot(match.mask, _window(alone, row, column), 2) / (match.mask**2).sum()
    energy = float((strength**2).sum() - around.sum() * (noise / NORMS[colour]) ** 2)
    fit = min(1.0, match.energy / max(energy, 1e-6))
    return Seen(
        colour=_colour_name(seen),
        shape=match.kind.shape if fit >= LEAST_FIT else None,
        size=match.kind.size if fit >= LEAST_FIT else None,
        centre=(column + 0.5 + match.x, row + 0.5 + match.y + match.kind.below),
        side=match.kind.side,
        fit=fit,
    )


def _match(window: Floats, y: float, x: float, size: int) -> Match:
    """Find the mask nearest to an object, whose centre of mass is at (y, x) from the middle."""
    masks = masks_for(size)
    top = round(y / masks.step) + masks.reach - 1
    left = round(x / masks.step) + masks.reach - 1
    near = (slice(None), slice(top, top + 3), slice(left, left + 3))
    energies = masks.energies[near]  # (K, 3, 3)
    products = np.tensordot(masks.values[near], window, 2)
    gains = (products / energies).clip(*GAINS)
    explained = 2 * gains * products - gains**2 * energies
    best, down, right = np.unravel_index(int(explained.argmax()), explained.shape)
    row = top + int(down)
    column = left + int(right)
    return Match(
        kind=masks.kinds[best],
        mask=masks.values[best, row, column],
        x=(column - masks.reach) * masks.step,
        y=(row - masks.reach) * masks.step,
        energy=float(explained[best, down, right]),
    )


def _centre_of_mass(strength: Floats) -> tuple[float, float]:
    """Return the row and column of the centre; the middle of the first pixel is at 0.5."""
    mass = strength.clip(0)
    places = np.arange(max(mass.shape)) + 0.5
    total = mass.sum()
    row = mass.sum(1) @ places[: mass.shape[0]] / total
    column = mass.sum(0) @ places[: mass.shape[1]] / total
    return float(row), float(column)


def _window(values: Floats, row: int, column: int) -> Floats:
    """Cut out the window around a pixel, with zeros beyond the border."""
    side = _window_side(len(values))
    margin = (side // 2, side // 2)
    padded = np.pad(values, [margin, margin] + [(0, 0)] * (values.ndim - 2))
    return padded[row : row + side, column : column + side]


def _window_side(size: int) -> int:
    """Return the side of the window in a picture, an odd number of pixels."""
    return math.ceil(WINDOW * size / 32) // 2 * 2 + 1


def _colour_name(seen: Floats) -> str | None:
    distances = np.sqrt(((VECTORS - seen) ** 2).sum(1))
    nearest = int(distances.argmin())
    return NAMES[nearest] if distances[nearest] <= COLOUR_OFF else None


@cache
def masks_for(size: int) -> Masks:
    """Draw all masks to compare with in pictures of size × size pixels."""
    scale = size / 32
    step = STEP * scale
    reach = math.ceil(0.5 / step) + 1
    kinds = []
    drawn = []
    for shape in SHAPES:
        middle = _centre_of_mass(draw(shape, 64.0, 0.0, 0.0))[0] / 64
        for name, side in SIDES.items():
            for factor in SCALES:
                pixels = side * factor * size / CANVAS
                kinds.append(Kind(shape, name, pixels, pixels * (0.5 - middle)))
                drawn.append(_at_positions(kinds[-1], step, reach, _window_side(size)))
    sharp = np.stack(drawn)  # (K, P, P, window, window)
    spreads = [(0, 0, 0, blur * scale, blur * scale) for blur in BLURS]
    values = np.concatenate([ndimage.gaussian_filter(sharp, spread) for spread in spreads])
    return Masks(kinds * len(BLURS), values, (values**2).sum((3, 4)), step)


def _at_positions(kind: Kind, step: float, reach: int, window: int) -> Floats:
    """Draw a kind of mask at all positions around the middle of a window."""
    positions = [window / 2 + place * step for place in range(-reach, reach + 1)]
    values = np.zeros((len(positions), len(positions), window, window), dtype=np.float32)
    for row, y in enumerate(positions):
        for column, x in enumerate(positions):
            top = y + kind.below - kind.side / 2
            covered = draw(kind.shape, kind.side, x - kind.side / 2, top)
            height, width = covered.shape
            values[row, column, :height, :width] = covered[:window, :window]
    return values
