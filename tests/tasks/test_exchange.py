"""`data.exchange` in a run: in the store and the log, not in held-out sets, and for translation."""

from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.tasks.table import load, read_recipe, task_of
from seq2see.tasks.text import TextData
from seq2see.text.history import History

NAMES = ("Tom", "Anna", "Lena", "Paul")
EXCHANGE = ("data.exchange=0.6", "tokenizer.size=80", "data.hold_out=20")


@pytest.fixture
def named(toy: Any) -> Any:
    toy.write(
        (f"{name} hat {number} Hunde.", f"{name} has {number} dogs.")
        for name in NAMES
        for number in range(10, 60)
    )
    return toy


def prepared(recipe: Recipe, folder: Path) -> TextData:
    folder.mkdir(exist_ok=True)
    data = task_of(recipe).data(None, History(), folder=folder)
    assert isinstance(data, TextData)
    data.prepare(folder, None)
    return data


def decoded(data: TextData) -> list[tuple[str, str]]:
    pair = data.tokenizers
    return [(pair.source.decode(a), pair.target.decode(b)) for a, b in data.encoded[:]]


def test_training_pairs_are_exchanged_and_held_out_ones_are_not(named: Any, tmp_path: Path) -> None:
    recipe = named.recipe(*EXCHANGE)
    data = prepared(recipe, tmp_path / "a")
    plain = prepared(named.recipe(*EXCHANGE[1:]), tmp_path / "b")
    differing = sum(x != y for x, y in zip(decoded(data), decoded(plain), strict=True))
    counts = data.encoded.exchanged
    assert 0.3 * len(data.encoded) < counts["pairs"] < 0.9 * len(data.encoded)
    assert differing == counts["pairs"]
    assert data.corpus.val == plain.corpus.val and data.corpus.tests == plain.corpus.tests
    assert data.validation[1].pairs == plain.validation[1].pairs
    assert not plain.encoded.exchanged
    # The next start finds the store, and tells the same of it.
    again = prepared(recipe, tmp_path / "a")
    assert again.notes == data.notes and decoded(again) == decoded(data)
    assert any(note.startswith(f"exchanged in {counts['pairs']} of ") for note in data.notes)


def test_a_model_has_the_lexicon_of_its_training_text(named: Any, tmp_path: Path) -> None:
    named.train(tmp_path / "run", *EXCHANGE, "train.steps=1")
    lexicon = load(tmp_path / "run", "cpu").lexicon
    assert lexicon is not None and lexicon.words == {"hat", "hunde", *map(str.lower, NAMES)}
    recipe = tmp_path / "run" / "recipe.toml"
    recipe.write_text(recipe.read_text() + "\n[decode]\nkeep = false\n")
    assert load(tmp_path / "run", "cpu").lexicon is None


@pytest.mark.parametrize("key", ["data.exchange=0.1", "decode.keep=false"])
def test_only_translation_has_the_keys(toy: Any, key: str) -> None:
    text = toy.path.read_text().replace("decoder_layers = 2\n", "")
    toy.path.write_text(f'task = "language"\n{text}')
    with pytest.raises(InputError, match=f"{key.partition('=')[0]} is for task 'translate'"):
        read_recipe(toy.path, [key])
