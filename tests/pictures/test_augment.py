"""Pictures as a model sees them: the scale, and changes that hang on seed, epoch and line alone."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from seq2see.batches import plan
from seq2see.errors import InputError
from seq2see.pictures.augment import DRAWS, Format, Shown, collate_shown, cut_out, moved
from seq2see.pictures.datasets import LabelledPictures, PictureCorpus, pictures
from seq2see.recipe.schema import AugmentConfig, TrainConfig
from seq2see.text.vocab import SPECIALS

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


def shown(key: str = "1/1", augment: AugmentConfig | None = ALL) -> Shown:
    return Shown(some(), format_of(some()), 12, augment, key)


def test_the_training_pictures_have_mean_0_and_deviation_1_in_each_channel() -> None:
    normal = format_of(some()).normal(some().pixels).double()
    assert normal.mean((0, 2, 3)).abs().max() < 1e-5
    torch.testing.assert_close(
        normal.std((0, 2, 3), correction=0), torch.ones(3).double(), rtol=0, atol=1e-5
    )


def test_one_colour_alone_gives_no_nan() -> None:
    black = pictures("train", torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2))
    assert torch.equal(format_of(black).normal(black.pixels), torch.zeros(2, 1, 4, 4))


def test_the_format_is_saved_with_the_model(tmp_path: Path) -> None:
    format_of(some()).save(tmp_path)
    assert Format.load(tmp_path) == format_of(some())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read: No such file"),
        ("{", "does not say what the model's pictures are like: "),
        ("[]", "does not say what the model's pictures are like: "),
        ('{"shape": [1, 2]}', "does not say what the model's pictures are like: "),
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


def test_a_picture_is_so_many_patches_to_read_and_one_label_to_write() -> None:
    these = shown(augment=None)
    assert len(these) == 7 and [len(source) for source, _ in these] == [12] * 7
    assert [target for _, target in these] == [[len(SPECIALS) + n % 4] for n in range(7)]
    batches = plan(
        these, TrainConfig(steps=1, batch_tokens=13 * 2), epoch=1
    )  # the class token counts as </s> does
    assert (
        sorted(line for batch in batches for line in batch) == list(range(7))
        and max(map(len, batches)) == 2
    )
    batch = collate_shown(these, [5, 2])
    assert torch.equal(batch.source, format_of(some()).normal(some().pixels[[5, 2]]))
    assert batch.target_out.tolist() == [[5], [6]] and batch.target_tokens == 2
    named = format_of(some()).labels.words(batch.target_out[:, 0].tolist())
    assert named == ["b b", "c"]


def test_changes_hang_on_key_and_line_alone() -> None:
    together, alone = shown().batch([3, 0, 6]).source, shown().batch([6]).source
    assert torch.equal(together[2], alone[0])
    assert torch.equal(together, shown().batch([3, 0, 6]).source)
    assert not torch.equal(together, shown("1/2").batch([3, 0, 6]).source)


def numbers(*rows: list[float]) -> Tensor:
    return torch.tensor([row + [0.0] * (DRAWS - len(row)) for row in rows])


def test_a_shift_moves_over_black_ground() -> None:
    pixels = some().pixels
    shift = AugmentConfig(shift=2)
    corners = moved(pixels[:3], numbers([0.0, 0.0], [0.999, 0.999], [0.5, 0.5]), shift)
    assert torch.equal(corners[0, :, :-2, :-2], pixels[0, :, 2:, 2:])  # two up, two to the left
    assert corners[0, :, -2:].sum() == 0 and corners[0, :, :, -2:].sum() == 0
    assert (
        torch.equal(corners[1, :, 2:, 2:], pixels[1, :, :-2, :-2]) and corners[1, :, :2].sum() == 0
    )
    assert torch.equal(corners[2], pixels[2])
    assert moved(pixels, numbers(*[[0.1]] * 7), AugmentConfig()) is pixels


def test_every_shift_is_as_likely() -> None:
    dot = torch.zeros(4000, 1, 5, 5, dtype=torch.uint8)
    dot[:, :, 2, 2] = 1
    draws = torch.rand(4000, DRAWS, generator=torch.Generator().manual_seed(1))
    found = moved(dot, draws, AugmentConfig(shift=1)).float().mean((0, 1))
    assert found.sum() == pytest.approx(1) and (found[1:4, 1:4] - 1 / 9).abs().max() < 0.02


def test_every_other_picture_is_mirrored() -> None:
    pixels = some().pixels
    found = moved(pixels[:2], numbers([0, 0, 0.4], [0, 0, 0.6]), AugmentConfig(flip=True))
    assert torch.equal(found[0], pixels[0].flip(-1)) and torch.equal(found[1], pixels[1])


def test_a_square_is_cut_out_in_the_mean_colour() -> None:
    ones = torch.ones(3, 2, HEIGHT, WIDTH)
    found = cut_out(
        ones, numbers([0, 0, 0, 0.5, 0.5], [0, 0, 0, 0.0, 0.0], [0, 0, 0, 0.999, 0.999]), 3
    )
    assert found[0].sum() == 2 * (48 - 9) and found[0, :, 2:5, 3:6].sum() == 0
    assert (
        found[1].sum() == 2 * (48 - 4) and found[1, :, :2, :2].sum() == 0
    )  # half of it lies outside
    assert found[2].sum() == 2 * (48 - 4)
    assert cut_out(ones, numbers([0]), 0) is ones


def test_a_digest_tells_pictures_apart() -> None:
    pixels, labels = some().pixels, some().labels
    other = labels.clone()
    other[0] = 3
    digests = {
        pictures("a", *each).digest
        for each in ((pixels, labels), (pixels, other), (pixels.flip(0), labels))
    }
    assert len(digests) == 3
    assert pictures("b", pixels, labels).digest in digests
