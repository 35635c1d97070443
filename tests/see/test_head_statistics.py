"""Statistics of heads: by definition on weights made by hand, and against the model's own."""

import math

import pytest
import torch

from seq2see.batches import IdPair
from seq2see.see import head_statistics as statistics
from seq2see.see.alignment import head_error_rates
from seq2see.see.head_statistics import caption_statistics, head_statistics
from seq2see.tasks.translator import Translator
from seq2see.text.captions import Caption

PAIRS: list[IdPair] = [([5, 6, 7, 8, 9], [6, 7, 8]), ([9], [5, 6]), ([8, 7, 6], [])]


def test_the_entropy_of_certainty_is_zero_and_of_n_equal_weights_ln_n() -> None:
    weights = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.25] * 4])
    assert statistics.entropy(weights).tolist() == pytest.approx([0.0, math.log(4)])


def test_every_figure_is_its_mean_over_the_real_query_positions(tiny: Translator) -> None:
    sums: dict[tuple[str, int], list[list[float]]] = {}
    for source, target in PAIRS:  # one at a time, without padding, as lists
        batch = statistics.collate([(source, target)], [0])
        trace = statistics.Trace()
        with torch.inference_mode():
            tiny.model(batch, trace)
        for layer, weights in trace.weights.items():
            for head, rows in enumerate(weights[0].tolist()):
                for t, row in enumerate(rows):
                    near = {t - s: weight for s, weight in enumerate(row)}
                    figures = [
                        -sum(w * math.log(w) for w in row if w > 0),
                        sum(abs(offset) * weight for offset, weight in near.items()),
                        *(near.get(offset, 0.0) for offset in (1, 0, -1)),
                        row[-1],
                    ]
                    sums.setdefault((layer, head), []).append(figures)
    results = head_statistics(tiny, PAIRS)
    assert len(results) == len(sums) == 3 * (1 + 2 + 2)
    for one in results:
        rows = sums[one.layer, one.head]
        expected = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        ours = [one.entropy, one.distance, one.previous, one.same, one.next]
        assert ours == pytest.approx(expected[:5], abs=1e-6)
        if one.layer.startswith("decoder") and one.layer.endswith("self"):
            assert one.end is None and one.next == 0
        else:
            assert one.end == pytest.approx(expected[5], abs=1e-6)


def test_batches_change_nothing(tiny: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    together = head_statistics(tiny, PAIRS)
    monkeypatch.setattr(statistics, "PAIRS_PER_BATCH", 2)
    for one, other in zip(together, head_statistics(tiny, PAIRS), strict=True):
        assert one.entropy == pytest.approx(other.entropy, abs=1e-6)
        assert one.distance == pytest.approx(other.distance, abs=1e-6)


def test_captions_add_the_error_rate_of_cross_attention(tiny: Translator) -> None:
    links = frozenset({(0, 0), (1, 1)})
    examples = [Caption("drei acht", "three eight", links, "main")]  # type: ignore[arg-type]
    rates = head_error_rates(tiny, examples)
    for one in caption_statistics(tiny, examples):
        assert one.error_rate == rates.get((one.layer, one.head))
        assert (one.error_rate is None) == one.layer.endswith("self")
