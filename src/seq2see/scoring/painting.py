"""Figures for generated pictures: prompts followed, and resemblance to real pictures."""

import contextlib
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.pictures import captioned
from seq2see.pictures.augment import Format
from seq2see.pictures.captioned import CaptionedPictures

if TYPE_CHECKING:  # the judge needs SciPy
    from seq2see.pictures.scenes.judge import Verdict

ATTRIBUTES = ("colour", "shape", "size", "count", "relation")
NEIGHBOURS = 5  # k of the nearest neighbours, as in Naeem et al. (2020)
NOISE_SEED = 1
COLUMNS = ("accuracy", "frechet_distance", "precision", "recall", "density", "coverage")
HEADS = ("of its class", "Fréchet distance", "precision", "recall", "density", "coverage")


class Classifier(Protocol):
    """Classifier of pictures whose features compare them; a `PictureModel` is one."""

    @property
    def format(self) -> Format: ...

    def features(self, pixels: Tensor) -> Tensor:
        """Encode bytes (N, C, H, W) as features (N, D)."""
        ...

    def labels(self, features: Tensor) -> list[str]:
        """Predict the name of the class of each picture from its features (N, D)."""
        ...


def prompt_accuracy(verdicts: Sequence["Verdict"]) -> dict[str, Any]:
    """Compute the share of prompts with all attributes right, and the share of each attribute.

    The share of an attribute is that of the prompts that say it; an attribute that none says is
    left out.
    """
    if not verdicts:
        raise InputError("0 pictures; prompt accuracy needs at least one")
    attributes = {}
    for attribute in ATTRIBUTES:
        judged = [getattr(verdict, attribute) for verdict in verdicts]
        said = [right for right in judged if right is not None]
        if said:
            attributes[attribute] = _share(said)
    return {**_share([verdict.all for verdict in verdicts]), "attributes": attributes}


def prompt_lines(figures: dict[str, Any]) -> list[str]:
    """Show what `prompt_accuracy` returns."""
    lines = [f"{figures['accuracy']:.2%} of {figures['prompts']:,} prompts right in all attributes"]
    for name, share in figures["attributes"].items():
        lines.append(f"  {name:<8} {share['accuracy']:>7.2%} of {share['prompts']:,} that say it")
    return lines


def _share(right: Sequence[bool]) -> dict[str, Any]:
    return {"accuracy": sum(right) / len(right), "right": sum(right), "prompts": len(right)}


def frechet_distance(first: Tensor, second: Tensor) -> float:
    """Compute the Fréchet distance of Gaussians fitted to features (N, D) and (M, D).

    |m₁ − m₂|² + tr(C₁ + C₂ − 2 (C₁C₂)^½), as in the FID (Heusel et al., 2017). If C = RᵀR, the
    trace of the root is the sum of the singular values of R₁R₂ᵀ. A QR decomposition gives R without
    forming C, whose root would have half of the digits.
    """
    _check_features(first, second, fewest=2)
    means = []
    roots = []
    for features in (first.double(), second.double()):
        mean = features.mean(0)
        centred = (features - mean) / (len(features) - 1) ** 0.5
        means.append(mean)
        roots.append(torch.linalg.qr(centred, mode="r").R)
    shift = (means[0] - means[1]).square().sum()
    spread = roots[0].square().sum() + roots[1].square().sum()
    common = torch.linalg.svdvals(roots[0] @ roots[1].T).sum()
    return max(0.0, float(shift + spread - 2 * common))  # rounding may make equal sets negative


def fidelity_and_diversity(
    real: Tensor, generated: Tensor, neighbours: int = NEIGHBOURS
) -> dict[str, float]:
    """Compute precision, recall, density and coverage of features (N, D) against real (M, D).

    A picture's neighbourhood reaches to its k-th nearest of the same set. Precision: the share of
    generated pictures in a real neighbourhood; recall: the share of real ones in a generated
    neighbourhood; density: the mean number of real neighbourhoods around a generated picture,
    divided by k; coverage: the share of real neighbourhoods with a generated picture (Naeem et al.,
    2020). Memory grows with the square of the number of pictures.
    """
    _check_features(real, generated, fewest=neighbours + 2)
    try:
        from prdc import compute_prdc
    except ImportError:
        raise InputError("precision, recall and coverage need prdc: pip install prdc") from None
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the numbers of pictures
        figures = compute_prdc(real.numpy(), generated.numpy(), neighbours)
    return {name: float(figure) for name, figure in figures.items()}


