"""Captioned pictures: fixed and disjoint splits, classes as captions, one-line errors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import captioned, datasets
from seq2see.pictures.captioned import CaptionedPictures
from seq2see.recipe.schema import DataConfig

HEIGHT, WIDTH = 4, 6


def of(**keys: object) -> DataConfig:
    return DataConfig.model_validate({"train": "."} | keys)


def draw(folder: Path, shades: range, copies: int = 1, size: tuple[int, int] = (6, 4)) -> None:
    """Write grey pictures in order of their shades, captioned with them, and their captions."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for shade in shades:
        for copy in range(copies):
            name = f"{shade}-{copy}.png"
            Image.new("L", size, shade).save(folder / name)
            lines.append(f"{name}\tshade {shade}\n")
    (folder / "captions.tsv").write_text("".join(lines), encoding="utf-8")


def assert_captioned(part: CaptionedPictures) -> None:
    """Check that shuffled and split pictures have kept their captions."""
    assert len(part) == len(part.pixels) > 0
    shades = part.pixels.flatten(1)[:, 0].tolist()
    assert part.captions == [f"shade {shade}" for shade in shades]


def test_one_folder_is_split_by_pixels_so_that_copies_stay_together(tmp_path: Path) -> None:
    draw(tmp_path, range(100), copies=2)
    corpus = captioned.load(of(), tmp_path)
    parts = [corpus.train, corpus.val, corpus.tests["test"]]
    assert [len(part) for part in parts] == [160, 20, 20]
    assert [part.name for part in parts] == ["train", "val", "test"]
    shades = [set(part.captions) for part in parts]
    assert len(set.union(*shades)) == sum(map(len, shades)) == 100
    for part in parts:
        assert_captioned(part)
    assert corpus.train.pixels.shape == (160, 1, HEIGHT, WIDTH)


def test_the_order_of_the_lines_changes_nothing(tmp_path: Path) -> None:
    draw(tmp_path, range(40))
    first = captioned.load(of(), tmp_path)
    file = tmp_path / "captions.tsv"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(reversed(lines)), encoding="utf-8")
    second = captioned.load(of(), tmp_path)
    assert (first.train.digest, first.val.digest) == (second.train.digest, second.val.digest)


def test_given_parts_are_kept_and_missing_ones_are_a_tenth_of_train(tmp_path: Path) -> None:
    draw(tmp_path / "train", range(50))
    draw(tmp_path / "val", range(60, 63))
    corpus = captioned.load(of(), tmp_path)
    assert [len(corpus.train), len(corpus.val), len(corpus.tests["test"])] == [45, 3, 5]
    assert {*corpus.val.captions} == {"shade 60", "shade 61", "shade 62"}
    draw(tmp_path / "test", range(70, 77))
    corpus = captioned.load(of(size=8, colour=True), tmp_path)
    assert [len(corpus.train), len(corpus.val), len(corpus.tests["test"])] == [50, 3, 7]
    assert corpus.train.pixels.shape[1:] == (3, 8, 8)
    for part in (corpus.train, corpus.val, corpus.tests["test"]):
        assert_captioned(part)


def test_the_first_pictures_are_a_fair_sample(tmp_path: Path) -> None:
    draw(tmp_path, range(200))
    limited = captioned.load(of(limit=20), tmp_path)
    assert_captioned(limited.train)
    assert len(limited.train) == 20
    assert limited.train.pixels.float().mean() == pytest.approx(100, abs=40)
    whole = captioned.load(of(), tmp_path)
    assert torch.equal(limited.train.pixels, whole.train.pixels[:20])
    assert limited.val.digest == whole.val.digest


def test_the_digest_depends_on_pixels_and_captions() -> None:
    pixels = torch.arange(24, dtype=torch.uint8).view(2, 1, 3, 4)
    digests = {
        captioned.pictures("train", pixels, ["a b", "c"]).digest,
        captioned.pictures("train", pixels, ["a", "b c"]).digest,
        captioned.pictures("train", pixels.flip(0), ["a b", "c"]).digest,
        captioned.pictures("train", pixels.view(2, 1, 4, 3), ["a b", "c"]).digest,
    }
    assert len(digests) == 4
    assert captioned.pictures("val", pixels.clone(), ["a b", "c"]).digest in digests
    with pytest.raises(ValueError, match=r"^2 pictures and 1 captions must pair up$"):
        captioned.pictures("train", pixels, ["a"])


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffa.png\tein roter Kreis\nb/c.png\t两个 stars\n",
        "a.png\tein roter Kreis\r\nb/c.png\t两个 stars\r\n",
        "\n./a.png\t ein roter Kreis \n\n b/c.png\t两个 stars\n\n",
    ],
    ids=["byte order mark", "CR LF", "blank lines and spaces"],
)
def test_caption_files_of_other_programs_are_read(tmp_path: Path, content: str) -> None:
    (tmp_path / "b").mkdir()
    for name in ("a.png", "b/c.png"):
        Image.new("L", (3, 2)).save(tmp_path / name)
    (tmp_path / "captions.tsv").write_bytes(content.encode())
    captions = captioned.read_captions(tmp_path)
    assert captions == {
        tmp_path / "a.png": "ein roter Kreis",
        tmp_path / "b" / "c.png": "两个 stars",
    }


