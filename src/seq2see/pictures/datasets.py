"""Labelled pictures: embedded digits, IDX files, folders of files by class; split in a fixed way, checked when read.

Digits: of each class a tenth is val and a fifth test. IDX: the last twelfth of train is val, t10k is test. Folders:
`train/CLASS/…`, `val/…` and `test/…`; of what is missing, a tenth of train. What is split off digits and folders goes
by a hash of the picture's own pixels, so that neither the order of the files nor a copy, whatever its label, lets a
test picture into training. IDX files and folders of one's own are taken at their word. A head of any part
(`data.limit`) is a fair sample: IDX files and digits come mixed, and folders, which come by class, are mixed here.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import files, idx
from seq2see.recipe.schema import DataConfig

FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
FASHION_SYSTEM = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package puts it
IDX_VAL = 12  # the last 1/12 of train: of Fashion-MNIST 5,000 of 60,000
DIGITS_PARTS = {"val": 0.1, "test": 0.2}
FOLDER_SHARE = 0.1
DIGITS_MOST = 16  # the value of a full pixel


@dataclass(frozen=True)
class Pictures:
    """Some pictures and the number of the class of each."""

    name: str  # "train", "val" or "test"
    pixels: Tensor  # (N, C, H, W), bytes
    labels: Tensor  # (N,)
    digest: str  # SHA-256 of both

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Album:
    """What a run learns from, chooses by and is scored on."""

    classes: list[str]
    train: Pictures
    val: Pictures
    tests: dict[str, Pictures]


def load(config: DataConfig, data: Path | None = None) -> Album:
    """Read the pictures that a recipe names; `data` is their folder, or what its path is relative to."""
    if config.corpus == "digits":
        if data is not None:
            raise InputError(f"--data {data}: data.corpus 'digits' is embedded and reads no files")
        album = _digits()
    elif config.corpus == "fashion":
        album = _idx(_fashion(data), FASHION)
    else:
        folder = (data or Path()) / Path(str(config.train)).expanduser()
        if not folder.is_dir():
            raise InputError(
                f"{folder}: no such folder for data.train; relative to --data, else to the working folder"
            )
        in_idx = idx.path_of(folder, "train", "images") is not None
        if in_idx and (config.size or config.colour):
            raise InputError(
                f"{folder}: IDX files; data.size and data.colour are for picture files"
            )
        album = _idx(folder) if in_idx else _folders(folder, config)
    if config.limit is None:
        return album
    train = pictures(
        "train", album.train.pixels[: config.limit], album.train.labels[: config.limit]
    )
    return Album(album.classes, train, album.val, album.tests)


def pictures(name: str, pixels: Tensor, labels: Tensor) -> Pictures:
    """Pictures (N, C, H, W) and their labels (N,), with their digest."""
    digest = hashlib.sha256(f"{tuple(pixels.shape)}".encode())
    for tensor in (pixels, labels.long()):
        digest.update(tensor.contiguous().numpy().tobytes())
    return Pictures(name, pixels.contiguous(), labels.long(), digest.hexdigest())


def split(pixels: Tensor, labels: Tensor, shares: dict[str, float]) -> dict[str, Tensor]:
    """The numbers of the pictures of each part and of `train`, the rest: of every class the same share.

    A hash of its pixels says where a picture goes. Equal ones go together; where labels differ, the first one decides.
    """
    keys, by_label = _hashes(pixels), dict[int, set[bytes]]()
    for key, label in zip(keys, labels.tolist(), strict=True):
        by_label.setdefault(label, set()).add(key)
    chosen: dict[bytes, str] = {}
    for _, own in sorted(by_label.items()):
        for place, key in enumerate(sorted(own)):
            chosen.setdefault(key, _part((place + 0.5) / len(own), shares))
    parts: dict[str, list[int]] = {name: [] for name in (*shares, "train")}
    for number, key in enumerate(keys):
        parts[chosen[key]].append(number)
    return {name: torch.tensor(numbers, dtype=torch.long) for name, numbers in parts.items()}


def _hashes(pixels: Tensor) -> list[bytes]:
    return [hashlib.blake2b(each.numpy().tobytes(), digest_size=16).digest() for each in pixels]


def _mixed(pixels: Tensor) -> list[int]:
    """The numbers of the pictures in an order that tells nothing of their classes.

    It goes by the far end of their hash. By the near end, which decides the part, a part would begin with the pictures
    next to its cut, and each class has a cut of its own: those of the class with the lowest would all come first.
    """
    return [
        number
        for _, number in sorted((key[::-1], number) for number, key in enumerate(_hashes(pixels)))
    ]


def _part(place: float, shares: dict[str, float]) -> str:
    """The part that a place between 0 and 1 falls into."""
    for name, share in shares.items():
        if place < share:
            return name
        place -= share
    return "train"


def _digits() -> Album:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise InputError(
            "data.corpus 'digits' comes with scikit-learn: pip install 'seq2see[vision]'"
        ) from None
    found = load_digits()
    pixels = (
        torch.from_numpy(found.images).mul(255 / DIGITS_MOST).round().to(torch.uint8)[:, None]
    )  # (N, 1, 8, 8)
    labels = torch.from_numpy(found.target).long()
    parts = {
        name: pictures(name, pixels[numbers], labels[numbers])
        for name, numbers in split(pixels, labels, DIGITS_PARTS).items()
    }
    return Album(
        [str(digit) for digit in range(10)], parts["train"], parts["val"], {"test": parts["test"]}
    )


def _fashion(data: Path | None) -> Path:
    """The folder of Fashion-MNIST: given, under SEQ2SEE_DATA, or the system's."""
    if data is not None:
        return data
    named = [Path(folder) / "fashion-mnist"] if (folder := os.environ.get("SEQ2SEE_DATA")) else []
    for each in (*named, FASHION_SYSTEM):
        if each.is_dir():
            return each
    raise InputError(
        "data.corpus 'fashion': give the folder of its four IDX files with --data DIR, set SEQ2SEE_DATA to the folder "
        f"that holds fashion-mnist, or on Debian install dataset-fashion-mnist, which puts them in {FASHION_SYSTEM}"
    )


