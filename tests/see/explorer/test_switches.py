"""Heads switched off: the head is gone, everything else is shared, and the ranking follows."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.see.explorer.pair import Pair, forced, log_probability, pair_of, switched
from seq2see.see.explorer.ranking import ranking
from seq2see.see.explorer.switches import without_heads
from seq2see.tasks.translator import Translator

OFF = [("encoder.0.self", 1), ("decoder.1.cross", 0), ("decoder.1.cross", 2)]


def test_a_head_that_is_off_contributes_nothing(pair: Pair) -> None:
    """Its output, recorded before the linear map, is multiplied by zeros alone."""
    model: Any = without_heads(pair.translator.model, OFF)
    inputs: list[Any] = []
    linear = model.decoder[1].cross_attention.output
    linear.register_forward_hook(lambda module, given, output: inputs.append((given[0], output)))
    with torch.inference_mode():
        model(pair.batch)
    ((heads, output),) = inputs
    alone = heads.clone()
    alone[..., :4] = alone[..., 8:] = 0.0  # three heads of size 4: the first and the last are off
    original: Any = pair.translator.model
    torch.testing.assert_close(original.decoder[1].cross_attention.output(alone), output)


def test_the_original_and_all_other_weights_stay_as_they_are(pair: Pair) -> None:
    before = {name: one.clone() for name, one in pair.translator.model.named_parameters()}
    model = without_heads(pair.translator.model, OFF)
    copied = dict(model.named_parameters())
    changed = {"encoder.0.self_attention.output.weight", "decoder.1.cross_attention.output.weight"}
    for name, parameter in pair.translator.model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert (copied[name] is parameter) == (name not in changed)


def test_all_heads_on_is_the_plain_translation(tiny: Translator) -> None:
    assert switched(tiny, []) is tiny
    same = Translator(
        tiny.recipe, tiny.tokenizers, without_heads(tiny.model, []), torch.device("cpu")
    )
    text = ["drei acht eins"]
    assert same.search(text, n_best=3) == tiny.search(text, n_best=3)


def test_heads_off_change_the_translation_and_count_for_everything(pair: Pair) -> None:
    off = pair_of(pair.translator, pair.text, pair.translation, off=OFF)
    assert log_probability(off) != log_probability(pair)
    assert not torch.equal(forced(off).log_p, forced(pair).log_p)


def test_the_ranking_is_every_head_off_in_turn_most_harmful_first(pair: Pair) -> None:
    shown = ranking(pair)
    assert len(shown["heads"]) == 15 and shown["text"] == pair.translation
    changes = [row["change"] for row in shown["heads"]]
    assert changes == sorted(changes) and changes[0] < changes[-1]
    for row in shown["heads"][::5]:
        one = switched(pair.translator, [(row["layer"], row["head"])])
        after = log_probability(replace(pair, translator=one))
        assert row["log_probability"] == after
        assert row["change"] == after - shown["log_probability"]


def test_the_ranking_starts_from_the_heads_that_are_off(pair: Pair) -> None:
    shown = ranking(pair_of(pair.translator, pair.text, pair.translation, off=OFF[:1]))
    own = next(row for row in shown["heads"] if (row["layer"], row["head"]) == OFF[0])
    assert own["change"] == 0.0  # it is off already


@pytest.mark.parametrize("model", [{"kind": "conv", "kernel": 2}, {"kind": "lstm"}], ids=str)
def test_other_models_have_heads_to_switch_off_too(make_tiny: Any, model: dict[str, Any]) -> None:
    translator = make_tiny(3, **model)
    pair = pair_of(translator, "drei acht", "three")
    blind = pair_of(translator, "sieben zwei", "three")
    heads = [(row["layer"], row["head"]) for row in ranking(pair)["heads"]]
    assert log_probability(pair) != log_probability(blind)
    one, other = (replace(each, translator=switched(translator, heads)) for each in (pair, blind))
    if model["kind"] == "conv":  # the source is known through the attention alone
        assert log_probability(one) == pytest.approx(log_probability(other), abs=1e-6)


def test_the_prefix_model_switches_off_its_one_stack(make_tiny: Any) -> None:
    translator = make_tiny(3, kind="prefix")
    pair = pair_of(translator, "drei acht", "three")
    assert {row["layer"] for row in ranking(pair)["heads"]} == {"encoder.0.self"}
    with pytest.raises(InputError, match="cross-attention, layer 1, head 2: source and target"):
        switched(translator, [("decoder.0.cross", 1)])


def test_without_attention_there_is_nothing_to_switch_off(make_tiny: Any) -> None:
    translator = make_tiny(3, kind="lstm", attend=False)
    with pytest.raises(InputError, match="this model has no attention heads"):
        ranking(pair_of(translator, "drei", "three"))
    with pytest.raises(InputError, match="this model has no attention"):
        switched(translator, [("decoder.0.cross", 0)])