LONG_NAME = "a red circle " * 50


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("b.png", "0 tabs in 'b.png'; a line is name<TAB>caption"),
        ("b.png\tred\tcircle", "2 tabs in 'b.png red circle'; a line is name<TAB>caption"),
        ("b.png\t ", "'b.png' has an empty caption; each picture needs one"),
        ("./a.png\tblue", "'a.png' again; a picture has one caption"),
        ("../b.png\tred", "'../b.png': names are relative to the caption file and lead to "),
        ("x/../../b.png\tred", "'x/../../b.png': names are relative to the caption file and "),
        ("/b.png\tred", "'/b.png': names are relative to the caption file and lead to "),
        ("none.png\tred", "'none.png': no such picture in "),
        ("\tred", "'': no such picture in "),
        (f"{LONG_NAME}\tb.png", f"'{LONG_NAME.strip()}': no such picture in "),
    ],
)
def test_what_is_wrong_with_a_line_is_told_with_its_number(
    tmp_path: Path, line: str, rule: str
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for path in (folder / "a.png", folder / "b.png", tmp_path / "b.png"):
        Image.new("L", (3, 2)).save(path)
    file = folder / "captions.tsv"
    file.write_text(f"\na.png\tred\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        captioned.load(of(), folder)
    message = str(caught.value)
    assert message.startswith(f"{file}:3: {rule}") and "\n" not in message


@given(
    content=st.binary(max_size=40)
    | st.lists(st.sampled_from(["a.png", "b.png", "\t", "\n", "\r\n", "red", "\ufeff", "\0"]))
    .map("".join)
    .map(str.encode)
)
@example(content=b"")
@example(content=b"a.png\tred\n\x00")
@example(content="a.png\tred\n".encode("utf-16"))
def test_any_caption_file_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "captioned"
    folder.mkdir(exist_ok=True)
    Image.new("L", (3, 2)).save(folder / "a.png")
    file = folder / "captions.tsv"
    file.write_bytes(content)
    try:
        captions = captioned.read_captions(folder)
    except InputError as error:
        assert str(error).startswith(f"{file}:") and "\n" not in str(error)
        return
    assert [*captions] == [folder / "a.png"] and captions[folder / "a.png"].strip()


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"not a picture"])
def test_a_broken_picture_is_named(tmp_path: Path, content: bytes) -> None:
    draw(tmp_path, range(12))
    (tmp_path / "5-0.png").write_bytes(content)
    message = refusal(tmp_path)
    assert message.startswith(f"{tmp_path / '5-0.png'}: ") and "\n" not in message


def refusal(folder: Path, **keys: object) -> str:
    with pytest.raises(InputError) as caught:
        captioned.load(of(**keys), folder)
    return str(caught.value)


def test_what_is_wrong_with_a_folder_is_one_line(tmp_path: Path) -> None:
    assert "none: no such folder for data.train; " in refusal(tmp_path, train="none")
    missing = "has none of captions.tsv, a folder train/, and train-images-idx3-ubyte"
    assert refusal(tmp_path) == f"{tmp_path}: {missing}"
    (tmp_path / "train").mkdir()
    no_file = "no such file; it gives each picture a caption, in lines name<TAB>caption"
    assert refusal(tmp_path) == f"{tmp_path / 'train' / 'captions.tsv'}: {no_file}"
    draw(tmp_path / "train", range(3))
    assert "too few pictures to split off val; provide a folder val/" in refusal(tmp_path)
    (tmp_path / "val").mkdir()
    assert refusal(tmp_path) == f"{tmp_path / 'val' / 'captions.tsv'}: {no_file}"
    draw(tmp_path / "val", range(1), size=(9, 5))
    sizes = "9 × 5 pixels, and train has 6 × 4; data.size scales all to one size"
    assert refusal(tmp_path) == f"{tmp_path / 'val'}: {sizes}"
    draw(tmp_path, range(3))
    assert refusal(tmp_path).endswith(
        f"captions.tsv exists, too; captions.tsv belongs either in {tmp_path} or in its parts"
    )


def test_classes_are_captions(tmp_path: Path) -> None:
    for label, (name, count) in enumerate({"a cat": 30, "dog": 20}.items()):
        (tmp_path / "train" / name).mkdir(parents=True)
        for number in range(count):
            pixels = np.full((HEIGHT, WIDTH), number, dtype=np.uint8)
            pixels[0, 0] = label
            Image.fromarray(pixels).save(tmp_path / "train" / name / f"{number}.png")
    labelled = datasets.load(of(limit=7), tmp_path)
    corpus = captioned.load(of(limit=7), tmp_path)
    assert [len(corpus.train), len(corpus.val), len(corpus.tests["test"])] == [7, 5, 5]

    def names(pixels: Tensor) -> list[str]:
        return [["a cat", "dog"][label] for label in pixels[:, 0, 0, 0].tolist()]

    for part in (corpus.train, corpus.val, corpus.tests["test"]):
        assert part.captions == names(part.pixels)
    assert torch.equal(corpus.train.pixels, labelled.train.pixels)
    assert corpus.train.digest != labelled.train.digest


def test_digits_are_captioned_with_their_names() -> None:
    pytest.importorskip("sklearn")
    corpus = captioned.load(DataConfig(corpus="digits"))
    assert {*corpus.train.captions} == {*map(str, range(10))}
    assert len(corpus.tests["test"]) == 360
