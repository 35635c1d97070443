"""The Transformer: written out by hand, one token at a time, beside others, and at its start."""

import math
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch, IdPair, collate
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import Residual
from seq2see.layers.positions import sinusoidal
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.models.build import build
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig, Recipe
from seq2see.text.specials import BEGIN, END, PAD

WIDTH, HEADS, INNER, ENCODER, DECODER, SOURCE, TARGET = 12, 3, 10, 3, 2, 17, 19
PAIRS: list[IdPair] = [
    ([4, 9, 16, 5, 5], [7, 18, 4]),
    ([8, 3], [11, 12, 13, 14, 4, 6, 7]),
    ([6, 7, 8, 4], [5]),
]
EXACT = {torch.float32: 1e-5, torch.float64: 1e-9}

norms = pytest.mark.parametrize("norm", ["pre", "post"])
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def config(**keys: Any) -> ModelConfig:
    sizes = {
        "width": WIDTH,
        "heads": HEADS,
        "feed_forward": INNER,
        "encoder_layers": ENCODER,
        "decoder_layers": DECODER,
    }
    return ModelConfig.model_validate(sizes | {"dropout": 0.0} | keys)


def model_of(dtype: torch.dtype = torch.float64, tie: str = "none", **keys: Any) -> Transformer:
    torch.manual_seed(7)
    sizes = (TARGET, TARGET) if tie == "all" else (SOURCE, TARGET)
    model = Transformer(config(**keys), *sizes, tie).to(dtype).eval()
    with (
        torch.no_grad()
    ):  # biases and norms start at 0 and 1, where a forgotten or swapped one would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def batch_of(*lines: int) -> Batch:
    return collate(PAIRS, lines or range(len(PAIRS)))


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def by_hand(model: Transformer, source: Tensor, target: Tensor, pre: bool) -> Tensor:
    """The paper's figure 1 for one sentence, in the order it is drawn."""

    def look(attention: MultiHeadAttention, query: Tensor, seen: Tensor, hidden: Tensor) -> Tensor:
        heads = []
        for q, k, v in zip(
            *(
                part(x).chunk(HEADS, -1)
                for part, x in zip(attention.children(), (query, seen, seen), strict=False)
            ),
            strict=True,
        ):
            heads.append((q @ k.T / math.sqrt(WIDTH / HEADS) + hidden).softmax(-1) @ v)
        return attention.output(torch.cat(heads, -1))  # type: ignore[no-any-return]

    def around(residual: Residual, x: Tensor, sublayer: Any) -> Tensor:
        norm = residual.norm
        return x + sublayer(norm(x)) if pre else norm(x + sublayer(x))

    def embed(embedding: nn.Module, ids: Tensor) -> Tensor:
        return embedding(ids) * math.sqrt(WIDTH) + sinusoidal(len(ids), WIDTH)

    nothing = torch.zeros((), dtype=torch.float64)
    future = torch.full((len(target), len(target)), float("-inf"), dtype=torch.float64).triu(1)
    memory = embed(model.source_embedding, source)
    for encoder in model.encoder:
        memory = around(
            encoder.self_residual,
            memory,
            lambda x, e=encoder: look(e.self_attention, x, x, nothing),
        )
        memory = around(encoder.feed_forward_residual, memory, encoder.feed_forward)
    memory = model.encoder_norm(memory) if pre else memory
    y = embed(model.target_embedding, target)
    for decoder in model.decoder:
        y = around(
            decoder.self_residual, y, lambda x, d=decoder: look(d.self_attention, x, x, future)
        )
        y = around(
            decoder.cross_residual,
            y,
            lambda x, d=decoder: look(d.cross_attention, x, memory, nothing),
        )
        y = around(decoder.feed_forward_residual, y, decoder.feed_forward)
    return model.output(model.decoder_norm(y) if pre else y)  # type: ignore[no-any-return]


@norms
def test_forward_is_the_paper_written_out_sentence_by_sentence(norm: str) -> None:
    model = model_of(norm=norm)
    logits = model(batch_of())
    assert logits.shape == (3, 8, TARGET)
    for row, (source, target) in enumerate(PAIRS):
        expected = by_hand(
            model, torch.tensor([*source, END]), torch.tensor([BEGIN, *target]), norm == "pre"
        )
        close(logits[row, : len(target) + 1], expected, 1e-9)


@types
@norms
def test_step_by_step_equals_forward(dtype: torch.dtype, norm: str) -> None:
    model, batch = model_of(dtype, norm=norm), batch_of()
    expected = model(batch)
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        assert logits.shape == (3, 1, TARGET)
        close(logits[:, 0], expected[:, t], EXACT[dtype])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
