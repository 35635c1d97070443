"""Norms, measured: what is known of pre and post holds for our layers."""

from itertools import pairwise

import pytest
import torch

from seq2see.see import norm_charts, norms


@pytest.fixture(autouse=True)
def own_randomness() -> None:
    torch.manual_seed(0)


def test_the_last_layers_gradient_shrinks_with_depth_in_pre_and_not_in_post() -> None:
    last = {
        (norm, depth): norms.gradients(depth, norm)[-1]
        for norm in ("pre", "post")
        for depth in (2, 12)
    }
    assert last["pre", 12] < 0.75 * last["pre", 2]
    assert last["post", 12] > last["post", 2]
    assert last["post", 12] > 2 * last["pre", 12]


def test_in_pre_gradients_shrink_from_layer_to_layer() -> None:
    found = norms.gradients(12, "pre")
    assert len(found) == 12
    assert found[-1] < 0.5 * found[0]
    assert all(b < 1.1 * a for a, b in pairwise(found))


def test_a_small_step_carries_farther_the_deeper_a_post_stack_is() -> None:
    moved = {norm: norms.moved(12, norm) / norms.moved(2, norm) for norm in ("pre", "post")}
    assert moved["post"] > 6**0.5 > 2.2 > moved["pre"]


def test_post_learns_with_warm_up_alone_and_pre_without() -> None:
    seed = 2  # the picture's is 1
    assert norms.learn("pre", 1, seed)[-1] < 0.1
    assert norms.learn("post", 1, seed)[-1] > 1.5
    assert norms.learn("post", norms.WARMUP, seed)[-1] < 0.5


def test_padding_changes_what_batch_norm_gives_and_not_what_layer_norm_gives() -> None:
    padding, changed = norms.companions([8, 16, 32])
    assert padding == [0, 7 / 16, 21 / 32]
    assert changed["layer norm"] == [0, 0, 0]
    assert (
        changed["batch norm"][0] == 0 and 0.2 < changed["batch norm"][1] < changed["batch norm"][2]
    )


def test_every_figure_is_printed_and_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norms, "DEPTHS", [2, 3])
    monkeypatch.setattr(norm_charts, "DEPTHS", [2, 3])
    monkeypatch.setattr(norms, "SEEDS", 1)
    monkeypatch.setattr(norms, "UPDATES", 25)
    before = torch.get_rng_state()
    found = norms.measure()
    assert torch.equal(torch.get_rng_state(), before)
    lines = norms.lines(found)
    assert len([line for line in lines if line.startswith(("pre, ", "post, "))]) == 4 + 3
    by_layer, last, ratio, moved, losses, companions = norm_charts.draw(found).axes
    assert [len(line.get_ydata()) for line in by_layer.lines] == [3, 3]
    assert list(last.lines[1].get_ydata()) == [each[-1] for each in found.gradients["post"]]
    assert list(ratio.lines[0].get_ydata()) == [
        each[-1] / each[0] for each in found.gradients["pre"]
    ]
    assert list(moved.lines[1].get_ydata()) == found.moved["post"]
    assert [list(line.get_ydata()) for line in losses.lines] == list(found.losses.values())
    assert [list(line.get_ydata()) for line in companions.lines] == list(found.changed.values())
