"""Translation word by word: probabilities of the model itself, prefixes, forbidden tokens."""

import math
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.see.explorer.pair import Pair, pair_of
from seq2see.see.explorer.translation import predictions, rules, translate
from seq2see.tasks.translator import Translator
from seq2see.text.specials import END

TEXT = "drei acht eins, sieben."


def test_every_step_has_the_models_own_distribution(pair: Pair, own: Any) -> None:
    log_p = own(pair).double()
    steps = predictions(pair)
    target = pair.translator.tokenizers.target
    assert [step["token"] for step in steps] == [target.piece(id) for id in [*pair.target, END]]
    for row, id, step in zip(log_p, [*pair.target, END], steps, strict=True):
        assert step["log_probability"] == pytest.approx(float(row[id]), abs=1e-5)
        assert step["probability"] == pytest.approx(math.exp(row[id]), abs=1e-5)
        assert step["entropy"] == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-4)
        best = row.exp().sort(descending=True)
        top = [one["probability"] for one in step["top"]]
        assert top == pytest.approx(best.values[:5].tolist(), abs=1e-5)
        assert step["top"][0]["token"] == target.piece(int(best.indices[0]))


def test_the_n_best_are_those_of_the_search(tiny: Translator) -> None:
    shown = translate(tiny, TEXT, rules(tiny, beam=3), n_best=3)
    (expected,) = tiny.search([TEXT], beam=3, n_best=3)
    assert [one["text"] for one in shown["hypotheses"]] == [one.text for one in expected]
    assert [one["score"] for one in shown["hypotheses"]] == [one.score for one in expected]
    assert shown["text"] == expected[0].text
    assert shown["log_probability"] == pytest.approx(expected[0].log_probability, abs=1e-4)
    assert shown["score"] == pytest.approx(expected[0].score, abs=1e-4)
    assert shown["hypotheses"][0]["tokens"] == shown["target"]["pieces"]
    assert len(shown["steps"]) == len(shown["target"]["pieces"])


def test_the_models_differ(twins: list[Translator]) -> None:
    first, second = (predictions(pair_of(one, TEXT, "two four")) for one in twins)
    for one, other in zip(first, second, strict=True):
        assert one["token"] == other["token"] and one["probability"] != other["probability"]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_prefix_appears_and_a_forbidden_token_does_not(tiny: Translator, beam: int) -> None:
    free = translate(tiny, TEXT, rules(tiny, beam))
    forced = translate(tiny, TEXT, rules(tiny, beam, prefix="nine four"))
    assert forced["text"].startswith("nine four")
    banned = free["target"]["pieces"][0]
    without = translate(tiny, TEXT, rules(tiny, beam, forbidden=[banned]), n_best=beam)
    assert all(banned not in one["tokens"] for one in without["hypotheses"])
    assert translate(tiny, TEXT, rules(tiny, beam)) == free  # it was for that search alone


def test_a_given_translation_is_explained_beside_the_search(tiny: Translator) -> None:
    shown = translate(tiny, TEXT, rules(tiny), target="two")
    assert shown["text"] == "two" and shown["hypotheses"][0]["text"] == tiny.translate([TEXT])[0]


def test_a_length_penalty_is_that_of_the_request(tiny: Translator) -> None:
    shown = translate(tiny, TEXT, rules(tiny, length_penalty=0.0))
    assert shown["score"] == shown["log_probability"]


def test_what_the_vocabulary_does_not_have_is_refused(tiny: Translator) -> None:
    with pytest.raises(InputError, match=r"forbidden\[1\]: it is no token of the target"):
        rules(tiny, forbidden=["▁two", "zwölf"])
    with pytest.raises(InputError, match="</s> cannot be forbidden"):
        translate(tiny, TEXT, rules(tiny, forbidden=["</s>"]))
    with pytest.raises(InputError, match="the prefix has 40 tokens; at most 39 can be"):
        rules(tiny, prefix="two " * 40)


def test_a_broken_model_is_named(make_tiny: Any) -> None:
    translator = make_tiny(3)
    with torch.no_grad():
        translator.model.output.bias.fill_(float("nan"))
    with pytest.raises(Exception, match="not a number"):
        predictions(pair_of(translator, TEXT, "two"))
