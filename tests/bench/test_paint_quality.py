"""Quality of painted pictures: real ones are right, noise is not, and changes are tested."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seq2see.bench.paint_quality import averaged, change, class_test, mcnemar, scene_test
from seq2see.errors import InputError
from seq2see.pictures import captioned
from seq2see.pictures.augment import Format
from seq2see.pictures.prompted import ScenePictures, StoredPictures
from seq2see.pictures.scenes import Drawings

counts = st.integers(0, 60)


def test_the_corpus_has_its_own_quality_and_noise_has_none() -> None:
    pytest.importorskip("scipy", reason="the judge of scenes needs SciPy")
    scenes = ScenePictures(Drawings("test", 9, single=True))
    test = scene_test(scenes, [0, 3, 4, 8])
    assert test.prompts == scenes.read([0, 3, 4, 8]).prompts and test.seeds == [0, 3, 4, 8]
    real = scenes.read([0, 3, 4, 8]).pixels.permute(0, 2, 3, 1).numpy()
    quality = test.measure(real)
    assert quality.right == [True] * 4 and quality.accuracy == 1
    assert quality.frechet_distance == pytest.approx(0, abs=1e-6)
    assert quality.attributes is not None and quality.attributes["shape"]["accuracy"] == 1
    noise = np.random.default_rng(1).integers(0, 256, real.shape, dtype=np.uint8)
    assert test.measure(noise).accuracy == 0 and test.measure(noise).frechet_distance > 0.1
    swapped = test.measure(real[[0, 2, 1, 3]])
    assert swapped.right == [True, False, False, True]
    assert swapped.frechet_distance == pytest.approx(0, abs=1e-6)  # the same pictures


def test_pictures_are_averaged_down() -> None:
    pixels = torch.zeros(2, 3, 16, 32, dtype=torch.uint8)
    pixels[1, 2, :2, :4] = 255
    few = averaged(pixels)
    assert few.shape == (2, 3 * 8 * 8) and few.dtype == torch.float32
    assert few.sum() == few[1, 2 * 64] == 1


class BrightOrDark:
    """A classifier whose feature is the mean of the pixels."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.format = Format(shape, [0.5], [0.2], ["bright", "dark"])

    def features(self, pixels: Tensor) -> Tensor:
        return pixels.float().flatten(1).mean(1, keepdim=True)

    def labels(self, features: Tensor) -> list[str]:
        return ["bright" if mean > 128 else "dark" for mean in features[:, 0].tolist()]


def test_a_classifier_judges_pictures_by_class() -> None:
    shades = torch.tensor([250, 5, 240, 20, 230], dtype=torch.uint8)
    pixels = shades[:, None, None, None].expand(5, 1, 4, 6)
    captions = ["bright", "dark", "bright", "dark", "bright"]
    pictures = StoredPictures(captioned.pictures("test", pixels, captions))
    test = class_test(pictures, [0, 1, 3], BrightOrDark((1, 4, 6)), "runs/shades")
    assert test.prompts == ["bright", "dark", "dark"] and test.judge == "the classifier runs/shades"
    painted = pixels[[0, 1, 2]].permute(0, 2, 3, 1).numpy()
    quality = test.measure(painted)
    assert quality.right == [True, True, False] and quality.attributes is None
    mean, deviation = shades.float().mean(), shades.float().std()
    shift = (torch.tensor([250.0, 5, 240]).mean() - mean).square()
    spread = (torch.tensor([250.0, 5, 240]).std() - deviation).square()
    assert quality.frechet_distance == pytest.approx(float(shift + spread), rel=1e-5)
    with pytest.raises(InputError, match="test: pictures of 4 × 6 pixels × 1; the classifier was"):
        class_test(pictures, [0, 1], BrightOrDark((1, 6, 4)), "runs/shades")
    with pytest.raises(InputError, match="--test-pictures 1: a Fréchet distance needs at least 2"):
        class_test(pictures, [2], BrightOrDark((1, 4, 6)), "runs/shades")


def test_changes_are_counted_in_both_directions() -> None:
    before = [True] * 9 + [False] * 4
    after = [True] * 4 + [False] * 5 + [True] + [False] * 3
    changed = change(before, after)
    assert (changed.became_wrong, changed.became_right) == (5, 1)
    assert changed.p_value == mcnemar(5, 1) == 2 * (1 + 6) / 64
    assert change(before, before).p_value == 1


@given(counts, counts)
def test_mcnemars_test_is_a_binomial_test(first: int, second: int) -> None:
    binomtest = pytest.importorskip("scipy.stats").binomtest
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(expected, rel=1e-9)