def _idx(folder: Path, classes: Sequence[str] = ()) -> Album:
    """The four files of MNIST and its kin; without names the classes are called by their numbers."""
    train_pixels, train_labels = _idx_part(folder, "train")
    test_pixels, test_labels = _idx_part(folder, "t10k")
    if train_pixels.shape[1:] != test_pixels.shape[1:]:
        sizes = " and ".join(f"{p.shape[3]} × {p.shape[2]}" for p in (train_pixels, test_pixels))
        raise InputError(
            f"{folder}: the pictures of train and t10k have {sizes} pixels; they must be of one size"
        )
    most = int(max(train_labels.max(), test_labels.max()))
    if classes and most >= len(classes):
        raise InputError(
            f"{folder}: has a label {most}; those of {len(classes)} classes are below that number"
        )
    kept = len(train_labels) - len(train_labels) // IDX_VAL
    if kept == len(train_labels):
        raise InputError(
            f"{folder}: {kept} pictures to train on; the last of each {IDX_VAL} are kept for val"
        )
    return Album(
        list(classes) or [str(label) for label in range(most + 1)],
        pictures("train", train_pixels[:kept], train_labels[:kept]),
        pictures("val", train_pixels[kept:], train_labels[kept:]),
        {"test": pictures("test", test_pixels, test_labels)},
    )


def _idx_part(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    paths = [idx.path_of(folder, part, kind) for kind in ("images", "labels")]
    if paths[0] is None or paths[1] is None:
        kind, number = ("images", 3) if paths[0] is None else ("labels", 1)
        raise InputError(f"{folder}: has no {part}-{kind}-idx{number}-ubyte, plain or .gz")
    pixels, labels = idx.read(paths[0], 3), idx.read(paths[1], 1)
    if len(pixels) != len(labels):
        raise InputError(
            f"{paths[0]} has {len(pixels)} pictures and {paths[1]} {len(labels)} labels; they must pair up"
        )
    return pixels[:, None], labels


def _folders(folder: Path, config: DataConfig) -> Album:
    if not (folder / "train").is_dir():
        raise InputError(
            f"{folder}: has neither a folder train/ with one for each class, nor train-images-idx3-ubyte"
        )
    classes = files.classes_in(folder / "train")
    size, channels = (config.size, config.size) if config.size else None, 3 if config.colour else 1
    read: dict[str, tuple[Tensor, Tensor]] = {}
    for part in ("train", "val", "test"):
        if (folder / part).is_dir():
            found = files.paths_in(folder / part, classes)
            pixels = files.read_pictures([path for path, _ in found], channels, size)
            if part != "train" and pixels.shape[1:] != read["train"][0].shape[1:]:
                here, there = (f"{p.shape[3]} × {p.shape[2]}" for p in (pixels, read["train"][0]))
                raise InputError(
                    f"{folder / part}: {here} pixels, and train has {there}; data.size scales all to one size"
                )
            order = _mixed(pixels)
            read[part] = pixels[order], torch.tensor([found[number][1] for number in order])
    pixels, labels = read["train"]
    missing = {part: FOLDER_SHARE for part in ("val", "test") if part not in read}
    for part, numbers in split(pixels, labels, missing).items():
        if not len(numbers):
            raise InputError(
                f"{folder}: too few pictures to split off {part}; give a folder {part}/ of its own"
            )
        read[part] = pixels[numbers], labels[numbers]
    parts = {name: pictures(name, *each) for name, each in read.items()}
    return Album(classes, parts["train"], parts["val"], {"test": parts["test"]})
