"""Wrong shapes, dtypes and sizes: refused in one line with the name, the value and the rule."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.masks import padding_mask
from seq2see.layers.positions import LearnedPositions
from seq2see.layers.real_rows import RealRows
from seq2see.layers.scores import SCORES, Additive, Bilinear, Projected, Score, dot, scaled_dot
from seq2see.layers.shapes import check_attention, check_product, check_sequence, head_size

B, H, T, S, K, KV, WIDTH, HEADS = 2, 3, 5, 7, 4, 6, 12, 3
QUERY, KEY, VALUE = (B, H, T, K), (B, H, S, K), (B, H, S, KV)

paths = pytest.mark.parametrize("need_weights", [True, False], ids=["open", "fused"])


def refused(line: str, call: Callable[..., object], *given: Any, **keys: Any) -> None:
    with pytest.raises(TypeError if "dtype" in line else ValueError, match=f"^{re.escape(line)}$"):
        call(*given, **keys)


def ones(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.ones(shape) for shape in shapes]


@paths
@pytest.mark.parametrize(
    ("query", "key", "value", "line"),
    [
        ((K,), KEY, VALUE, "query has shape (4,); it must be (..., length, size)"),
        (QUERY, (K,), VALUE, "key has shape (4,); it must be (..., length, size)"),
        (QUERY, KEY, (), "value has shape (); it must be (..., length, size)"),
        (QUERY, KEY, (B, H, S - 1, KV), "key has 7 positions and value 6; they must be equal"),
        (
            (3, H, T, K),
            KEY,
            VALUE,
            "query, key and value are for (3, 3), (2, 3) and (2, 3) sentences and heads",
        ),
        (
            QUERY,
            (B, 2, S, K),
            VALUE,
            "query, key and value are for (2, 3), (2, 2) and (2, 3) sentences and heads",
        ),
        (
            QUERY,
            KEY,
            (4, S, KV),
            "query, key and value are for (2, 3), (2, 3) and (4,) sentences and heads",
        ),
        ((B, H, T, 3), KEY, VALUE, "query has size 3 and key 4; their product needs equal sizes"),
    ],
)
def test_queries_keys_and_values_that_do_not_match(
    query: Any, key: Any, value: Any, line: str, need_weights: bool
) -> None:
    refused(line, attend, *ones(query, key, value), need_weights=need_weights)


@paths
@pytest.mark.parametrize(
    "shape",
    [
        (S + 1,),
        (T,),
        (T, S - 1),
        (S, T),
        (2, S),
        (T, 2),
        (B, T, S),
        (B, 2, T, S),
        (3, H, T, S),
        (1, B, H, T, S),
    ],
    ids=str,
)
def test_a_mask_or_bias_that_does_not_fit(shape: tuple[int, ...], need_weights: bool) -> None:
    line = f"has shape {shape}; it must broadcast to (..., T, S) = (2, 3, 5, 7)"
    given = ones(QUERY, KEY, VALUE)
    refused(f"mask {line}", attend, *given, torch.ones(shape).bool(), need_weights=need_weights)
    refused(f"bias {line}", attend, *given, bias=torch.ones(shape), need_weights=need_weights)


@paths
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_a_mask_that_is_not_bool(dtype: torch.dtype, need_weights: bool) -> None:
    line = f"mask has dtype {dtype}; it must be bool, True = may attend"
    mask = torch.ones(T, S, dtype=dtype)
    refused(line, attend, *ones(QUERY, KEY, VALUE), mask, need_weights=need_weights)


@paths
@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_a_dropout_outside_its_range(share: float, need_weights: bool) -> None:
    line = f"dropout is {share}; it must be at least 0 and less than 1"
    refused(line, attend, *ones(QUERY, KEY, VALUE), dropout=share, need_weights=need_weights)


@paths
@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        (QUERY, KEY, VALUE),
        ((T, K), (S, K), (S, KV)),
        ((T, K), KEY, VALUE),
        (QUERY, (S, K), (S, KV)),
        ((B, 1, T, K), (H, S, K), (1, H, S, KV)),
        ((B, H, 0, K), KEY, VALUE),
        (QUERY, (B, H, 0, K), (B, H, 0, KV)),
        ((0, H, T, K), (0, H, S, K), (0, H, S, KV)),
    ],
    ids=str,
)
def test_shapes_that_broadcast_are_accepted(
    query: Any, key: Any, value: Any, need_weights: bool
) -> None:
    given = ones(query, key, value)
    output, weights = attend(
        *given, torch.ones(query[-2], key[-2]).bool(), need_weights=need_weights
    )
    lead = torch.broadcast_shapes(query[:-2], key[:-2], value[:-2])
    assert output.shape == (*lead, query[-2], KV)
    assert not need_weights or (weights is not None and weights.shape[-2:] == (query[-2], key[-2]))


def test_the_checks_accept_fitting_shapes() -> None:
    check_attention(*ones(QUERY, KEY, VALUE), torch.ones(B, 1, 1, S).bool(), torch.ones(H, T, S))
    check_product(*ones(QUERY, KEY))
    check_sequence("query", torch.ones(B, T, WIDTH), WIDTH)
    assert (head_size(WIDTH, HEADS, None, None, None), head_size(WIDTH, HEADS, 9, None, None)) == (
        4,
        3,
    )


@pytest.mark.parametrize("score", [dot, scaled_dot])
def test_a_product_of_different_sizes(score: Score) -> None:
    refused(
        "query has size 4 and key 6; their product needs equal sizes", score, *ones((T, K), (S, KV))
    )


@pytest.mark.parametrize("heads", [None, H])
def test_a_score_made_for_other_sizes(heads: int | None) -> None:
    lead = () if heads is None else (B, H)
    for score in (Additive(K, KV, 9, heads), Projected(K, KV, 9, heads), Bilinear(K, KV, heads)):
        refused(
            "query has size 5; this score was made for 4",
            score,
            *ones((*lead, T, 5), (*lead, S, KV)),
        )
    for score in (Additive(K, KV, 9, heads), Projected(K, KV, 9, heads)):
        refused(
            "key has size 5; this score was made for 6", score, *ones((*lead, T, K), (*lead, S, 5))
        )
    line = "query has size 6 and key 5; their product needs equal sizes"
    refused(line, Bilinear(K, KV, heads), *ones((*lead, T, K), (*lead, S, 5)))


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"heads": 5}, "width (12) must be divisible by heads (5)"),
        ({"heads": 24}, "width (12) must be divisible by heads (24)"),
        ({"heads": 0}, "heads (0) must be at least 1"),
        ({"heads": -3}, "heads (-3) must be at least 1"),
        ({"inner": 0}, "inner (0) must be at least 1"),
        ({"key_width": 0}, "key_width (0) must be at least 1"),
        ({"value_width": -1}, "value_width (-1) must be at least 1"),
        ({"dropout": 1.5}, "dropout is 1.5; it must be at least 0 and less than 1"),
        ({"inner": 10}, "inner (10) must be divisible by heads (3)"),
        ({"score": "cosine"}, f"score is 'cosine'; it must be one of {', '.join(SCORES)}"),
        ({"inner": 9, "rotary": True}, "width (3) must be even: each sine has its cosine"),
    ],
)
def test_an_attention_that_cannot_be_made(keys: dict[str, Any], line: str) -> None:
    refused(line, MultiHeadAttention, WIDTH, **{"heads": HEADS, **keys})


@paths
@pytest.mark.parametrize(
    ("query", "key", "value", "line"),
    [
        (
            (T, WIDTH),
            (B, S, 9),
            (B, S, 8),
            "query has shape (5, 12); it must be (batch, length, 12)",
        ),
        (
            (B, T, 9),
            (B, S, 9),
            (B, S, 8),
            "query has shape (2, 5, 9); it must be (batch, length, 12)",
        ),
        (
            (B, T, WIDTH),
            (B, S, WIDTH),
            (B, S, 8),
            "key has shape (2, 7, 12); it must be (batch, length, 9)",
        ),
        (
            (B, T, WIDTH),
            (1, B, S, 9),
            (B, S, 8),
            "key has shape (1, 2, 7, 9); it must be (batch, length, 9)",
        ),
        (
            (B, T, WIDTH),
            (B, S, 9),
            (B, S, 9),
            "value has shape (2, 7, 9); it must be (batch, length, 8)",
        ),
        (
            (B, T, WIDTH),
            (B, S, 9),
            (B, S - 1, 8),
            "key has 7 positions and value 6; they must be equal",
        ),
        (
            (3, T, WIDTH),
            (B, S, 9),
            (B, S, 8),
            "query, key and value are for (3, 3), (2, 3) and (2, 3) sentences and heads",
        ),
    ],
)
def test_inputs_of_wrong_shapes(
    query: Any, key: Any, value: Any, line: str, need_weights: bool
) -> None:
    layer = MultiHeadAttention(WIDTH, HEADS, key_width=9, value_width=8)
    refused(line, layer, *ones(query, key, value), need_weights=need_weights)


@paths
def test_a_mask_without_an_axis_for_heads(need_weights: bool) -> None:
    layer, query, memory = (
        MultiHeadAttention(WIDTH, HEADS),
        torch.ones(B, T, WIDTH),
        torch.ones(B, S, WIDTH),
    )
    mask = torch.ones(B, T, S).bool()  # of the batch, but without an axis for the heads
    line = "mask has shape (2, 5, 7); it must broadcast to (..., T, S) = (2, 3, 5, 7)"
    refused(line, layer, query, memory, memory, mask, need_weights=need_weights)
    line = "mask has dtype torch.float32; it must be bool, True = may attend"
    refused(line, layer, query, memory, memory, mask[0].float(), need_weights=need_weights)
    layer(query, memory, memory, padding_mask(torch.ones(B, S), 0), need_weights=need_weights)


def test_real_rows_are_tokens_by_width() -> None:
    rows = RealRows(torch.ones(B, T).bool())
    layer = EncoderLayer(MultiHeadAttention(WIDTH, HEADS), FeedForward(WIDTH, 10))
    line = "x has shape {}; it must be (tokens, 12)"
    refused(line.format((2, 5, 12)), layer, torch.ones(B, T, WIDTH), rows=rows)
    refused(line.format((10, 9)), layer, torch.ones(B * T, 9), rows=rows)
    assert layer(torch.ones(B * T, WIDTH), rows=rows).shape == (B * T, WIDTH)


def test_layers_name_the_misfit() -> None:
    encoder = EncoderLayer(MultiHeadAttention(WIDTH, HEADS), FeedForward(WIDTH, 10), norm="post")
    refused("x has shape (2, 5, 9); it must be (batch, length, 12)", encoder, torch.ones(B, T, 9))
    decoder = DecoderLayer(
        *(MultiHeadAttention(WIDTH, HEADS) for _ in range(2)), FeedForward(WIDTH, 10)
    )
    x, memory = torch.ones(B, T, WIDTH), torch.ones(B, S, WIDTH)
    projected = decoder.cross_attention.project(memory, memory)
    line = "mask has shape (7, 7); it must broadcast to (..., T, S) = (2, 3, 5, {})"
    refused(line.format(5), decoder, x, projected, mask=torch.ones(S, S).bool())
    refused(line.format(7), decoder, x, replace(projected, mask=torch.ones(S, S).bool()))
    line = "bias has shape (7, 7); it must broadcast to (..., T, S) = (2, 3, 5, 7)"
    refused(line, decoder, x, replace(projected, bias=torch.ones(S, S)))
    other = MultiHeadAttention(WIDTH, 2).project(memory, memory)
    refused(
        "query, key and value are for (2, 3), (2, 2) and (2, 2) sentences and heads",
        decoder,
        x,
        other,
    )
    other = MultiHeadAttention(WIDTH, HEADS, inner=9).project(memory, memory)
    refused("query has size 4 and key 3; their product needs equal sizes", decoder, x, other)


def test_a_layer_of_two_widths() -> None:
    line = (
        "the attentions and the feed-forward have widths (12, 9); in one layer they must be equal"
    )
    refused(line, EncoderLayer, MultiHeadAttention(WIDTH, HEADS), FeedForward(9, 10))
    attentions = MultiHeadAttention(WIDTH, HEADS), MultiHeadAttention(9, HEADS)
    widths = "the attentions and the feed-forward have widths (12, 9, 12)"
    refused(
        f"{widths}; in one layer they must be equal",
        DecoderLayer,
        *attentions,
        FeedForward(WIDTH, 10),
    )


@paths
def test_types_that_do_not_meet(need_weights: bool) -> None:
    query, key, value = ones(QUERY, KEY, VALUE)
    line = "query, key and value have dtypes torch.float64, torch.float32 and torch.float32"
    refused(line, attend, query.double(), key, value, need_weights=need_weights)
    for dtype in (torch.bool, torch.int64, torch.float64):
        line = f"bias has dtype {dtype}; it must be the query's torch.float32"
        refused(
            line,
            attend,
            query,
            key,
            value,
            bias=torch.ones(T, S, dtype=dtype),
            need_weights=need_weights,
        )


@paths
def test_a_mask_for_more_sentences_than_there_are(need_weights: bool) -> None:
    query, key, value = ones((1, H, T, K), (1, H, S, K), (1, H, S, KV))
    line = "mask has shape (5, 1, 5, 7); it must broadcast to (..., T, S) = (1, 3, 5, 7)"
    refused(
        line, attend, query, key, value, torch.ones(5, 1, T, S).bool(), need_weights=need_weights
    )


def test_a_nan_in_the_bias_is_seen_on_both_paths() -> None:
    bias = torch.zeros(T, S)
    bias[0, 0] = torch.nan
    for need_weights in (True, False):
        output, _ = attend(*ones(QUERY, KEY, VALUE), bias=bias, need_weights=need_weights)
        assert output[:, :, 0].isnan().all() and not output[:, :, 1:].isnan().any()


def test_rotary_attention_with_fewer_keys_than_queries() -> None:
    x = torch.ones(B, T, WIDTH)
    line = "2 more queries than keys; both must belong to one sequence"
    refused(line, MultiHeadAttention(WIDTH, HEADS, rotary=True), x, x[:, :3], x[:, :3])


def test_a_score_made_for_other_heads() -> None:
    for score in (Additive(K, KV, 9, H), Projected(K, KV, 9, H), Bilinear(K, KV, H)):
        for lead in ((B, 2), ()):
            line = f"query has shape {(*lead, T, K)}; this score was made for 3 heads"
            refused(line, score, *ones((*lead, T, K), (*lead, S, KV)))


def test_more_positions_than_were_learned() -> None:
    positions = LearnedPositions(6, WIDTH)
    assert positions(2, torch.ones(B, 4, WIDTH)).shape == (4, WIDTH)
    refused("a sentence has 7 positions; 6 were learned", positions, 2, torch.ones(B, 5, WIDTH))
