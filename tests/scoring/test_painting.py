"""Figures for generated pictures: closed forms, published definitions, anchors, refusals."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import captioned
from seq2see.pictures.augment import Format
from seq2see.pictures.captioned import CaptionedPictures
from seq2see.scoring import painting
from seq2see.scoring.painting import fidelity_and_diversity, frechet_distance

seeds = st.integers(0, 2**31)


def normal(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def gaussian(seed: int, count: int, mean: Tensor, deviations: Tensor) -> Tensor:
    """Draw features whose own mean and diagonal covariance are exactly the given ones."""
    drawn = normal(seed, count, len(mean))
    white = torch.linalg.qr(drawn - drawn.mean(0)).Q * (count - 1) ** 0.5
    return mean + white * deviations


def rotation(seed: int, width: int) -> Tensor:
    return torch.linalg.qr(normal(seed, width, width)).Q


def eigen_distance(first: Tensor, second: Tensor) -> float:
    """The Fréchet distance by eigenvalues of C₁^½ C₂ C₁^½."""
    one, other = first.T.cov(), second.T.cov()
    values, vectors = torch.linalg.eigh(one)
    root = vectors @ values.clamp(min=0).sqrt().diag() @ vectors.T
    common = torch.linalg.eigvalsh(root @ other @ root).clamp(min=0).sqrt().sum()
    shift = (first.mean(0) - second.mean(0)).square().sum()
    return float(shift + one.trace() + other.trace() - 2 * common)


@given(seeds, st.floats(0.01, 10), st.floats(0.01, 10))
def test_the_distance_of_diagonal_gaussians_has_a_closed_form(
    seed: int, scale: float, other_scale: float
) -> None:
    means, deviations = normal(seed, 2, 4), normal(seed + 1, 2, 4).abs()
    first = gaussian(seed + 2, 23, means[0], scale * deviations[0])
    second = gaussian(seed + 3, 17, means[1], other_scale * deviations[1])
    shift = (means[0] - means[1]).square().sum()
    spread = (scale * deviations[0] - other_scale * deviations[1]).square().sum()
    assert frechet_distance(first, second) == pytest.approx(float(shift + spread), rel=1e-9)


@given(seeds)
def test_the_distance_is_a_symmetric_one_of_sets_that_rotation_preserves(seed: int) -> None:
    first, second = normal(seed, 19, 5), normal(seed + 1, 13, 5) * 2 + 1
    distance = frechet_distance(first, second)
    assert distance > 0.1
    assert frechet_distance(second, first) == pytest.approx(distance, rel=1e-9)
    assert frechet_distance(first.flip(0), second) == pytest.approx(distance, rel=1e-9)
    turn = rotation(seed + 2, 5)
    turned = frechet_distance(first @ turn + 3, second @ turn + 3)
    assert turned == pytest.approx(distance, rel=1e-9)
    assert frechet_distance(7 * first, 7 * second) == pytest.approx(49 * distance, rel=1e-9)


@given(seeds, st.sampled_from([3, 30]))  # of 3 pictures, the covariance is singular
def test_equal_sets_have_distance_0(seed: int, count: int) -> None:
    features = normal(seed, count, 6) * 100
    assert 0 <= frechet_distance(features, features.flip(0)) < 1e-9


@given(seeds, st.sampled_from([4, 40]))
def test_the_distance_is_that_of_eigenvalues(seed: int, count: int) -> None:
    mixed = normal(seed, 7, 7)
    first, second = normal(seed + 1, count, 7) @ mixed, normal(seed + 2, 29, 7)
    expected = eigen_distance(first, second)
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-6)


def test_singular_covariances_keep_their_digits() -> None:
    features = normal(1, 5, 200).float()  # in 4 of 200 directions
    copy = features.clone()
    copy[:, 0] += 1e-3
    assert frechet_distance(features, copy) == pytest.approx(1e-6, rel=1e-3)
    assert abs(eigen_distance(features.double(), copy.double()) - 1e-6) > 1e-8


def test_sets_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^features have widths 4 and 3; they must be equal$"):
        frechet_distance(torch.zeros(5, 4), torch.zeros(5, 3))
    with pytest.raises(InputError, match=r"^1 pictures; a comparison of two sets needs 2 in each$"):
        frechet_distance(torch.zeros(5, 3), torch.zeros(1, 3))
    with pytest.raises(InputError, match=r"^6 pictures; a comparison of two sets needs 7 in each$"):
        fidelity_and_diversity(torch.zeros(6, 3), torch.zeros(9, 3))


def definitions(real: Tensor, generated: Tensor, k: int) -> dict[str, float]:
    """Naeem et al. (2020), equations 1 to 4."""

    def reach(features: Tensor) -> Tensor:  # the first neighbour is the picture itself
        return torch.cdist(features, features).sort(dim=1).values[:, k]

    distances = torch.cdist(real, generated)  # (M, N)
    in_real = distances < reach(real)[:, None]
    in_generated = distances < reach(generated)
    return {
        "precision": float(in_real.any(0).double().mean()),
        "recall": float(in_generated.any(1).double().mean()),
        "density": float(in_real.double().sum(0).mean()) / k,
        "coverage": float(in_real.any(1).double().mean()),
    }


@settings(deadline=None)
@given(seeds, st.integers(1, 6), st.floats(0.3, 3))
def test_fidelity_and_diversity_follow_their_definitions(seed: int, k: int, scale: float) -> None:
    pytest.importorskip("prdc")
    real, generated = normal(seed, 31, 3), normal(seed + 1, 17, 3) * scale
    figures = fidelity_and_diversity(real, generated, k)
    assert figures == pytest.approx(definitions(real, generated, k))


def test_fidelity_falls_with_outliers_and_diversity_with_copies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("prdc")
    real, alike = normal(1, 200, 2).float(), normal(2, 150, 2).float()
    good = fidelity_and_diversity(real, alike)
    assert min(good.values()) > 0.8
    outliers = torch.cat([alike[:75], alike[75:] + 100])
    assert fidelity_and_diversity(real, outliers)["precision"] < 0.6
    copies = alike[:3].repeat(50, 1) + 1e-3 * alike
    monotonous = fidelity_and_diversity(real, copies)
    assert monotonous["precision"] > 0.8 and monotonous["coverage"] < 0.3
    assert monotonous["recall"] < 0.1
    assert capsys.readouterr().out == ""  # which is for JSON


def test_without_prdc_its_name_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prdc", None)
    with pytest.raises(InputError, match="need prdc: pip install prdc"):
        fidelity_and_diversity(torch.zeros(9, 3), torch.zeros(9, 3))


def verdict(
    colour: bool | None, shape: bool, size: bool | None, count: bool, relation: bool | None
) -> Any:
    judge = pytest.importorskip("seq2see.pictures.scenes.judge")
    return judge.Verdict(colour, shape, size, count, relation, ())


def test_attributes_are_counted_where_prompts_say_them() -> None:
    verdicts = [
        verdict(True, True, None, True, None),
        verdict(False, True, None, True, None),
        verdict(True, False, None, True, False),
        verdict(None, True, None, True, True),
    ]
    figures = painting.prompt_accuracy(verdicts)
    assert figures == {
        "accuracy": 0.5,
        "right": 2,
        "prompts": 4,
        "attributes": {
            "colour": {"accuracy": pytest.approx(2 / 3), "right": 2, "prompts": 3},
            "shape": {"accuracy": 0.75, "right": 3, "prompts": 4},
            "count": {"accuracy": 1.0, "right": 4, "prompts": 4},
            "relation": {"accuracy": 0.5, "right": 1, "prompts": 2},
        },
    }
    assert painting.prompt_lines(figures) == [
        "50.00% of 4 prompts right in all attributes",
        "  colour    66.67% of 3 that say it",
        "  shape     75.00% of 4 that say it",
        "  count    100.00% of 4 that say it",
        "  relation  50.00% of 2 that say it",
    ]
    with pytest.raises(InputError, match=r"^0 pictures; prompt accuracy needs at least one$"):
        painting.prompt_accuracy([])


said_or_not = st.sampled_from([True, False, None])


@given(st.lists(st.tuples(said_or_not, st.booleans(), said_or_not, st.booleans(), said_or_not)))
def test_no_attribute_is_right_less_often_than_all_of_them(rows: list[tuple[Any, ...]]) -> None:
    rows.append((True, True, True, True, True))
    figures = painting.prompt_accuracy([verdict(*row) for row in rows])
    wrong = figures["prompts"] - figures["right"]
    shares = figures["attributes"].values()
    by_attribute = [share["prompts"] - share["right"] for share in shares]
    assert len(by_attribute) == 5 and max(by_attribute) <= wrong <= sum(by_attribute)


HEIGHT, WIDTH = 2, 3
CLASSES = ["dark", "bright"]


class Brightness:
    """Classifier by brightness, whose features are the pixels."""

    format = Format((1, HEIGHT, WIDTH), [0.5], [0.2], CLASSES)

    def features(self, pixels: Tensor) -> Tensor:
        return pixels.flatten(1).float() / 255

    def labels(self, features: Tensor) -> list[str]:
        return [CLASSES[int(mean > 0.5)] for mean in features.mean(1).tolist()]


def drawn(name: str, seed: int, captions: Sequence[str]) -> CaptionedPictures:
    """Draw pictures of one shade, roughly, that follow their captions."""
    middles = torch.tensor([60.0 if caption == "dark" else 190.0 for caption in captions])
    pixels = middles[:, None, None, None] + 10 * normal(seed, len(captions), 1, HEIGHT, WIDTH)
    return captioned.pictures(name, pixels.to(torch.uint8), list(captions))


def test_generated_pictures_stand_between_real_ones_and_noise() -> None:
    pytest.importorskip("prdc")
    good = drawn("generated", 1, CLASSES * 20)
    # One in eight follows another prompt than its own.
    pixels = good.pixels.clone()
    pixels[::8] = 255 - pixels[::8]
    generated = captioned.pictures("generated", pixels, good.captions)
    held_out, others = drawn("test", 2, CLASSES * 25), drawn("val", 3, CLASSES * 30)
    report = painting.class_report(Brightness(), generated, held_out, others)
    real, noise = report["anchors"]["real"], report["anchors"]["noise"]
    assert report["accuracy"] == 35 / 40 and real["accuracy"] == 1
    assert 0.3 < noise["accuracy"] < 0.7
    assert real["frechet_distance"] < report["frechet_distance"] < noise["frechet_distance"]
    assert real["coverage"] >= report["coverage"] > noise["coverage"]
    assert noise["precision"] < 0.2
    # The distance depends on the number of pictures: as many of each are compared.
    assert report["pictures"] == real["pictures"] == noise["pictures"] == 40
    assert report["held_out"] == 50
    features = Brightness().features
    distance = frechet_distance(features(held_out.pixels), features(generated.pixels))
    assert report["frechet_distance"] == distance
    others_distance = frechet_distance(features(held_out.pixels), features(others.pixels[:40]))
    assert real["frechet_distance"] == others_distance
    assert painting.class_report(Brightness(), generated, held_out, others) == report


def test_a_class_report_is_a_table_with_its_anchors() -> None:
    figures = {
        "pictures": 1000,
        "accuracy": 0.9125,
        "frechet_distance": 12.34567,
        "precision": 0.71,
        "recall": 0.62,
        "density": 1.05,
        "coverage": 0.8,
    }
    real = figures | {"pictures": 900, "accuracy": 1.0, "frechet_distance": 0.5}
    report = figures | {"held_out": 500, "anchors": {"real": real}}
    assert painting.class_lines(report) == [
        "pictures            of its class  Fréchet distance  precision  recall  density  coverage",
        "  1,000 generated         91.25%            12.346      0.710   0.620    1.050     0.800",
        "    900 real             100.00%             0.500      0.710   0.620    1.050     0.800",
    ]


def test_pictures_that_the_classifier_does_not_know_are_refused() -> None:
    known = drawn("test", 1, CLASSES * 5)
    turned = captioned.pictures("val", known.pixels.transpose(2, 3), known.captions)
    with pytest.raises(InputError) as caught:
        painting.class_report(Brightness(), known, known, turned)
    rule = "the classifier was trained on 2 × 3 pixels × 1"
    assert str(caught.value) == f"val: pictures of 3 × 2 pixels × 1; {rule}"
    named = captioned.pictures("generated", known.pixels, ["grey", *known.captions[1:]])
    with pytest.raises(InputError) as caught:
        painting.class_report(Brightness(), named, known, known)
    rule = "not a class of the classifier: dark, bright"
    assert str(caught.value) == f"generated: caption 'grey' is {rule}"
    nothing = captioned.pictures("generated", known.pixels[:0], [])
    with pytest.raises(InputError, match=r"^0 pictures; "):
        painting.class_report(Brightness(), nothing, known, known)
