"""Pictures with captions: a folder with a caption file, or labelled pictures by class.

A folder has `captions.tsv`, with lines `name<TAB>caption`, beside its pictures; or `train/`, and
optionally `val/` and `test/`, with a file each. A missing part is a tenth of train, split off by a
hash of the pixels, so that equal pictures stay together. Pictures are shuffled, so that the first
ones (`data.limit`) are a fair sample; those that the file does not name are not read.
"""

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import datasets, files, idx
from seq2see.pictures.datasets import LabelledPictures, PictureCorpus
from seq2see.recipe.schema import DataConfig
from seq2see.text.headers import shown
from seq2see.text.lines import read_lines

CAPTIONS = "captions.tsv"


@dataclass(frozen=True)
class CaptionedPictures:
    """Pictures of one split with the caption of each."""

    name: str  # "train", "val" or "test"
    pixels: Tensor  # (N, C, H, W), bytes
    captions: list[str]
    digest: str  # SHA-256 of both

    def __len__(self) -> int:
        return len(self.captions)


@dataclass(frozen=True)
class CaptionedCorpus:
    """Training, validation and test sets of a run."""

    train: CaptionedPictures
    val: CaptionedPictures
    tests: dict[str, CaptionedPictures]


def load(config: DataConfig, data: Path | None = None) -> CaptionedCorpus:
    """Read a recipe's pictures; `data` is their folder, or the base of the recipe's path."""
    if config.corpus is not None:
        return by_class(datasets.load(config, data))
    folder = datasets.folder_of(config, data)
    if not (folder / CAPTIONS).is_file() and _is_labelled(folder):
        return by_class(datasets.load(config, data))
    corpus = _load_folder(folder, config)
    if config.limit is None:
        return corpus
    pixels, captions = corpus.train.pixels, corpus.train.captions
    train = pictures("train", pixels[: config.limit], captions[: config.limit])
    return replace(corpus, train=train)


def pictures(name: str, pixels: Tensor, captions: list[str]) -> CaptionedPictures:
    """Pair pictures (N, C, H, W) with their captions, and compute their digest."""
    if len(pixels) != len(captions):
        raise ValueError(f"{len(pixels)} pictures and {len(captions)} captions must pair up")
    digest = hashlib.sha256(f"{tuple(pixels.shape)}".encode())
    digest.update(pixels.contiguous().numpy().tobytes())
    digest.update(json.dumps(captions).encode())
    return CaptionedPictures(name, pixels.contiguous(), captions, digest.hexdigest())


def by_class(corpus: PictureCorpus) -> CaptionedCorpus:
    """Take the names of the classes as captions."""

    def captioned(part: LabelledPictures) -> CaptionedPictures:
        captions = [corpus.classes[label] for label in part.labels.tolist()]
        return pictures(part.name, part.pixels, captions)

    tests = {name: captioned(test) for name, test in corpus.tests.items()}
    return CaptionedCorpus(captioned(corpus.train), captioned(corpus.val), tests)


def _is_labelled(folder: Path) -> bool:
    """Tell whether a folder has IDX files, or folders by class and no captions in train/."""
    if idx.path_of(folder, "train", "images") is not None:
        return True
    train = folder / "train"
    if not train.is_dir() or (train / CAPTIONS).is_file():
        return False
    return any(entry.is_dir() for entry in train.iterdir())


def _load_folder(folder: Path, config: DataConfig) -> CaptionedCorpus:
    contents = {part: _read(path, config) for part, path in _parts_of(folder).items()}
    datasets.check_sizes(folder, {part: pixels for part, (pixels, _) in contents.items()})
    pixels, captions = contents["train"]
    one_class = torch.zeros(len(pixels), dtype=torch.long)
    for part, indices in datasets.split_off(folder, pixels, one_class, contents).items():
        contents[part] = pixels[indices], [captions[index] for index in indices.tolist()]
    captioned = {part: pictures(part, *content) for part, content in contents.items()}
    return CaptionedCorpus(captioned["train"], captioned["val"], {"test": captioned["test"]})


def _parts_of(folder: Path) -> dict[str, Path]:
    """Return the folders of the parts that are given; a single folder is train."""
    train = folder / "train"
    if (folder / CAPTIONS).is_file():
        if (train / CAPTIONS).is_file():
            rule = f"{CAPTIONS} belongs either in {folder} or in its parts"
            raise InputError(f"{train / CAPTIONS}: {folder / CAPTIONS} exists, too; {rule}")
        return {"train": folder}
    if not train.is_dir():
        raise InputError(
            f"{folder}: has none of {CAPTIONS}, a folder train/, and train-images-idx3-ubyte"
        )
    return {part: folder / part for part in ("train", "val", "test") if (folder / part).is_dir()}


def _read(folder: Path, config: DataConfig) -> tuple[Tensor, list[str]]:
    """Read the pictures (N, C, H, W) and captions of a folder, shuffled."""
    captions = read_captions(folder)
    channels = 3 if config.colour else 1
    size = (config.size, config.size) if config.size else None
    pixels = files.read_pictures(list(captions), channels, size)
    order = datasets.shuffled(pixels)
    in_file_order = list(captions.values())
    return pixels[order], [in_file_order[index] for index in order]


def read_captions(folder: Path) -> dict[Path, str]:
    """Read the caption file of a folder: the path of each picture, and its caption."""
    file = folder / CAPTIONS
    if not file.is_file():
        rule = "it gives each picture a caption, in lines name<TAB>caption"
        raise InputError(f"{file}: no such file; {rule}")
    captions: dict[Path, str] = {}
    for number, line in enumerate(read_lines(file), start=1):
        if not line.strip():
            continue
        path, caption = _parse(line, folder, f"{file}:{number}")
        if path in captions:
            name = str(path.relative_to(folder))
            raise InputError(f"{file}:{number}: {name!r} again; a picture has one caption")
        captions[path] = caption
    return captions


def _parse(line: str, folder: Path, where: str) -> tuple[Path, str]:
    """Split a line into the path of a picture and its caption."""
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != 2:
        tabs = f"{len(cells) - 1} tabs in {shown([line])!r}"
        raise InputError(f"{where}: {tabs}; a line is name<TAB>caption")
    name, caption = cells
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        rule = "names are relative to the caption file and lead to nothing outside its folder"
        raise InputError(f"{where}: {name!r}: {rule}")
    if not os.path.isfile(folder / relative):  # Path.is_file() raises OSError for long names
        raise InputError(f"{where}: {name!r}: no such picture in {folder}")
    if not caption:
        raise InputError(f"{where}: {name!r} has an empty caption; each picture needs one")
    return folder / relative, caption
