"""The sentence to explain: encoded, bounded, and with words for its tokens."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.see.explorer import pair as pairs
from seq2see.see.explorer.pair import Pair, forced, log_probability, pair_of
from seq2see.see.explorer.tokens import input_tokens, source_tokens, target_tokens
from seq2see.tasks.translator import Translator
from seq2see.text.specials import END

TEXT = "drei acht eins, sieben."


def test_the_models_own_translation_is_explained_unless_another_is_given(tiny: Translator) -> None:
    ((best,),) = tiny.hypotheses([tiny.tokenizers.source.encode(TEXT)], pairs.search_of(tiny))
    assert pair_of(tiny, TEXT).target == best.ids
    assert pair_of(tiny, TEXT, "two four").translation == "two four"
    assert pair_of(tiny, TEXT, "").target == []


def test_looking_changes_no_bit(tiny: Translator) -> None:
    before = tiny.search([TEXT], beam=3, n_best=3)
    forced(pair_of(tiny, TEXT, "two", off=[("decoder.0.cross", 1)]))
    assert tiny.search([TEXT], beam=3, n_best=3) == before


def test_the_forced_pass_is_the_models_own(pair: Pair, own: Any) -> None:
    torch.testing.assert_close(forced(pair).log_p, own(pair), atol=1e-5, rtol=0)
    chosen = own(pair).gather(1, torch.tensor([*pair.target, END])[:, None])
    assert log_probability(pair) == pytest.approx(float(chosen.sum()), abs=1e-4)


def test_tokens_know_their_words(tiny: Translator) -> None:
    tokens = source_tokens(tiny, TEXT)
    assert tokens.pieces == ["▁drei", "▁acht", "▁eins", ",", "▁sieben", ".", "</s>"]
    assert tokens.words == [0, 1, 2, 3, 4, 5, None]
    assert tokens.special == [False] * 6 + [True]
    predicted = target_tokens(tiny, tiny.tokenizers.target.encode("threefour"))
    pieces = len(predicted.pieces) - 1
    assert pieces > 1 and predicted.words == [0] * pieces + [None]  # one word of several pieces
    read = input_tokens(predicted)
    assert read.pieces == ["<s>", *predicted.pieces[:-1]]
    assert read.words == [None] + [0] * pieces and read.special == [True] + [False] * pieces
    assert target_tokens(tiny, []).pieces == ["</s>"]


def test_where_words_are_not_spaced_every_piece_is_one(make_tiny: Any) -> None:
    translator = make_tiny(3)
    sides = replace(translator.tokenizers, languages=("zh", "en"))
    chinese = Translator(translator.recipe, sides, translator.model, translator.device)
    pieces = source_tokens(chinese, "dreiacht").words
    assert pieces == [*range(len(pieces) - 1), None] and len(pieces) > 2


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (" \n", None, "text: it is empty"),
        ("acht " * 41, None, "the text has 41 tokens; at most 40 can be explained"),
        ("acht", "eight " * 41, "the translation has 41 tokens; at most 40 can be explained"),
    ],
)
def test_texts_out_of_bounds_are_refused(
    tiny: Translator, text: str, target: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pair_of(tiny, text, target)


def test_no_model_explains_more_than_200_tokens(tiny: Translator) -> None:
    data = tiny.recipe.data.model_copy(update={"max_length": 500})
    recipe = tiny.recipe.model_copy(update={"data": data})
    assert pairs.limit(Translator(recipe, tiny.tokenizers, tiny.model, tiny.device)) == 200