def _check_features(first: Tensor, second: Tensor, fewest: int) -> None:
    if first.shape[1] != second.shape[1]:
        widths = f"{first.shape[1]} and {second.shape[1]}"
        raise ValueError(f"features have widths {widths}; they must be equal")
    count = min(len(first), len(second))
    if count < fewest:
        raise InputError(f"{count} pictures; a comparison of two sets needs {fewest} in each")


def class_report(
    classifier: Classifier,
    generated: CaptionedPictures,
    held_out: CaptionedPictures,
    others: CaptionedPictures,
) -> dict[str, Any]:
    """Compare generated pictures, captioned with their prompts, with real ones that were held out.

    Anchors are the same figures of other real pictures and of uniform noise. At most as many of
    them are taken as were generated, since the Fréchet distance falls with the number of pictures.
    The classifier must have been trained on neither of the real sets.
    """
    for pictures in (generated, held_out, others):
        check_pictures(pictures, classifier.format)
    count = len(generated)
    real = captioned.pictures("real", others.pixels[:count], others.captions[:count])
    reference = classifier.features(held_out.pixels)  # (M, D)
    anchors = {
        "real": _class_figures(classifier, real, reference),
        "noise": _class_figures(classifier, _noise(generated), reference),
    }
    figures = _class_figures(classifier, generated, reference)
    return {**figures, "held_out": len(held_out), "anchors": anchors}


def class_lines(report: dict[str, Any]) -> list[str]:
    """Show what `class_report` returns as a table."""
    widths = [len(head) + 2 for head in HEADS]
    heads = "".join(f"{head:>{width}}" for head, width in zip(HEADS, widths, strict=True))
    lines = [f"{'pictures':<18}{heads}"]
    for name, figures in {"generated": report, **report["anchors"]}.items():
        shown = [f"{figures['accuracy']:.2%}", *(f"{figures[key]:.3f}" for key in COLUMNS[1:])]
        cells = "".join(f"{cell:>{width}}" for cell, width in zip(shown, widths, strict=True))
        lines.append(f"{figures['pictures']:>7,} {name:<10}{cells}")
    return lines


def check_pictures(pictures: CaptionedPictures, format: Format) -> None:
    """Refuse pictures of another shape or class than those of a classifier."""
    shape = tuple(pictures.pixels.shape[1:])
    if shape != format.shape:
        rule = f"the classifier was trained on {_sizes(format.shape)}"
        raise InputError(f"{pictures.name}: pictures of {_sizes(shape)}; {rule}")
    if unknown := sorted({*pictures.captions} - {*format.classes}):
        rule = f"not a class of the classifier: {', '.join(format.classes)}"
        raise InputError(f"{pictures.name}: caption {unknown[0]!r} is {rule}")


def _sizes(shape: Sequence[int]) -> str:
    channels, height, width = shape
    return f"{height} × {width} pixels × {channels}"


def _noise(generated: CaptionedPictures) -> CaptionedPictures:
    """Draw noise for the same prompts."""
    generator = torch.Generator().manual_seed(NOISE_SEED)
    shape = generated.pixels.shape
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    return captioned.pictures("noise", pixels, generated.captions)


def _class_figures(
    classifier: Classifier, pictures: CaptionedPictures, reference: Tensor
) -> dict[str, Any]:
    """Compute accuracy, and the resemblance to the pictures with the reference features (M, D)."""
    features = classifier.features(pictures.pixels)
    distance = frechet_distance(reference, features)
    neighbourhoods = fidelity_and_diversity(reference, features)
    labels = zip(classifier.labels(features), pictures.captions, strict=True)
    right = sum(label == caption for label, caption in labels)
    return {
        "pictures": len(pictures),
        "accuracy": right / len(pictures),
        "frechet_distance": distance,
        **neighbourhoods,
    }
