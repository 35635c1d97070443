"""Trace: attention weights by the path of the part that computed them."""

import torch

from seq2see.layers.trace import Trace, keep


def test_a_part_adds_its_prefix_and_fills_the_whole_trace() -> None:
    trace = Trace()
    part = trace.at("decoder.2")
    keep(part, "cross", torch.ones(1))
    keep(part.at("inner"), "self", torch.zeros(2))
    keep(trace, "top", torch.ones(3))
    assert {name: len(weights) for name, weights in trace.weights.items()} == {
        "decoder.2.cross": 1,
        "decoder.2.inner.self": 2,
        "top": 3,
    }


def test_weights_that_were_not_computed_leave_no_entry() -> None:
    trace = Trace()
    keep(trace.at("encoder.0"), "self", None)
    assert trace.weights == {}


def test_kept_weights_hold_no_graph() -> None:
    trace = Trace()
    keep(trace, "self", torch.ones(2, requires_grad=True).softmax(0))
    assert not trace.weights["self"].requires_grad


def test_two_traces_share_nothing() -> None:
    first, second = Trace(), Trace()
    keep(first.at("encoder.0"), "self", torch.ones(1))
    assert second.weights == {}
