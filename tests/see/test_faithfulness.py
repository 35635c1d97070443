"""Checks of attributions, on a model and captions whose right answers are known."""

import pytest
import torch
from torch import Tensor

from seq2see.see import faithfulness
from seq2see.see.attribution import attribute
from seq2see.tasks.translator import Translator
from seq2see.text.captions import Caption

# The toy language translates word for word.
TEXTS = [("drei acht eins", "three eight one"), ("zwei vier neun fünf", "two four nine five")]
CAPTIONS = [
    Caption(source, target, [(i, i) for i in range(len(source.split()))], "plain")
    for source, target in TEXTS
]


@pytest.fixture
def pairs(translator: Translator) -> list[tuple[list[int], list[int]]]:
    return [faithfulness.ids_of(translator, caption) for caption in CAPTIONS]


def attributions(translator: Translator, method: str) -> list[Tensor]:
    pairs = [faithfulness.ids_of(translator, caption) for caption in CAPTIONS]
    return [attribute(translator, *pair, method) for pair in pairs]


def test_erasing_one_token_costs_its_own_erasure(translator: Translator, pairs: list) -> None:
    values = attributions(translator, "erasure")
    largest = torch.cat([each[:-1, :-1].amax(1) for each in values]).mean().item()
    fall = faithfulness.fall_when_erased(translator, pairs, values, 1)
    assert fall == pytest.approx(largest, abs=1e-4)


def test_a_ranking_beats_chance_and_its_opposite(translator: Translator, pairs: list) -> None:
    for count in (1, 2):
        ranked = attributions(translator, "erasure")
        best = faithfulness.fall_when_erased(translator, pairs, ranked, count)
        worst = faithfulness.fall_when_erased(translator, pairs, [-r for r in ranked], count)
        chance = faithfulness.fall_at_random(translator, pairs, count)
        assert worst < chance < best
        assert chance == faithfulness.fall_at_random(translator, pairs, count)  # seeded


def test_everything_erased_costs_the_same_in_any_order(translator: Translator, pairs: list) -> None:
    ranked = attributions(translator, "norm")
    ordered = faithfulness.fall_when_erased(translator, pairs, ranked, 99)
    assert ordered == pytest.approx(faithfulness.fall_at_random(translator, pairs, 99), abs=1e-4)


def test_both_ways_is_symmetric_and_lowers_what_everything_reads() -> None:
    weights = torch.tensor([[0.5, 0.4, 0.1], [0.5, 0.05, 0.45]])
    both = faithfulness.both_ways(weights)
    assert torch.allclose(both, faithfulness.both_ways(weights.T).T)
    assert weights.argmax(1).tolist() == [0, 0] and both.argmax(1).tolist() == [1, 2]
    assert both[0, 1].item() == pytest.approx(0.4 / 1.0 * 0.4 / 0.45)
    assert faithfulness.both_ways(torch.tensor([[-1.0, 0.0], [0.0, 0.0]])).isfinite().all()


def test_erasure_aligns_the_toy_language(translator: Translator) -> None:
    rates = faithfulness.error_rates(translator, CAPTIONS, attributions(translator, "erasure"))
    assert rates == {"plain": 0.0, "both ways": 0.0}
    mirrored = [values.flip(1).roll(-1, 1) for values in attributions(translator, "erasure")]
    assert min(faithfulness.error_rates(translator, CAPTIONS, mirrored).values()) > 0.3
