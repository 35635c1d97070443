"""Pictures as model input: normalised, and in training shifted, mirrored and cut out each epoch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.pictures.datasets import LabelledPictures, PictureCorpus
from seq2see.recipe.schema import AugmentConfig
from seq2see.text.specials import SPECIALS
from seq2see.text.vocab import Vocab

FILE = "pictures.json"
DRAWS = 5  # random numbers for each picture: two of the shift, the flip, two of the cut-out


@dataclass(frozen=True)
class PictureBatch:
    """Normalised pictures and the ids of their classes; `lines` are their places in the corpus."""

    pixels: Tensor  # (B, C, H, W)
    labels: Tensor  # (B,)
    lines: list[int]

    @property
    def targets(self) -> Tensor:
        return self.labels

    @property
    def target_tokens(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> "PictureBatch":
        return PictureBatch(self.pixels.to(device), self.labels.to(device), self.lines)


@dataclass(frozen=True)
class Format:
    """Shape, pixel statistics and class names of a model's pictures."""

    shape: tuple[int, int, int]  # channels, height, width
    mean: list[float]  # of the training pixels of each channel, from 0 to 1
    std: list[float]
    classes: list[str]

    @classmethod
    def of(cls, corpus: PictureCorpus) -> "Format":
        channels, height, width = corpus.train.pixels.shape[1:]
        # By counting bytes: the statistics of double precision without pixels of that type.
        by_channel = corpus.train.pixels.transpose(0, 1).flatten(1)
        counts = torch.stack([torch.bincount(channel, minlength=256) for channel in by_channel])
        values = torch.arange(256, dtype=torch.float64) / 255
        shares = counts / counts.sum(1, keepdim=True, dtype=torch.float64)  # (C, 256)
        mean = shares @ values
        std = (shares @ values**2 - mean**2).clamp(min=1e-6).sqrt()
        return cls((channels, height, width), mean.tolist(), std.tolist(), corpus.classes)

    def save(self, folder: Path) -> None:
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False)
        write_text(folder / FILE, f"{text}\n")

    @classmethod
    def load(cls, folder: Path) -> "Format":
        path = folder / FILE
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            channels, height, width = map(int, values["shape"])
            mean = [float(number) for number in values["mean"]]
            std = [float(number) for number in values["std"]]
            classes = [str(name) for name in values["classes"]]
        except OSError as error:
            raise InputError(f"{path}: cannot read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: does not describe a model's pictures: {error!r}") from None
        sizes = channels in (1, 3) and len(mean) == len(std) == channels and min(height, width) > 0
        if not (sizes and min(std) > 0 and classes):
            raise InputError(f"{path}: shape, mean, std and classes do not fit together")
        return cls((channels, height, width), mean, std, classes)

    @property
    def labels(self) -> Vocab:
        """The classes as a vocabulary; their ids follow those of the special symbols."""
        return Vocab(self.classes)

    def normalise(self, pixels: Tensor) -> Tensor:
        """Bytes (B, C, H, W) → floats with the training set's mean 0 and standard deviation 1."""
        mean = torch.tensor(self.mean, dtype=torch.float32)[:, None, None]
        std = torch.tensor(self.std, dtype=torch.float32)[:, None, None]
        return (pixels.float() / 255 - mean) / std

    def batch(self, pixels: Tensor) -> PictureBatch:
        """Bytes (B, C, H, W) of unknown classes as a batch."""
        unknown = torch.zeros(len(pixels), dtype=torch.long)
        return PictureBatch(self.normalise(pixels), unknown, list(range(len(pixels))))


class PictureExamples:
    """Pictures with their labels; a picture is as long as its patches and the class token.

    With `augment` each picture is changed by numbers drawn for (seed, epoch, line), whatever
    else is in its batch.
    """

    def __init__(
        self,
        pictures: LabelledPictures,
        format: Format,
        patches: int,
        augment: AugmentConfig | None = None,
        key: str = "",
    ) -> None:
        self.pictures = pictures
        self.format = format
        self.augment = augment
        self.labels = pictures.labels + len(SPECIALS)  # (N,)
        self.lengths: NDArray[np.int64] = np.tile([patches + 1, 1], (len(pictures), 1))
        if augment is not None:
            seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
            generator = torch.Generator().manual_seed(seed)
            self.draws = torch.rand(len(pictures), DRAWS, generator=generator)

    def __len__(self) -> int:
        return len(self.pictures)

    def batch(self, lines: Sequence[int]) -> PictureBatch:
        rows = torch.tensor(lines)
        pixels = self.pictures.pixels.index_select(0, rows)
        if self.augment is None:
            pixels = self.format.normalise(pixels)
        else:
            draws = self.draws.index_select(0, rows)
            pixels = self.format.normalise(shift_and_flip(pixels, draws, self.augment))
            pixels = cut_out(pixels, draws, self.augment.cut_out)
        return PictureBatch(pixels, self.labels.index_select(0, rows), list(lines))


def shift_and_flip(pixels: Tensor, draws: Tensor, augment: AugmentConfig) -> Tensor:
    """Shift bytes (B, C, H, W) over black and mirror them, by random numbers (B, ≥ 3) in 0 … 1."""
    if not augment.shift and not augment.flip:
        return pixels
    steps = 2 * augment.shift + 1
    down = (draws[:, 0:1] * steps).long() - augment.shift  # (B, 1)
    right = (draws[:, 1:2] * steps).long() - augment.shift
    rows = torch.arange(pixels.shape[2]) - down  # (B, H): where each row comes from
    columns = torch.arange(pixels.shape[3]) - right  # (B, W)
    if augment.flip:
        mirrored = draws[:, 2:3] < 0.5
        columns = torch.where(mirrored, pixels.shape[3] - 1 - columns, columns)
    for axis, origins in ((2, rows), (3, columns)):
        shape = (len(origins), 1, -1, 1) if axis == 2 else (len(origins), 1, 1, -1)
        inside = (origins >= 0) & (origins < pixels.shape[axis])
        index = origins.clamp(0, pixels.shape[axis] - 1).view(shape).expand_as(pixels)
        pixels = pixels.gather(axis, index) * inside.view(shape)
    return pixels


def cut_out(pixels: Tensor, draws: Tensor, side: int) -> Tensor:
    """Set a square of normalised pixels (B, C, H, W) to the mean, its centre drawn (B, 5)."""
    if not side:
        return pixels
    inside: list[Tensor] = []
    for axis, centre in ((2, draws[:, 3:4]), (3, draws[:, 4:5])):
        first = (centre * pixels.shape[axis]).long() - side // 2  # (B, 1)
        position = torch.arange(pixels.shape[axis])
        inside.append((position >= first) & (position < first + side))  # (B, H), then (B, W)
    square = inside[0][:, None, :, None] & inside[1][:, None, None, :]  # (B, 1, H, W)
    return pixels.masked_fill(square, 0.0)
