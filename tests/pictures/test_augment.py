"""Pictures as model input: their scale, and changes drawn for seed, epoch and line alone."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from seq2see.batches import epoch_batches
from seq2see.errors import InputError
from seq2see.pictures.augment import DRAWS, Format, PictureExamples, cut_out, shift_and_flip
from seq2see.pictures.datasets import LabelledPictures, PictureCorpus, pictures
from seq2see.recipe.schema import AugmentConfig, TrainConfig
from seq2see.text.specials import SPECIALS

CHANNELS, HEIGHT, WIDTH = 3, 6, 8
ALL = AugmentConfig(shift=2, flip=True, cut_out=3)


def some(count: int = 7) -> LabelledPictures:
    generator = torch.Generator().manual_seed(5)
    pixels = torch.randint(
        0, 256, (count, CHANNELS, HEIGHT, WIDTH), generator=generator, dtype=torch.uint8
    )
    return pictures("train", pixels, torch.arange(count) % 4)


def format_of(these: LabelledPictures) -> Format:
    return Format.of(PictureCorpus(["a", "b b", "c", "ü"], these, these, {}))


def examples(key: str = "1/1", augment: AugmentConfig | None = ALL) -> PictureExamples:
    return PictureExamples(some(), format_of(some()), 12, augment, key)


def test_the_training_pictures_have_mean_0_and_deviation_1_in_each_channel() -> None:
    pixels = format_of(some()).normalise(some().pixels).double()
    assert pixels.mean((0, 2, 3)).abs().max() < 1e-5
    deviation = pixels.std((0, 2, 3), correction=0)
    torch.testing.assert_close(deviation, torch.ones(3).double(), rtol=0, atol=1e-5)


def test_one_colour_alone_gives_no_nan() -> None:
    black = pictures("train", torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2))
    assert torch.equal(format_of(black).normalise(black.pixels), torch.zeros(2, 1, 4, 4))


def test_the_format_is_saved_with_the_model(tmp_path: Path) -> None:
    format_of(some()).save(tmp_path)
    assert Format.load(tmp_path) == format_of(some())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read: No such file"),
        ("{", "does not describe a model's pictures: "),
        ("[]", "does not describe a model's pictures: "),
        ('{"shape": [1, 2]}', "does not describe a model's pictures: "),
        (
            '{"shape": [2, 4, 4], "mean": [0], "std": [1], "classes": ["a"]}',
            "shape, mean, std and classes do not fit",
        ),
        (
            '{"shape": [1, 4, 4], "mean": [0], "std": [0], "classes": ["a"]}',
            "shape, mean, std and classes do not fit",
        ),
        (
            '{"shape": [1, 4, 4], "mean": [0], "std": [1], "classes": []}',
            "shape, mean, std and classes do not fit",
        ),
    ],
)
def test_a_wrong_format_is_one_line(tmp_path: Path, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / "pictures.json").write_text(content)
    with pytest.raises(InputError) as caught:
        Format.load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'pictures.json'}: {says}")


def test_a_picture_is_as_long_as_its_patches_and_has_one_label() -> None:
    pictures = examples(augment=None)
    assert len(pictures) == 7
    assert pictures.lengths.tolist() == [[12 + 1, 1]] * 7  # the class token counts
    assert pictures.labels.tolist() == [len(SPECIALS) + n % 4 for n in range(7)]
    config = TrainConfig(steps=1, batch_tokens=13 * 3 - 1)
    batches = epoch_batches(pictures.lengths, config, epoch=1)
    assert sorted(line for batch in batches for line in batch) == list(range(7))
    assert max(map(len, batches)) == 2
    batch = pictures.batch([5, 2])
    assert batch.lines == [5, 2]
    assert torch.equal(batch.pixels, format_of(some()).normalise(some().pixels[[5, 2]]))
    assert batch.labels.tolist() == [5, 6] and batch.target_tokens == 2
    assert batch.targets is batch.labels
    assert format_of(some()).labels.words(batch.labels.tolist()) == ["b b", "c"]


def test_a_batch_moves_whole() -> None:
    batch = examples().batch([5, 2]).to(torch.device("meta"))
    assert batch.pixels.device.type == batch.labels.device.type == "meta"
    assert batch.lines == [5, 2]


def test_pictures_of_unknown_classes_make_a_batch() -> None:
    batch = format_of(some()).batch(some().pixels)
    assert torch.equal(batch.pixels, format_of(some()).normalise(some().pixels))
    assert batch.labels.shape == (7,)


def test_changes_depend_on_key_and_line_alone() -> None:
    together = examples().batch([3, 0, 6]).pixels
    alone = examples().batch([6]).pixels
    assert torch.equal(together[2], alone[0])
    assert torch.equal(together, examples().batch([3, 0, 6]).pixels)
    assert not torch.equal(together, examples("1/2").batch([3, 0, 6]).pixels)


def numbers(*rows: list[float]) -> Tensor:
    return torch.tensor([row + [0.0] * (DRAWS - len(row)) for row in rows])


def test_a_shift_moves_over_black_ground() -> None:
    pixels = some().pixels
    shift = AugmentConfig(shift=2)
    corners = shift_and_flip(pixels[:3], numbers([0.0, 0.0], [0.999, 0.999], [0.5, 0.5]), shift)
    assert torch.equal(corners[0, :, :-2, :-2], pixels[0, :, 2:, 2:])  # two up, two to the left
    assert corners[0, :, -2:].sum() == 0 and corners[0, :, :, -2:].sum() == 0
    assert (
        torch.equal(corners[1, :, 2:, 2:], pixels[1, :, :-2, :-2]) and corners[1, :, :2].sum() == 0
    )
    assert torch.equal(corners[2], pixels[2])
    assert shift_and_flip(pixels, numbers(*[[0.1]] * 7), AugmentConfig()) is pixels


def test_all_shifts_are_equally_likely() -> None:
    dot = torch.zeros(4000, 1, 5, 5, dtype=torch.uint8)
    dot[:, :, 2, 2] = 1
    draws = torch.rand(4000, DRAWS, generator=torch.Generator().manual_seed(1))
    shares = shift_and_flip(dot, draws, AugmentConfig(shift=1)).float().mean((0, 1))
    assert shares.sum() == pytest.approx(1) and (shares[1:4, 1:4] - 1 / 9).abs().max() < 0.02


def test_every_other_picture_is_mirrored() -> None:
    pixels = some().pixels
    draws = numbers([0, 0, 0.4], [0, 0, 0.6])
    mirrored, kept = shift_and_flip(pixels[:2], draws, AugmentConfig(flip=True))
    assert torch.equal(mirrored, pixels[0].flip(-1)) and torch.equal(kept, pixels[1])


def test_a_square_is_cut_out_in_the_mean_colour() -> None:
    ones = torch.ones(3, 2, HEIGHT, WIDTH)
    draws = numbers([0, 0, 0, 0.5, 0.5], [0, 0, 0, 0.0, 0.0], [0, 0, 0, 0.999, 0.999])
    middle, first, last = cut_out(ones, draws, 3)
    assert middle.sum() == 2 * (48 - 9) and middle[:, 2:5, 3:6].sum() == 0
    # At a corner, a part of the square lies outside.
    assert first.sum() == 2 * (48 - 4) and first[:, :2, :2].sum() == 0
    assert last.sum() == 2 * (48 - 4)
    assert cut_out(ones, numbers([0]), 0) is ones


def test_the_digest_depends_on_pixels_and_labels() -> None:
    pixels, labels = some().pixels, some().labels
    other = labels.clone()
    other[0] = 3
    digests = {
        pictures("a", *content).digest
        for content in ((pixels, labels), (pixels, other), (pixels.flip(0), labels))
    }
    assert len(digests) == 3
    assert pictures("b", pixels, labels).digest in digests
