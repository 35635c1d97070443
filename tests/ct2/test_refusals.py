"""Conversion to CTranslate2 names the key that it cannot express."""

from typing import Any

import pytest

from seq2see.ct2 import convert
from seq2see.ct2.convert import positions
from seq2see.ct2.engine import refuse_search
from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.recipe.schema import ModelConfig
from seq2see.tasks.translator import Translator


def test_heads_of_another_width_are_named(toy: Any, translator: Translator) -> None:
    recipe = toy.recipe("model.width=12", "model.heads=3", "model.attention_width=24")
    with pytest.raises(
        InputError,
        match=r"^model.attention_width = 24 cannot be exported to CTranslate2: it takes .*12",
    ):
        convert.refuse(recipe, translator.tokenizers)


@pytest.mark.parametrize("key", ["kind", "norm", "score", "positions"])
def test_what_cannot_be_exported_is_named(translator: Translator, key: str) -> None:
    model = ModelConfig.model_construct(**(translator.recipe.model.model_dump() | {key: "rotary"}))
    recipe = translator.recipe.model_copy(update={"model": model})
    with pytest.raises(
        InputError, match=rf"^model.{key} = 'rotary' cannot be exported to CTranslate2; only "
    ):
        convert.refuse(recipe, translator.tokenizers)


def test_too_many_positions_are_named(toy: Any, translator: Translator) -> None:
    recipe = toy.recipe("data.max_length=10000", "decode.max_ratio=30.0")
    with pytest.raises(
        InputError, match=r"data.max_length = 10000 with decode.max_ratio = 30.0 allows .* 300010"
    ):
        convert.refuse(recipe, translator.tokenizers)


def test_positions_fit_the_longest_source_and_the_longest_translation(toy: Any) -> None:
    assert positions(toy.recipe("data.max_length=50", "decode.max_ratio=0.1")) == 51
    assert positions(toy.recipe("data.max_length=50", "decode.max_ratio=3.0")) == 160
    assert positions(toy.recipe("data.max_length=5", "decode.min_length=500")) == 501
    assert positions(toy.recipe("model.positions=learned", "model.max_positions=300")) == 300


def test_names_must_be_unique(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "pieces", lambda _: ["<s>", "a", "b", "a"])
    with pytest.raises(InputError, match="the vocabulary has 'a' twice"):
        convert.refuse(translator.recipe, translator.tokenizers)


def test_forbidden_tokens_are_for_the_other_engine() -> None:
    refuse_search(Search())
    with pytest.raises(InputError, match="CTranslate2 cannot forbid any; PyTorch can"):
        refuse_search(Search(forbidden=(7,)))
