"""Labelled pictures: fixed, fair and disjoint splits; one-line errors for incomplete folders."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import datasets
from seq2see.recipe.schema import DataConfig


def write_idx(
    folder: Path, part: str, pixels: Tensor, labels: Tensor, packed: bool = False
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in (
        (f"{part}-images-idx3-ubyte", pixels),
        (f"{part}-labels-idx1-ubyte", labels),
    ):
        header = bytes([0, 0, 8, tensor.dim()]) + b"".join(
            size.to_bytes(4) for size in tensor.shape
        )
        content = header + tensor.to(torch.uint8).numpy().tobytes()
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)


def drawn(count: int, height: int = 3, width: int = 5) -> Tensor:
    return torch.randint(
        0, 256, (count, height, width), generator=torch.Generator().manual_seed(count)
    )


def write_files(folder: Path, counts: dict[str, int], first: int = 0) -> None:
    """Write the given number of different grey pictures for each class."""
    for label, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(first, first + count):
            pixels = np.full((4, 6), number % 256, dtype=np.uint8)
            pixels[0, 0] = label
            Image.fromarray(pixels).save(folder / name / f"{number:03}.png")


def contents(pixels: Tensor) -> set[bytes]:
    return {picture.numpy().tobytes() for picture in pixels}


def assert_disjoint(parts: list[Tensor]) -> None:
    first, second, third = map(contents, parts)
    assert first and second and third
    assert not first & second and not first & third and not second & third


def of(**keys: object) -> DataConfig:
    return DataConfig.model_validate(keys)


def test_digits_are_split_by_class_without_overlap() -> None:
    pytest.importorskip("sklearn")
    corpus = datasets.load(of(corpus="digits"))
    parts = [corpus.train, corpus.val, corpus.tests["test"]]
    assert [len(part) for part in parts] == [1258, 179, 360] and len(corpus.classes) == 10
    assert corpus.train.pixels.shape[1:] == (1, 8, 8) and corpus.train.pixels.max() == 255
    for part, share in zip(parts, (0.7, 0.1, 0.2), strict=True):
        shares = part.labels.bincount() / sum(other.labels.bincount() for other in parts)
        assert (shares - share).abs().max() < 0.01
    assert_disjoint([part.pixels for part in parts])
    assert datasets.load(of(corpus="digits")).train.digest == corpus.train.digest
    with pytest.raises(
        InputError, match=r"^--data \.: data\.corpus 'digits' is embedded and reads no files$"
    ):
        datasets.load(of(corpus="digits"), Path())


def test_a_split_depends_on_the_pictures_and_not_on_their_order() -> None:
    pixels, labels = drawn(60)[:, None], torch.arange(60) % 3
    pixels[9], labels[9] = pixels[0], labels[0]  # a copy
    parts = datasets.split(pixels, labels, {"val": 0.2, "test": 0.3})
    assert sorted(torch.cat(list(parts.values())).tolist()) == list(range(60))
    assert [len(parts[name]) for name in ("val", "test", "train")] == pytest.approx(
        [12, 18, 30], abs=2
    )
    shuffled = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    again = datasets.split(pixels[shuffled], labels[shuffled], {"val": 0.2, "test": 0.3})
    for name, indices in parts.items():
        assert contents(pixels[indices]) == contents(pixels[shuffled][again[name]])
        assert len({0, 9} & set(indices.tolist())) != 1


def test_copies_under_other_labels_stay_together() -> None:
    pixels = drawn(100)[:, None].repeat(3, 1, 1, 1)  # every picture once per class
    labels = torch.arange(3).repeat_interleave(100)
    # The first class has half of its pictures only.
    parts = datasets.split(pixels[50:], labels[50:], {"val": 0.2, "test": 0.3})
    assert_disjoint([pixels[50:][indices] for indices in parts.values()])


@pytest.mark.parametrize("packed", [False, True])
def test_the_last_twelfth_of_an_idx_train_is_val(tmp_path: Path, packed: bool) -> None:
    pixels, labels = drawn(24), torch.arange(24) % 7
    write_idx(tmp_path, "train", pixels, labels, packed)
    write_idx(tmp_path, "t10k", drawn(5), torch.zeros(5), packed)
    corpus = datasets.load(of(train="."), tmp_path)
    assert corpus.classes == list("0123456") and [len(corpus.train), len(corpus.val)] == [22, 2]
    assert torch.equal(corpus.val.pixels[:, 0], pixels[22:]) and corpus.val.labels.tolist() == [
        1,
        2,
    ]
    assert torch.equal(corpus.tests["test"].pixels[:, 0], drawn(5))
    limited = datasets.load(of(train=".", limit=4), tmp_path)
    assert len(limited.train) == 4 and limited.val.digest == corpus.val.digest
    assert limited.train.digest != corpus.train.digest
    fashion = datasets.load(of(corpus="fashion"), tmp_path)
    assert fashion.classes[0] == "T-shirt/top" and len(fashion.classes) == 10


def test_fashion_is_found_by_its_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "FASHION_SYSTEM", tmp_path / "system")
    monkeypatch.setenv("SEQ2SEE_DATA", str(tmp_path))
    with pytest.raises(
        InputError,
        match=r"^data\.corpus 'fashion': give the folder of its four IDX files with --data",
    ):
        datasets.load(of(corpus="fashion"))
    for name in ("system", "fashion-mnist"):
        write_idx(tmp_path / name, "train", drawn(12), torch.zeros(12))
        write_idx(tmp_path / name, "t10k", drawn(2 + len(name)), torch.zeros(2 + len(name)))
    assert len(datasets.load(of(corpus="fashion")).tests["test"]) == 15
    monkeypatch.delenv("SEQ2SEE_DATA")
    assert len(datasets.load(of(corpus="fashion")).tests["test"]) == 8


def test_what_is_wrong_with_idx_files_is_one_line(tmp_path: Path) -> None:
    def refusal(**keys: object) -> str:
        with pytest.raises(InputError) as caught:
            datasets.load(of(**keys), tmp_path)
        return str(caught.value)

    assert refusal(corpus="fashion") == f"{tmp_path}: has no train-images-idx3-ubyte, plain or .gz"
    write_idx(tmp_path, "train", drawn(24), torch.arange(24))
    assert refusal(corpus="fashion") == f"{tmp_path}: has no t10k-images-idx3-ubyte, plain or .gz"
    write_idx(tmp_path, "t10k", drawn(3), torch.zeros(4))
    assert "has 3 pictures and" in refusal(train=".") and refusal(train=".").endswith(
        "4 labels; they must pair up"
    )
    write_idx(tmp_path, "t10k", drawn(3, 5, 3), torch.zeros(3))
    assert "the pictures of train and t10k have 5 × 3 and 3 × 5 pixels" in refusal(train=".")
    write_idx(tmp_path, "t10k", drawn(3), torch.zeros(3))
    assert "label 23; the labels of 10 classes are 0 to 9" in refusal(corpus="fashion")
    write_idx(tmp_path, "train", drawn(11), torch.zeros(11))
    assert "11 training pictures; at least 12 are needed" in refusal(train=".")


def test_a_folder_brings_its_parts_or_gives_a_tenth_for_each(tmp_path: Path) -> None:
    write_files(tmp_path / "train", {"cat": 30, "dog": 20})
    corpus = datasets.load(of(train="."), tmp_path)
    assert corpus.classes == ["cat", "dog"] and corpus.train.pixels.shape[1:] == (1, 4, 6)
    sizes = [
        part.labels.bincount().tolist() for part in (corpus.train, corpus.val, corpus.tests["test"])
    ]
    assert sizes == [[24, 16], [3, 2], [3, 2]]
    write_files(tmp_path / "val", {"cat": 1, "dog": 2}, first=100)
    assert len(datasets.load(of(train="."), tmp_path).val) == 3
    write_files(tmp_path / "test", {"cat": 2, "dog": 2}, first=200)
    corpus = datasets.load(of(train=str(tmp_path), size=8, colour=True))
    assert [len(corpus.train), len(corpus.val), len(corpus.tests["test"])] == [50, 3, 4]
    assert corpus.train.pixels.shape[1:] == (3, 8, 8)


def test_sizes_that_differ_are_refused_and_scaled_only_if_asked(tmp_path: Path) -> None:
    write_files(tmp_path / "train", {"cat": 30, "dog": 20})
    for name in ("cat", "dog"):
        (tmp_path / "val" / name).mkdir(parents=True)
        Image.new("L", (9, 5)).save(tmp_path / "val" / name / "a.png")
    with pytest.raises(InputError) as caught:
        datasets.load(of(train="."), tmp_path)
    rule = "9 × 5 pixels, and train has 6 × 4; data.size scales all to one size"
    assert str(caught.value) == f"{tmp_path / 'val'}: {rule}"
    assert datasets.load(of(train=".", size=8), tmp_path).val.pixels.shape == (2, 1, 8, 8)
    write_idx(tmp_path, "train", drawn(30), torch.arange(30) % 2)
    with pytest.raises(
        InputError, match=r": IDX files; data\.size and data\.colour are for picture files$"
    ):
        datasets.load(of(train=".", size=8), tmp_path)


def test_the_first_pictures_of_a_folder_are_a_fair_sample(tmp_path: Path) -> None:
    write_files(tmp_path / "train", {"cat": 250, "dog": 250})
    split_off = datasets.load(of(train="."), tmp_path)
    assert datasets.load(of(train=".", limit=10), tmp_path).train.labels.bincount().min() >= 2
    write_files(tmp_path / "val", {"cat": 100, "dog": 100})
    given = datasets.load(of(train="."), tmp_path).val
    assert len(given) == 200
    for part in (split_off.train, split_off.val, split_off.tests["test"], given):
        assert part.labels[:20].float().mean() == pytest.approx(0.5, abs=0.25)
        of_dogs = part.pixels[:, 0, 0, 0] == 1
        assert torch.equal(of_dogs.long(), part.labels)  # pictures keep their labels


def test_what_is_wrong_with_a_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none: no such folder for data\.train; paths are relative to --data"
    ):
        datasets.load(of(train="none"), tmp_path)
    with pytest.raises(
        InputError,
        match=r"has neither a folder train/ with one folder per class, nor train-images-idx3",
    ):
        datasets.load(of(train="."), tmp_path)
    write_files(tmp_path / "train", {"cat": 2, "dog": 2})
    with pytest.raises(
        InputError, match="too few pictures to split off val; provide a folder val/"
    ):
        datasets.load(of(train="."), tmp_path)
