"""Two tiny translators that differ in their seeds alone, for the tests of looking inside."""

import random
from collections.abc import Callable

import pytest
import torch

from seq2see.models.build import build
from seq2see.recipe.schema import Recipe, TokenizerConfig
from seq2see.tasks.translator import Translator
from seq2see.text import tokenizers

GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEXT = "drei acht eins, sieben."
SIZES = {"width": 12, "encoder_layers": 1, "decoder_layers": 2}
BLOCKS = {"heads": 3, "feed_forward": 10}


def tiny_translator(seed: int, **model: object) -> Translator:
    """A translator of German number words whose weights are drawn from a seed."""
    draw = random.Random(1)
    rows = [draw.sample(range(10), k=draw.randint(2, 5)) for _ in range(200)]
    pairs = [
        (" ".join(GERMAN[n] for n in row) + ",.", " ".join(ENGLISH[n] for n in row) + ",.")
        for row in rows
    ]
    kind = model.get("kind", "transformer")
    keys = SIZES | (BLOCKS if kind in ("transformer", "prefix") else {})
    if kind == "prefix":
        del keys["decoder_layers"]
    config = TokenizerConfig(size=60)
    sides = tokenizers.train(config, "de", "en", pairs)
    recipe = Recipe.model_validate(
        {
            "data": {"train": "pairs.tsv", "max_length": 40},
            "model": keys | model,
            "decode": {"beam": 3, "max_ratio": 1.0},
            "train": {"steps": 1},
        }
    )
    torch.manual_seed(seed)
    network = build(recipe, len(sides.source), len(sides.target))
    with torch.no_grad():  # logits of fresh weights are nearly equal
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return Translator(recipe, sides, network, torch.device("cpu"))


@pytest.fixture(scope="session", params=[3, 4], ids=["seed 3", "seed 4"])
def tiny(request: pytest.FixtureRequest) -> Translator:
    """Each of the two in turn."""
    return tiny_translator(request.param)


@pytest.fixture(scope="session")
def twins() -> list[Translator]:
    """Both of them."""
    return [tiny_translator(seed) for seed in (3, 4)]


@pytest.fixture(scope="session")
def make_tiny() -> Callable[..., Translator]:
    """Make another one, with other keys of the model."""
    return tiny_translator