@pytest.mark.parametrize("score", list(SCORES))
def test_every_score_and_every_kind_of_position_is_the_same_step_by_step(
    score: str, positions: str
) -> None:
    model = model_of(score=score, positions=positions, attention_width=18, attention_bias=False)
    batch = batch_of()
    expected = model(batch)
    trace = Trace()
    close(model(batch, trace), expected, 1e-9)
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        close(logits[:, 0], expected[:, t], 1e-9)
    functional.cross_entropy(
        expected.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    ).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and float(parameter.grad.abs().max()) > 1e-8, name
    others = model_of(
        score="scaled_dot", positions=positions, attention_width=18, attention_bias=False
    )
    assert (score == "scaled_dot") == torch.equal(others(batch), expected)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_every_kind_of_position_tells_the_order(positions: str) -> None:
    model, batch = model_of(positions=positions), batch_of(0)
    for places in ([1, 0, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]):
        moved = Batch(batch.source[:, places], batch.target_in, batch.target_out, [0])
        assert (model(moved) - model(batch)).abs().max() > 1e-4


def test_learned_positions_end_where_they_end() -> None:
    model, batch = model_of(positions="learned", max_positions=7), batch_of()
    assert model.source_positions.embedding.weight.shape == (7, WIDTH)  # type: ignore[union-attr]
    model.encode(batch.source)
    with pytest.raises(ValueError, match=r"^a sentence has 8 positions; 7 were learned$"):
        model(batch)


def test_rotary_positions_need_no_weights_and_leave_the_memory_alone() -> None:
    names = {name for name, _ in model_of(positions="none").named_parameters()}
    model = model_of(positions="rotary")
    assert {name for name, _ in model.named_parameters()} == names
    for layer in model.decoder:
        assert layer.self_attention.rotary is not None and layer.cross_attention.rotary is None


@settings(deadline=None, max_examples=20)
@given(cuts=st.sets(st.integers(1, 7)))
def test_steps_of_any_sizes_equal_forward(cuts: set[int]) -> None:
    model, batch = model_of(), batch_of()
    state = model.start(model.encode(batch.source))
    pieces = []
    for ids in batch.target_in.tensor_split(sorted(cuts), dim=1):
        logits, state = model.step(state, ids)
        pieces.append(logits)
    close(torch.cat(pieces, 1), model(batch), 1e-9)


@norms
def test_a_later_target_token_never_changes_an_earlier_logit(norm: str) -> None:
    model, batch = model_of(norm=norm), batch_of()
    before = model(batch)
    for t in range(1, batch.target_in.shape[1]):
        changed = batch.target_in.clone()
        changed[:, t:] = 15
        after = model(Batch(batch.source, changed, batch.target_out, batch.lines))
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


def test_every_source_token_matters_and_so_does_its_place() -> None:
    model, batch = model_of(), batch_of(0)
    before = model(batch)
    for s in range(batch.source.shape[1]):
        changed = batch.source.clone()
        changed[:, s] = 10
        assert (
            model(Batch(changed, batch.target_in, batch.target_out, [0])) - before
        ).abs().max() > 1e-4
    swapped = Batch(batch.source[:, [1, 0, 2, 3, 4, 5]], batch.target_in, batch.target_out, [0])
    assert (model(swapped) - before).abs().max() > 1e-4
    bag = model_of(positions="none")
    close(bag(swapped), bag(batch), 1e-9)  # without positions attention does not know the order


@types
@norms
@pytest.mark.parametrize("traced", [False, True], ids=["fused", "open"])
def test_other_companions_of_the_same_shape_leave_the_same_bits(
    dtype: torch.dtype, norm: str, traced: bool
) -> None:
    model = model_of(dtype, norm=norm)
    others = [([9] * len(source), [10] * len(target)) for source, target in PAIRS]
    here, there = collate(PAIRS, [0, 1, 2]), collate([PAIRS[0], others[1], others[2]], [0, 1, 2])
    left, right = (model(batch, Trace() if traced else None) for batch in (here, there))
    assert torch.equal(left[0], right[0])
    assert not torch.equal(left[1], right[1])


@types
@norms
def test_garbage_in_the_padding_leaves_the_same_bits(dtype: torch.dtype, norm: str) -> None:
    model, batch = model_of(dtype, norm=norm), batch_of()
    real = batch.target_out != PAD
    before = model(batch)[real]
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], before)


