"""Labelled pictures: embedded digits, IDX files, and folders of files by class.

Digits: a tenth of each class is val, a fifth is test. IDX: the last twelfth of train is val, t10k
is test. Folders: `train/CLASS/…`, `val/…` and `test/…`; a missing one is a tenth of train.

A hash of the pixels decides which pictures of digits and folders are split off, so that neither
the order of the files nor a duplicate, even with another label, can leak a test picture into
training. Splits given as IDX files or folders are not checked for duplicates. The first pictures
of any split (`data.limit`) are a fair sample: IDX files and digits come shuffled, and folders,
which are sorted by class, are shuffled here.
"""

import hashlib
import os
from collections.abc import Container, Sequence
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
FASHION_SYSTEM = Path("/usr/share/datasets/fashion-mnist")  # of Debian's package
IDX_VAL = 12  # the last 1/12 of train is val: 5,000 of the 60,000 of Fashion-MNIST
DIGITS_PARTS = {"val": 0.1, "test": 0.2}
DIGITS_MOST = 16  # the value of a full pixel
FOLDER_SHARE = 0.1


@dataclass(frozen=True)
class LabelledPictures:
    """Pictures of one split with the number of each one's class."""

    name: str  # "train", "val" or "test"
    pixels: Tensor  # (N, C, H, W), bytes
    labels: Tensor  # (N,)
    digest: str  # SHA-256 of both

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class PictureCorpus:
    """Training, validation and test sets of a run."""

    classes: list[str]
    train: LabelledPictures
    val: LabelledPictures
    tests: dict[str, LabelledPictures]


def load(config: DataConfig, data: Path | None = None) -> PictureCorpus:
    """Read a recipe's pictures; `data` is their folder, or the base of the recipe's path."""
    if config.corpus == "digits":
        if data is not None:
            raise InputError(f"--data {data}: data.corpus 'digits' is embedded and reads no files")
        corpus = _load_digits()
    elif config.corpus == "fashion":
        corpus = _load_idx(_fashion_folder(data), FASHION)
    else:
        corpus = _load_path(folder_of(config, data), config)
    if config.limit is None:
        return corpus
    train = pictures(
        "train", corpus.train.pixels[: config.limit], corpus.train.labels[: config.limit]
    )
    return PictureCorpus(corpus.classes, train, corpus.val, corpus.tests)


def folder_of(config: DataConfig, data: Path | None) -> Path:
    """Return the folder of data.train; `data` is the base of a relative path."""
    folder = (data or Path()) / Path(str(config.train)).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such folder for data.train; "
            "paths are relative to --data, else to the working directory"
        )
    return folder


def _load_path(folder: Path, config: DataConfig) -> PictureCorpus:
    if idx.path_of(folder, "train", "images") is None:
        return _load_folders(folder, config)
    if config.size or config.colour:
        raise InputError(f"{folder}: IDX files; data.size and data.colour are for picture files")
    return _load_idx(folder)


def pictures(name: str, pixels: Tensor, labels: Tensor) -> LabelledPictures:
    """Label pictures (N, C, H, W) with their classes (N,), and compute their digest."""
    digest = hashlib.sha256(f"{tuple(pixels.shape)}".encode())
    for tensor in (pixels, labels.long()):
        digest.update(tensor.contiguous().numpy().tobytes())
    return LabelledPictures(name, pixels.contiguous(), labels.long(), digest.hexdigest())


def split(pixels: Tensor, labels: Tensor, shares: dict[str, float]) -> dict[str, Tensor]:
    """Assign a share of every class to each part, and the rest to `train`; return indices.

    A hash of its pixels decides where a picture goes, so equal pictures stay together; where their
    labels differ, the lowest label decides.
    """
    hashes = _hashes(pixels)
    by_label: dict[int, set[bytes]] = {}
    for key, label in zip(hashes, labels.tolist(), strict=True):
        by_label.setdefault(label, set()).add(key)
    part_of: dict[bytes, str] = {}
    for _, keys in sorted(by_label.items()):
        for rank, key in enumerate(sorted(keys)):
            part_of.setdefault(key, _part((rank + 0.5) / len(keys), shares))
    parts: dict[str, list[int]] = {name: [] for name in (*shares, "train")}
    for index, key in enumerate(hashes):
        parts[part_of[key]].append(index)
    return {name: torch.tensor(indices, dtype=torch.long) for name, indices in parts.items()}


def _hashes(pixels: Tensor) -> list[bytes]:
    return [
        hashlib.blake2b(picture.numpy().tobytes(), digest_size=16).digest() for picture in pixels
    ]


