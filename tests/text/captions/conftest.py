"""Captions of all splits, generated once."""

import pytest

from seq2see.text.captions import Caption, generate, words
from seq2see.text.captions.phrases import Links


@pytest.fixture(scope="session")
def train() -> list[Caption]:
    """Twenty thousand captions to train on."""
    return generate("train", 20_000, seed=1)


@pytest.fixture(scope="session")
def held_out() -> dict[str, list[Caption]]:
    """Two thousand captions of each held-out split, from another seed than `train`."""
    return {split: generate(split, 2_000, seed=2) for split in ("val", "test", "test_structures")}


@pytest.fixture(scope="session")
def all_captions(train: list[Caption], held_out: dict[str, list[Caption]]) -> list[Caption]:
    """Forty thousand captions of all splits; the training split from two seeds."""
    return [
        *train,
        *generate("train", 14_000, seed=2),
        *(c for split in held_out.values() for c in split),
    ]


@pytest.fixture(scope="session")
def texts(train: list[Caption], held_out: dict[str, list[Caption]]) -> tuple[str, str]:
    """German and English text of captions of all structures, one sentence per line."""
    captions = train + held_out["test_structures"]
    return "\n".join(c.source for c in captions), "\n".join(c.target for c in captions)


@pytest.fixture(scope="session")
def tokenised(
    train: list[Caption], held_out: dict[str, list[Caption]]
) -> list[tuple[list[str], list[str], Links]]:
    """German words, English words and links of captions of all structures."""
    captions = train + held_out["test_structures"]
    return [
        (words(caption.source), words(caption.target), caption.alignment) for caption in captions
    ]