@types
def test_other_shapes_change_next_to_nothing(dtype: torch.dtype) -> None:
    model = model_of(dtype)
    together = model(batch_of())
    for line, (_, target) in enumerate(PAIRS):
        alone = model(batch_of(line))[0]
        close(
            together[line, : len(target) + 1],
            alone,
            {torch.float32: 1e-4, torch.float64: 1e-9}[dtype],
        )


def test_padding_gets_no_gradient() -> None:
    model, batch = model_of(), batch_of()
    logits = model(batch)
    functional.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    ).backward()
    for embedding in (model.source_embedding, model.target_embedding):
        assert embedding.weight.grad is not None
        assert not embedding.weight.grad[PAD].any()
        assert embedding.weight.grad[4].any()


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 2], [2], []], ids=str)
def test_select_reorders_repeats_and_shrinks(rows: list[int]) -> None:
    model, batch = model_of(), batch_of()
    begin, end = batch.target_in[:, :3], batch.target_in[:, 3:]
    fresh = model.start(model.encode(batch.source))
    _, state = model.step(fresh, begin)
    expected, _ = model.step(state, end)
    pick = torch.tensor(rows, dtype=torch.long)
    logits, _ = model.step(state.select(pick), end[pick])
    close(logits, expected[pick], 1e-9)
    again, _ = model.step(fresh.select(pick), batch.target_in[pick])  # also before the first token
    close(again[:, 3:], expected[pick], 1e-9)


