"""Features of a picture classifier: the states that its last layer classifies."""

import pytest
import torch
from torch import Tensor

from seq2see.models.vit import VisionTransformer
from seq2see.pictures.augment import Format
from seq2see.recipe.schema import Recipe
from seq2see.tasks.picture_model import PICTURES_PER_BATCH, PictureModel
from seq2see.text.specials import SPECIALS

CHANNELS, HEIGHT, WIDTH = 3, 4, 6
CLASSES = ["cat", "dog", "emu", "fox", "gnu"]


@pytest.fixture(params=["class", "mean"])
def classifier(request: pytest.FixtureRequest) -> PictureModel:
    sizes = {"width": 12, "heads": 2, "encoder_layers": 2, "patch": 2, "pool": request.param}
    recipe = Recipe.model_validate(
        {"task": "images", "data": {"corpus": "digits"}, "model": sizes, "train": {"steps": 1}}
    )
    format = Format((CHANNELS, HEIGHT, WIDTH), [0.3, 0.5, 0.6], [0.2, 0.3, 0.25], CLASSES)
    torch.manual_seed(5)
    model = VisionTransformer(recipe.model, format.shape, len(format.labels))
    with torch.no_grad():
        model.output.weight.normal_()  # so that the labels differ
    return PictureModel(recipe, format, model, torch.device("cpu"))


def pixels(count: int) -> Tensor:
    shape = (count, CHANNELS, HEIGHT, WIDTH)
    return torch.randint(
        0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(3)
    )


def test_the_last_layer_makes_logits_of_features(classifier: PictureModel) -> None:
    pictures = pixels(2 * PICTURES_PER_BATCH + 3)
    features = classifier.features(pictures)
    assert features.shape == (len(pictures), 12)
    with torch.inference_mode():
        logits = classifier.model(classifier.format.batch(pictures))
        torch.testing.assert_close(classifier.model.output(features), logits)


def test_labels_of_features_are_those_of_the_pictures(classifier: PictureModel) -> None:
    classifier.model.train()  # whose dropout must be off
    pictures = pixels(30)
    labels = classifier.labels(classifier.features(pictures))
    assert labels == [labelled.label for labelled in classifier.classify_pixels(pictures)]
    assert len({*labels}) > 1


def test_special_symbols_are_no_labels(classifier: PictureModel) -> None:
    with torch.no_grad():
        classifier.model.output.bias[: len(SPECIALS)] = 100
    assert {*classifier.labels(classifier.features(pixels(9)))} <= {*CLASSES}
