"""The contract of all translation models: steps, hypotheses, padding, companions and traces."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from seq2see.batches import Batch, collate
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import beam_search, greedy
from seq2see.layers.real_rows import RealRows
from seq2see.layers.trace import Trace
from seq2see.text.specials import END, PAD

EXACT = {torch.float32: 1e-5, torch.float64: 1e-9}
CLOSE = {torch.float32: 1e-4, torch.float64: 1e-9}
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


@types
def test_step_by_step_equals_forward(tiny: Any, dtype: torch.dtype) -> None:
    model, batch = tiny.model(dtype), tiny.batch()
    expected = model(batch)
    assert expected.shape == (3, 8, tiny.target_size)
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        assert logits.shape == (3, 1, tiny.target_size)
        close(logits[:, 0], expected[:, t], EXACT[dtype])


@settings(max_examples=10)
@given(cuts=st.sets(st.integers(1, 7)))
def test_steps_of_any_sizes_equal_forward(tiny: Any, cuts: set[int]) -> None:
    model, batch = tiny.model(), tiny.batch()
    state = model.start(model.encode(batch.source))
    pieces = []
    for ids in batch.target_in.tensor_split(sorted(cuts), dim=1):
        logits, state = model.step(state, ids)
        pieces.append(logits)
    close(torch.cat(pieces, 1), model(batch), 1e-9)


def test_a_later_target_token_never_changes_an_earlier_logit(tiny: Any, check_causal: Any) -> None:
    check_causal(tiny.model(), tiny.batch())


def test_every_source_token_and_its_position_matter(tiny: Any) -> None:
    model, batch = tiny.model(), tiny.batch(0)
    before = model(batch)

    def difference(source: Tensor) -> Tensor:
        after = model(Batch(source, batch.target_in, batch.target_out, [0]))
        return (after - before).abs().amax(-1)[0]  # (T,)

    for s in range(batch.source.shape[1]):
        changed = batch.source.clone()
        changed[:, s] = 10
        assert difference(changed).max() > (1e-4 if tiny.kind == "transformer" else 1e-6)
        if tiny.attends:
            assert difference(changed).min() > 1e-7
    for order in ([1, 0, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]):
        assert difference(batch.source[:, order]).max() > 1e-4


@types
@pytest.mark.parametrize("traced", [False, True])
def test_other_companions_of_the_same_shape_leave_the_same_bits(
    tiny: Any, dtype: torch.dtype, traced: bool
) -> None:
    model = tiny.model(dtype)
    first, second, third = tiny.pairs
    replaced = ([9] * len(second[0]), [10] * len(second[1]))
    longer = ([*third[0], 4], [*third[1], 5, 5])  # less padding, but the batch keeps its shape
    batch = tiny.batch()
    other = collate([first, replaced, longer], range(3))
    assert batch.source.shape == other.source.shape
    assert batch.target_in.shape == other.target_in.shape
    left, right = (model(companions, Trace() if traced else None) for companions in (batch, other))
    assert torch.equal(left[0], right[0])
    assert not torch.equal(left[1], right[1])


@types
def test_garbage_in_the_padding_leaves_the_same_bits(tiny: Any, dtype: torch.dtype) -> None:
    model, batch = tiny.model(dtype), tiny.batch()
    real = batch.target_out != PAD
    before = model(batch)[real]
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight[PAD] = 1000 * torch.randn(tiny.width)
    assert torch.equal(model(batch)[real], before)


@types
def test_other_shapes_change_next_to_nothing(tiny: Any, dtype: torch.dtype) -> None:
    model = tiny.model(dtype)
    together = model(tiny.batch())
    for line, (_, target) in enumerate(tiny.pairs):
        alone = model(tiny.batch(line))[0]
        close(together[line, : len(target) + 1], alone, CLOSE[dtype])


def test_states_become_logits_and_need_no_padding(tiny: Any) -> None:
    model, batch = tiny.model(), tiny.batch()
    states = model.states(batch)
    assert states.shape == (3, 8, tiny.width)
    assert torch.equal(model.output(states), model(batch))
    rows = model.states(batch, layout=RealRows)
    close(rows, states[batch.target_out != PAD], 1e-12)


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 2], [2], []], ids=str)
def test_select_reorders_repeats_and_shrinks(tiny: Any, rows: list[int]) -> None:
    model, batch = tiny.model(), tiny.batch()
    begin, end = batch.target_in[:, :3], batch.target_in[:, 3:]
    fresh = model.start(model.encode(batch.source))
    _, state = model.step(fresh, begin)
    expected, _ = model.step(state, end)
    assert torch.equal(model.step(state, end)[0], expected)  # a step leaves the state it was given
    pick = torch.tensor(rows, dtype=torch.long)
    logits, _ = model.step(state.select(pick), end[pick])
    close(logits, expected[pick], 1e-9)
    again, _ = model.step(fresh.select(pick), batch.target_in[pick])  # also before the first token
    close(again[:, 3:], expected[pick], 1e-9)


def memory_sizes(state: Any) -> set[int]:
    """Number of sentences in the memory, by each of its tensors."""
    memories = state.memory if isinstance(state.memory, list) else [state.memory]
    return {len(x) for memory in memories for x in (memory.keys, memory.values, memory.mask)}


def test_hypotheses_of_one_sentence_share_its_memory(tiny: Any) -> None:
    model, batch = tiny.model(), tiny.batch()
    fresh = model.start(model.encode(batch.source))
    begin, end = batch.target_in[:, :3], batch.target_in[:, 3:]
    expected, _ = model.step(model.step(fresh, begin)[1], end)
    twice = torch.arange(3).repeat_interleave(2)
    state = fresh.select(twice)
    assert state.memory is fresh.memory
    _, state = model.step(state, begin[twice])
    for rows, sentences in (
        ([1, 0, 3, 3, 5, 4], 3),
        ([0, 1, 5, 5], 2),
        ([0, 1, 5], 3),
        ([4, 0], 2),
        ([2, 3, 2], 1),
    ):
        pick = torch.tensor(rows)
        chosen = state.select(pick)
        assert memory_sizes(chosen) == {sentences}
        logits, after = model.step(chosen, end[pick // 2])
        close(logits, expected[pick // 2], 1e-9)
        again, _ = model.step(after.select(torch.arange(len(rows))), end[pick // 2][:, :1])
        assert again.shape == (len(rows), 1, tiny.target_size)


@pytest.mark.parametrize("beam", [1, 3])
def test_greedy_and_beam_search_find_the_same_alone_and_together(tiny: Any, beam: int) -> None:
    model, config = tiny.model(), Search(beam=beam)
    find = greedy if beam == 1 else beam_search
    together = find(model, tiny.batch().source, config)
    for (source, _), hypotheses in zip(tiny.pairs, together, strict=True):
        alone = find(model, torch.tensor([[*source, END]]), config)[0]
        assert [one.ids for one in alone] == [one.ids for one in hypotheses]
        batch = collate([(source, one.ids) for one in alone], range(len(alone)))
        logits, targets = model(batch).mT, batch.target_out
        log_p = -functional.cross_entropy(logits, targets, ignore_index=PAD, reduction="none")
        for row, one in zip(log_p, alone, strict=True):
            ended = float(row[: len(one.ids) + 1].sum().detach())
            assert ended == pytest.approx(one.log_probability, abs=1e-6)


def attentions(tiny: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all attention weights of the batch."""
    if not tiny.has_blocks:
        layers = tiny.decoder_layers if tiny.kind == "conv" else int(tiny.attends)
        return {f"decoder.{i}.cross": (3, 1, 8, 6) for i in range(layers)}
    layers = tiny.encoder_layers if tiny.kind == "prefix" else tiny.decoder_layers
    shapes = {f"encoder.{i}.self": (3, tiny.heads, 6, 6) for i in range(tiny.encoder_layers)}
    shapes |= {f"decoder.{i}.self": (3, tiny.heads, 8, 8) for i in range(layers)}
    return shapes | {f"decoder.{i}.cross": (3, tiny.heads, 8, 6) for i in range(layers)}


def test_a_trace_names_every_attention_and_holds_weights_that_sum_to_one(tiny: Any) -> None:
    model, batch, trace = tiny.model(), tiny.batch(), Trace()
    close(model(batch, trace), model(batch), 1e-9)
    shapes = {name: tuple(weights.shape) for name, weights in trace.weights.items()}
    assert shapes == attentions(tiny)
    totals = {name: weights.sum(-1) for name, weights in trace.weights.items()}
    if tiny.kind == "prefix":  # one softmax over both sides
        for i in range(tiny.encoder_layers):
            totals[f"decoder.{i}.self"] += totals.pop(f"decoder.{i}.cross")
    for total in totals.values():
        close(total, torch.ones_like(total), 1e-9)
    padding = (batch.source == PAD)[:, None, None]
    for name, weights in trace.weights.items():
        if name.startswith("decoder") and name.endswith("self"):
            assert not weights.triu(1).any()
        else:
            assert not weights[padding.expand_as(weights)].any()
