"""Pictures as a model sees them: normalised, and in training moved, mirrored and cut out, anew each epoch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import overload

import torch
from torch import Tensor

from seq2see.batches import Batch, IdPair
from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.pictures.datasets import LabelledPictures, PictureCorpus
from seq2see.recipe.schema import AugmentConfig
from seq2see.text.vocab import PAD, SPECIALS, Vocab

FILE = "pictures.json"
DRAWS = 5  # numbers for each picture: two of the shift, the flip, two of the cut


@dataclass(frozen=True)
class Format:
    """What a model knows of its pictures without having the data: their shape, their pixels' scale, their classes."""

    shape: tuple[int, int, int]  # channels, height, width
    mean: list[float]  # of the training pixels of each channel, from 0 to 1
    std: list[float]
    classes: list[str]

    @classmethod
    def of(cls, corpus: PictureCorpus) -> "Format":
        channels, height, width = corpus.train.pixels.shape[1:]
        # By counting: the same numbers as from the pixels in double precision, without writing those out.
        by_channel = corpus.train.pixels.transpose(0, 1).flatten(1)
        counts = torch.stack(
            [torch.bincount(channel, minlength=256) for channel in by_channel]
        )  # (C, 256)
        values = torch.arange(256, dtype=torch.float64) / 255
        shares = counts / counts.sum(1, keepdim=True, dtype=torch.float64)  # (C, 256)
        mean = shares @ values
        std = (shares @ values**2 - mean**2).clamp(min=1e-6).sqrt()
        return cls((channels, height, width), mean.tolist(), std.tolist(), corpus.classes)

    def save(self, folder: Path) -> None:
        write_text(folder / FILE, json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Format":
        path = folder / FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            channels, height, width = map(int, found["shape"])
            mean, std = ([float(each) for each in found[key]] for key in ("mean", "std"))
            classes = [str(name) for name in found["classes"]]
        except OSError as error:
            raise InputError(f"{path}: cannot read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}: does not say what the model's pictures are like: {error!r}"
            ) from None
        sizes = channels in (1, 3) and len(mean) == len(std) == channels and min(height, width) > 0
        if not (sizes and min(std) > 0 and classes):
            raise InputError(f"{path}: shape, mean, std and classes do not fit together")
        return cls((channels, height, width), mean, std, classes)

    @property
    def labels(self) -> Vocab:
        """The classes as words, which a classifier writes one of; their ids follow those of the special symbols."""
        return Vocab(self.classes)

    def normal(self, pixels: Tensor) -> Tensor:
        """Bytes (B, C, H, W) → floats, of the training set's mean 0 and standard deviation 1."""
        mean, std = (
            torch.tensor(each, dtype=torch.float32)[:, None, None] for each in (self.mean, self.std)
        )
        return (pixels.float() / 255 - mean) / std

    def batch(self, pixels: Tensor) -> Batch:
        """Bytes (B, C, H, W) that a model is to tell the classes of."""
        nothing = torch.full((len(pixels), 1), PAD)
        return Batch(self.normal(pixels), nothing, nothing, list(range(len(pixels))))


class Shown(Sequence[IdPair]):
    """Pictures in the place of sentences: so many patches to read, one label to write; `batch` has their pixels.

    With `augment` each picture is changed by numbers drawn for (seed, epoch, line), whatever shares its batch.
    """

    def __init__(
        self,
        pictures: LabelledPictures,
        format: Format,
        patches: int,
        augment: AugmentConfig | None = None,
        key: str = "",
    ) -> None:
        self.pictures, self.format, self.augment = pictures, format, augment
        places = list(range(patches))
        self.pairs: list[IdPair] = [
            (places, [len(SPECIALS) + label]) for label in pictures.labels.tolist()
        ]
        if augment is not None:
            seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
            self.drawn = torch.rand(
                len(pictures), DRAWS, generator=torch.Generator().manual_seed(seed)
            )

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, line: int) -> IdPair: ...
    @overload
    def __getitem__(self, line: slice) -> Sequence[IdPair]: ...
    def __getitem__(self, line: int | slice) -> IdPair | Sequence[IdPair]:
        return self.pairs[line]

    def batch(self, lines: Sequence[int]) -> Batch:
        """The pixels of some lines, normalised, as `source`, and their labels' ids (B, 1)."""
        rows = torch.tensor(lines)
        pixels = self.pictures.pixels.index_select(0, rows)
        if self.augment is None:
            shown = self.format.normal(pixels)
        else:
            drawn = self.drawn.index_select(0, rows)
            shown = cut_out(
                self.format.normal(moved(pixels, drawn, self.augment)), drawn, self.augment.cut_out
            )
        answers = torch.tensor([self.pairs[line][1] for line in lines])
        return Batch(shown, answers, answers, list(lines))


def collate_shown(pairs: Sequence[IdPair], lines: Sequence[int]) -> Batch:
    """`Shown.batch`, as the training loop calls it."""
    assert isinstance(pairs, Shown)
    return pairs.batch(lines)


def moved(pixels: Tensor, drawn: Tensor, augment: AugmentConfig) -> Tensor:
    """Bytes (B, C, H, W), each moved over a black ground and perhaps mirrored, by its numbers (B, ≥ 3) from 0 to 1."""
    if not augment.shift and not augment.flip:
        return pixels
    steps = 2 * augment.shift + 1
    down, right = (
        (drawn[:, i : i + 1] * steps).long() - augment.shift for i in (0, 1)
    )  # (B, 1) each
    rows = torch.arange(pixels.shape[2]) - down  # (B, H): where each row comes from
    columns = torch.arange(pixels.shape[3]) - right  # (B, W)
    if augment.flip:
        mirrored = drawn[:, 2:3] < 0.5
        columns = torch.where(mirrored, pixels.shape[3] - 1 - columns, columns)
    found = pixels
    for axis, places in ((2, rows), (3, columns)):
        shape = (len(places), 1, -1, 1) if axis == 2 else (len(places), 1, 1, -1)
        inside = (places >= 0) & (places < pixels.shape[axis])
        index = places.clamp(0, pixels.shape[axis] - 1).view(shape).expand_as(pixels)
        found = found.gather(axis, index) * inside.view(shape)
    return found


def cut_out(shown: Tensor, drawn: Tensor, side: int) -> Tensor:
    """Normalised pixels (B, C, H, W), in each a square of the mean colour, its centre drawn (B, 5) anywhere inside."""
    if not side:
        return shown
    inside: list[Tensor] = []
    for axis, chance in ((2, drawn[:, 3:4]), (3, drawn[:, 4:5])):
        first = (chance * shown.shape[axis]).long() - side // 2  # (B, 1)
        place = torch.arange(shown.shape[axis])
        inside.append((place >= first) & (place < first + side))  # (B, H), then (B, W)
    square = inside[0][:, None, :, None] & inside[1][:, None, None, :]  # (B, 1, H, W)
    return shown.masked_fill(square, 0.0)