def test_hypotheses_of_one_sentence_share_its_memory() -> None:
    model, batch = model_of(), batch_of()
    fresh = model.start(model.encode(batch.source))
    begin, end = batch.target_in[:, :3], batch.target_in[:, 3:]
    expected, _ = model.step(model.step(fresh, begin)[1], end)
    twice = torch.arange(3).repeat_interleave(2)
    state = fresh.select(twice)
    assert state.memory is fresh.memory  # no copy of what all have in common
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
        assert len(chosen.memory_mask) == len(chosen.memory[0][0]) == sentences
        logits, after = model.step(chosen, end[pick // 2])
        close(logits, expected[pick // 2], 1e-9)
        again, _ = model.step(after.select(torch.arange(len(rows))), end[pick // 2][:, :1])
        assert again.shape == (len(rows), 1, TARGET)


def test_a_step_leaves_the_state_it_was_given() -> None:
    model, batch = model_of(), batch_of()
    _, state = model.step(model.start(model.encode(batch.source)), batch.target_in[:, :3])
    first, _ = model.step(state, batch.target_in[:, 3:])
    second, _ = model.step(state, batch.target_in[:, 3:])
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("tie", "source_is_target", "output_is_target"),
    [("all", True, True), ("target", False, True), ("none", False, False)],
)
def test_ties_share_parameters(tie: str, source_is_target: bool, output_is_target: bool) -> None:
    model = model_of(tie=tie)
    target = model.target_embedding.weight
    assert (model.source_embedding.weight is target) == source_is_target
    assert (model.output.weight is target) == output_is_target
    fresh = model_of(tie=tie)
    fresh.load_state_dict(model.state_dict())
    assert (fresh.output.weight is fresh.target_embedding.weight) == output_is_target


def test_ties_are_counted_once() -> None:
    counts = {}
    for tie in ("all", "target", "none"):
        model = Transformer(config(), TARGET, TARGET, tie)
        counts[tie] = sum(parameter.numel() for parameter in model.parameters())
    assert counts["none"] - counts["target"] == counts["target"] - counts["all"] == TARGET * WIDTH


def test_tie_all_needs_one_vocabulary() -> None:
    with pytest.raises(
        ValueError, match=r"^tie 'all' needs one vocabulary, not 17 and 19 entries$"
    ):
        Transformer(config(), SOURCE, TARGET, "all")


@norms
def test_a_trace_names_every_attention_and_holds_weights_that_sum_to_one(norm: str) -> None:
    model, batch, trace = model_of(norm=norm), batch_of(), Trace()
    close(model(batch, trace), model(batch), 1e-9)
    expected = {f"encoder.{i}.self": (3, HEADS, 6, 6) for i in range(ENCODER)}
    expected |= {f"decoder.{i}.self": (3, HEADS, 8, 8) for i in range(DECODER)}
    expected |= {f"decoder.{i}.cross": (3, HEADS, 8, 6) for i in range(DECODER)}
    assert {name: tuple(weights.shape) for name, weights in trace.weights.items()} == expected
    for name, weights in trace.weights.items():
        close(weights.sum(-1), torch.ones_like(weights.sum(-1)), 1e-9)
        if not name.startswith("decoder") or name.endswith("cross"):
            assert not weights[(batch.source == PAD)[:, None, None].expand_as(weights)].any()
        else:
            assert not weights.triu(1).any()


def test_embeddings_start_with_a_standard_deviation_of_width_to_the_minus_half() -> None:
    torch.manual_seed(0)
    for tie in ("all", "target", "none"):
        model = Transformer(config(width=48, heads=4), 3000, 3000, tie)
        for embedding in (model.source_embedding, model.target_embedding):
            assert float(embedding.weight.detach().std()) == pytest.approx(48**-0.5, rel=0.03)
        # The output is drawn in its own way only where it is a matrix of its own.
        assert (float(model.output.weight.detach().abs().max()) <= math.sqrt(6 / 3048)) == (
            tie == "none"
        )


def test_xavier_embeddings_where_the_recipe_asks_for_them() -> None:
    model = Transformer(config(embedding_init="xavier"), 3000, 2000)
    assert float(model.source_embedding.weight.detach().abs().max()) <= math.sqrt(6 / 3012)
    assert float(model.target_embedding.weight.detach().std()) == pytest.approx(
        math.sqrt(2 / 2012), rel=0.03
    )


@norms
@pytest.mark.parametrize("tie", ["all", "none"])
def test_the_first_loss_is_that_of_guessing(norm: Literal["pre", "post"], tie: str) -> None:
    torch.manual_seed(1)
    model = Transformer(config(norm=norm, width=32, heads=4), 500, 500, tie).eval()
    ids = torch.randint(4, 500, (12, 2, 15))
    batch = collate([(source.tolist(), target.tolist()) for source, target in ids], range(12))
    loss = functional.cross_entropy(model(batch).detach().flatten(0, 1), batch.target_out.flatten())
    # Logits of variance one, which tied embeddings give, cost half a nat.
    assert -0.1 < float(loss) - math.log(500) < 0.7


@norms
@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_gradients_reach_every_parameter(norm: str, tie: str) -> None:
    model, batch = model_of(norm=norm, tie=tie), batch_of()
    functional.cross_entropy(
        model(batch).flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    ).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        size = float(parameter.grad.abs().max())
        # One vector added to all keys moves all scores of a query alike: the softmax does not see it.
        assert size < 1e-12 if name.endswith("key.bias") else size > 1e-6, name


def test_pre_norm_ends_each_stack_with_a_norm_and_post_norm_with_none() -> None:
    pre, post = (
        {name for name, _ in Transformer(config(norm=norm), SOURCE, TARGET).named_parameters()}
        for norm in ("pre", "post")
    )
    assert pre - post == {
        f"{stack}_norm.{part}" for stack in ("encoder", "decoder") for part in ("weight", "bias")
    }
    assert post < pre


def test_dropout_acts_in_training_alone() -> None:
    torch.manual_seed(0)
    model, batch = Transformer(config(dropout=0.3), SOURCE, TARGET), batch_of()
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
def test_translating_before_training_does_not_stop_training(positions: str) -> None:
    """What is computed once and kept (the positions) must not carry the inference mode it was computed in."""
    model, batch = Transformer(config(positions=positions), SOURCE, TARGET), batch_of()
    with torch.inference_mode():
        model(batch)
    model(batch).sum().backward()
    assert model.target_embedding.weight.grad is not None


def test_build_gives_the_model_of_the_recipe() -> None:
    recipe = Recipe.model_validate(
        {
            "data": {"corpus": "captions"},
            "tokenizer": {"kind": "words"},
            "model": {
                "width": WIDTH,
                "heads": HEADS,
                "encoder_layers": 1,
                "decoder_layers": 2,
                "norm": "post",
            },
            "train": {"steps": 1},
        }
    )
    model = build(recipe, SOURCE, TARGET)
    assert (model.source_embedding.num_embeddings, model.target_embedding.num_embeddings) == (
        SOURCE,
        TARGET,
    )
    assert (
        model.output.weight is model.target_embedding.weight
    )  # words: two vocabularies, so the target's is tied
    names = {name for name, _ in model.named_parameters()}
    assert any(name.startswith("decoder.1.") for name in names)
    assert not any(name.startswith("encoder.1.") for name in names)
    assert dict(model.named_parameters())["encoder.0.feed_forward.expand.weight"].shape == (
        4 * WIDTH,
        WIDTH,
    )