def shuffled(pixels: Tensor) -> list[int]:
    """Return the indices of pictures in an order that is independent of their classes.

    The order is that of the reversed hashes. Unreversed ones also decide the part, so that a part
    would begin with the pictures nearest to the boundary between parts; that boundary differs from
    class to class, and the class with the lowest would come first.
    """
    keys = [key[::-1] for key in _hashes(pixels)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _part(quantile: float, shares: dict[str, float]) -> str:
    """Return the part in which a quantile between 0 and 1 falls."""
    for name, share in shares.items():
        if quantile < share:
            return name
        quantile -= share
    return "train"


def _load_digits() -> PictureCorpus:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        rule = "comes with scikit-learn: pip install scikit-learn"
        raise InputError(f"data.corpus 'digits' {rule}") from None
    digits = load_digits()
    scaled = torch.from_numpy(digits.images).mul(255 / DIGITS_MOST).round()
    pixels = scaled.to(torch.uint8)[:, None]  # (N, 1, 8, 8)
    labels = torch.from_numpy(digits.target).long()
    parts = {
        name: pictures(name, pixels[indices], labels[indices])
        for name, indices in split(pixels, labels, DIGITS_PARTS).items()
    }
    classes = [str(digit) for digit in range(10)]
    return PictureCorpus(classes, parts["train"], parts["val"], {"test": parts["test"]})


def _fashion_folder(data: Path | None) -> Path:
    """Return the folder of Fashion-MNIST: `data`, under SEQ2SEE_DATA, or the system's."""
    if data is not None:
        return data
    folders = [FASHION_SYSTEM]
    if corpora := os.environ.get("SEQ2SEE_DATA"):
        folders.insert(0, Path(corpora) / "fashion-mnist")
    for folder in folders:
        if folder.is_dir():
            return folder
    raise InputError(
        "data.corpus 'fashion': give the folder of its four IDX files with --data DIR, "
        "set SEQ2SEE_DATA to the folder that holds fashion-mnist, "
        f"or on Debian install dataset-fashion-mnist, which puts them in {FASHION_SYSTEM}"
    )


def _load_idx(folder: Path, classes: Sequence[str] = ()) -> PictureCorpus:
    """Read the four files of a corpus in MNIST's format; unnamed classes are called 0, 1, …"""
    train_pixels, train_labels = _read_idx(folder, "train")
    test_pixels, test_labels = _read_idx(folder, "t10k")
    if train_pixels.shape[1:] != test_pixels.shape[1:]:
        raise InputError(
            f"{folder}: the pictures of train and t10k have {files.dimensions(train_pixels)} and "
            f"{files.dimensions(test_pixels)} pixels; they must have one size"
        )
    largest = int(max(train_labels.max(), test_labels.max()))
    if classes and largest >= len(classes):
        raise InputError(
            f"{folder}: label {largest}; the labels of {len(classes)} classes are 0 to "
            f"{len(classes) - 1}"
        )
    kept = len(train_labels) - len(train_labels) // IDX_VAL
    if kept == len(train_labels):
        raise InputError(
            f"{folder}: {kept} training pictures; at least {IDX_VAL} are needed, "
            f"since the last 1/{IDX_VAL} of them is val"
        )
    return PictureCorpus(
        list(classes) or [str(label) for label in range(largest + 1)],
        pictures("train", train_pixels[:kept], train_labels[:kept]),
        pictures("val", train_pixels[kept:], train_labels[kept:]),
        {"test": pictures("test", test_pixels, test_labels)},
    )


def _read_idx(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Read the pictures (N, 1, H, W) and labels (N,) of a part."""
    images_path = idx.path_of(folder, part, "images")
    if images_path is None:
        raise InputError(f"{folder}: has no {part}-images-idx3-ubyte, plain or .gz")
    labels_path = idx.path_of(folder, part, "labels")
    if labels_path is None:
        raise InputError(f"{folder}: has no {part}-labels-idx1-ubyte, plain or .gz")
    pixels = idx.read(images_path, 3)
    labels = idx.read(labels_path, 1)
    if len(pixels) != len(labels):
        raise InputError(
            f"{images_path} has {len(pixels)} pictures and {labels_path} {len(labels)} labels; "
            "they must pair up"
        )
    return pixels[:, None], labels


def _load_folders(folder: Path, config: DataConfig) -> PictureCorpus:
    if not (folder / "train").is_dir():
        raise InputError(
            f"{folder}: has neither a folder train/ with one folder per class, "
            "nor train-images-idx3-ubyte"
        )
    classes = files.classes_in(folder / "train")
    parts = {
        part: _read_folder(folder / part, classes, config)
        for part in ("train", "val", "test")
        if (folder / part).is_dir()
    }
    pixels, labels = parts["train"]
    check_sizes(folder, {part: part_pixels for part, (part_pixels, _) in parts.items()})
    for part, indices in split_off(folder, pixels, labels, parts).items():
        parts[part] = pixels[indices], labels[indices]
    labelled = {part: pictures(part, *tensors) for part, tensors in parts.items()}
    return PictureCorpus(classes, labelled["train"], labelled["val"], {"test": labelled["test"]})


def check_sizes(folder: Path, parts: dict[str, Tensor]) -> None:
    """Refuse parts of a folder whose pictures (N, C, H, W) differ in size from those of train."""
    for part, pixels in parts.items():
        if pixels.shape[1:] != parts["train"].shape[1:]:
            raise InputError(
                f"{folder / part}: {files.dimensions(pixels)} pixels, and train has "
                f"{files.dimensions(parts['train'])}; data.size scales all to one size"
            )


def split_off(
    folder: Path, pixels: Tensor, labels: Tensor, given: Container[str]
) -> dict[str, Tensor]:
    """Split val and test off train unless they are given; return indices, also of the rest."""
    missing = {part: FOLDER_SHARE for part in ("val", "test") if part not in given}
    parts = split(pixels, labels, missing)
    for part, indices in parts.items():
        if not len(indices):
            raise InputError(
                f"{folder}: too few pictures to split off {part}; "
                f"provide a folder {part}/ beside train/"
            )
    return parts


def _read_folder(folder: Path, classes: Sequence[str], config: DataConfig) -> tuple[Tensor, Tensor]:
    """Read the pictures (N, C, H, W) and labels (N,) of a folder, shuffled."""
    paths = files.paths_in(folder, classes)
    channels = 3 if config.colour else 1
    size = (config.size, config.size) if config.size else None
    pixels = files.read_pictures([path for path, _ in paths], channels, size)
    order = shuffled(pixels)
    labels = torch.tensor([paths[index][1] for index in order])
    return pixels[order], labels
