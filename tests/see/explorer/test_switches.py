"""Heads switched off: the head is gone, everything else is shared, and the ranking follows."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.models.reduced import with_merging, with_pruning
from seq2see.see.alignment import Head
from seq2see.see.explorer import ranking as ranked
from seq2see.see.explorer.inventory import heads_of
from seq2see.see.explorer.pair import Pair, forced, log_probability, pair_of, silenced, switched
from seq2see.see.explorer.ranking import ranking
from seq2see.see.explorer.switches import switchable, without_heads
from seq2see.tasks.translator import Translator

OFF = [("encoder.0.self", 1), ("decoder.1.cross", 0), ("decoder.1.cross", 2)]


def test_a_head_that_is_off_contributes_nothing(pair: Pair) -> None:
    """Its output, recorded before the linear map, is multiplied by zeros alone."""
    model: Any = without_heads(pair.translator.model, OFF)
    inputs: list[Any] = []
    linear = model.decoder[1].cross_attention.output
    handle = linear.register_forward_hook(
        lambda module, given, output: inputs.append((given[0], output))
    )
    with torch.inference_mode():
        model(pair.batch)
    handle.remove()
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


def one_by_one(pair: Pair) -> dict[Head, float]:
    """log p without each head, by a model of its own and a pass of its own."""
    heads = [one for one in heads_of(pair.translator) if switchable(pair.translator.model, one[0])]
    return {
        head: log_probability(replace(pair, translator=silenced(pair.translator, [head])))
        for head in heads
    }


@pytest.mark.parametrize("tokens", [1, 28, 1024])  # one head in a pass, four, and all
@pytest.mark.parametrize(
    "model",
    [
        {},
        {"positions": "rotary", "norm": "post"},
        {"kind": "prefix"},
        {"kind": "conv", "kernel": 2},
        {"kind": "lstm"},
    ],
    ids=str,
)
def test_the_ranking_is_every_head_off_in_turn_most_harmful_first(
    make_tiny: Any, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], tokens: int
) -> None:
    monkeypatch.setattr(ranked, "TOKENS", tokens)
    pair = pair_of(make_tiny(3, **model), "drei acht eins, sieben.", "three one eight")
    expected = one_by_one(pair)
    shown = ranking(pair)
    assert shown["text"] == pair.translation
    assert shown["log_probability"] == log_probability(pair)
    after = {(row["layer"], row["head"]): row["log_probability"] for row in shown["heads"]}
    assert after == pytest.approx(expected, abs=1e-5) and len(after) == len(shown["heads"])
    changes = [row["change"] for row in shown["heads"]]
    assert changes == sorted(changes) and changes[0] != 0
    for row in shown["heads"]:
        assert row["change"] == row["log_probability"] - shown["log_probability"]


@pytest.mark.parametrize(
    "reduced", [partial(with_merging, r=2), partial(with_pruning, thresholds=1.0)]
)
def test_the_ranking_of_a_model_that_reduces_tokens(make_tiny: Any, reduced: Any) -> None:
    plain = make_tiny(3, encoder_layers=3)
    model = reduced(plain.model)
    translator = Translator(plain.recipe, plain.tokenizers, model, plain.device)
    pair = pair_of(translator, "drei acht eins, sieben zwei vier.", "three one eight")
    after = {(row["layer"], row["head"]): row["log_probability"] for row in ranking(pair)["heads"]}
    assert after == pytest.approx(one_by_one(pair), abs=1e-5)
    assert log_probability(pair) != log_probability(replace(pair, translator=plain))


def test_the_ranking_leaves_the_model_as_it_was(pair: Pair) -> None:
    before, forward = log_probability(pair), dict(pair.translator.model.named_modules())
    ranking(pair)
    assert log_probability(pair) == before
    assert dict(pair.translator.model.named_modules()) == forward


def test_the_ranking_starts_from_the_heads_that_are_off(pair: Pair) -> None:
    off = pair_of(pair.translator, pair.text, pair.translation, off=OFF[:2])
    after = {(row["layer"], row["head"]): row for row in ranking(off)["heads"]}
    for head in OFF[:2]:
        assert after[head]["change"] == pytest.approx(0.0, abs=1e-5)  # it is off already
    alone = log_probability(replace(off, translator=switched(pair.translator, OFF)))
    assert after[OFF[2]]["log_probability"] == pytest.approx(alone, abs=1e-5)


def test_the_ranking_stops_between_passes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "TOKENS", 28)  # four passes for 15 heads
    checks: list[int] = []

    def third() -> None:
        checks.append(len(checks))
        if len(checks) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        ranking(pair, third)
    assert len(checks) == 3
    checks = [0, 1, 2]
    ranking(pair, third)
    assert len(checks) == 3 + 4


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
