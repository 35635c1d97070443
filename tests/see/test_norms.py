"""Known properties of pre- and post-norm hold for our layers."""

from itertools import pairwise

import pytest
import torch

from seq2see.see import norm_charts, norms


@pytest.fixture(autouse=True)
def own_randomness() -> None:
    torch.manual_seed(0)


def test_the_last_layers_gradient_shrinks_with_depth_in_pre_norm_only() -> None:
    last = {
        (norm, depth): norms.gradient_norms(depth, norm)[-1]
        for norm in ("pre", "post")
        for depth in (2, 12)
    }
    assert last["pre", 12] < 0.75 * last["pre", 2]
    assert last["post", 12] > last["post", 2]
    assert last["post", 12] > 2 * last["pre", 12]


def test_pre_norm_gradients_shrink_from_layer_to_layer() -> None:
    gradients = norms.gradient_norms(12, "pre")
    assert len(gradients) == 12
    assert gradients[-1] < 0.5 * gradients[0]
    assert all(b < 1.1 * a for a, b in pairwise(gradients))


def test_weight_noise_shifts_a_deep_post_norm_stack_most() -> None:
    shifts = {
        norm: norms.output_shift(12, norm) / norms.output_shift(2, norm) for norm in ("pre", "post")
    }
    assert shifts["post"] > 6**0.5 > 2.2 > shifts["pre"]


def test_post_norm_needs_warm_up_and_pre_norm_does_not() -> None:
    seed = 2  # the figure uses 1
    assert norms.train_reversal("pre", 1, seed)[-1] < 0.1
    assert norms.train_reversal("post", 1, seed)[-1] > 1.5
    assert norms.train_reversal("post", norms.WARMUP, seed)[-1] < 0.5


def test_padding_changes_the_output_of_batch_norm_only() -> None:
    padding, changes = norms.padding_effect([8, 16, 32])
    assert padding == [0, 7 / 16, 21 / 32]
    assert changes["layer norm"] == [0, 0, 0]
    assert (
        changes["batch norm"][0] == 0 and 0.2 < changes["batch norm"][1] < changes["batch norm"][2]
    )


def test_every_measurement_is_printed_and_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norms, "DEPTHS", [2, 3])
    monkeypatch.setattr(norm_charts, "DEPTHS", [2, 3])
    monkeypatch.setattr(norms, "SEEDS", 1)
    monkeypatch.setattr(norms, "UPDATES", 25)
    before = torch.get_rng_state()
    measured = norms.measure()
    assert torch.equal(torch.get_rng_state(), before)
    report = norms.report(measured)
    assert len([line for line in report if line.startswith(("pre, ", "post, "))]) == 4 + 3
    by_layer, last, ratio, shifts, losses, changes = norm_charts.draw(measured).axes
    assert [len(line.get_ydata()) for line in by_layer.lines] == [3, 3]
    assert list(last.lines[1].get_ydata()) == [layers[-1] for layers in measured.gradients["post"]]
    assert list(ratio.lines[0].get_ydata()) == [
        layers[-1] / layers[0] for layers in measured.gradients["pre"]
    ]
    assert list(shifts.lines[1].get_ydata()) == measured.shifts["post"]
    assert [list(line.get_ydata()) for line in losses.lines] == list(measured.losses.values())
    assert [list(line.get_ydata()) for line in changes.lines] == list(measured.changes.values())
