"""Attention and layers against others who compute the same: by hand, torch.nn, and a whole Hugging Face model."""

import math
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seq2see.batches import Batch
from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.interop import (
    attention_from_torch,
    decoder_layer_from_torch,
    encoder_layer_from_torch,
    encoder_layer_to_torch,
    mask_from_torch,
)
from seq2see.layers.masks import causal_mask
from seq2see.layers.positions import sinusoidal
from seq2see.layers.scores import dot
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import PAD

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
INF = float("inf")

types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
norms = pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def shaken(module: Any, scale: float = 0.1) -> Any:
    """Biases and norms start at 0 and 1, where a forgotten or swapped one would not show."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=scale)
    return module


# By hand


def test_cross_attention_over_a_second_matrix() -> None:
    x = [[1.0, 3.0, 2.0], [1.0, 1.0, 3.0], [1.0, 2.0, 1.0]]
    y = [[2.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    output, weights = attend(torch.tensor(x), torch.tensor(y), torch.tensor(y), score=dot)
    assert weights is not None and weights.shape == (3, 2)
    for t, query in enumerate(x):
        powers = [math.exp(sum(q * k for q, k in zip(query, key, strict=True))) for key in y]
        shares = [power / sum(powers) for power in powers]
        assert weights[t].tolist() == pytest.approx(shares, abs=1e-6)
        for i in range(3):
            expected = sum(share * value[i] for share, value in zip(shares, y, strict=True))
            assert float(output[t, i]) == pytest.approx(expected, abs=1e-6)
    # The products are 4 and 5, 5 and 4, 3 and 3.
    close(weights[:, 0], torch.tensor([0.268941, 0.731059, 0.5]), 1e-6)


def test_the_causal_table_of_four_tokens_and_its_weights_row_by_row() -> None:
    table = causal_mask(4)
    assert table.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    _, weights = attend(torch.zeros(4, 3), torch.zeros(4, 3), torch.zeros(4, 3), table)
    assert weights is not None
    even = [
        [1, 0, 0, 0],
        [1 / 2, 1 / 2, 0, 0],
        [1 / 3, 1 / 3, 1 / 3, 0],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4],
    ]
    close(weights, torch.tensor(even), 1e-6)
    query, key, value = torch.randn(3, 4, 3, dtype=torch.float64)
    output, weights = attend(query, key, value, table)
    assert weights is not None
    for t in range(4):  # each row is the softmax over what it may see, as if there were no more
        row, row_weights = attend(query[t : t + 1], key[: t + 1], value[: t + 1])
        assert row_weights is not None
        close(weights[t, : t + 1], row_weights[0], 1e-12)
        assert not weights[t, t + 1 :].any()
        close(output[t], row[0], 1e-12)


def test_eight_heads_of_64_from_512_and_back() -> None:
    layer = MultiHeadAttention(512, 8)
    with torch.no_grad():  # projections that change nothing
        for part in (layer.query, layer.key, layer.value, layer.output):
            nn.init.eye_(part.weight)
            nn.init.zeros_(part.bias)
    x = torch.randn(2, 5, 512)
    keys, values = layer.keys_values(x, x)
    assert keys.shape == values.shape == (2, 8, 5, 64)
    for head in range(8):
        close(keys[:, head], x[:, :, 64 * head : 64 * (head + 1)], 1e-5)
    output, weights = layer(
        x, x, x, torch.eye(5).bool(), need_weights=True
    )  # each position sees itself
    assert weights.shape == (2, 8, 5, 5)
    assert output.shape == (2, 5, 512)
    close(output, x, 1e-5)


# torch.nn


def hiding(shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> Tensor | None:
    """A mask of theirs that leaves the first key to everybody: where nothing is left, theirs gives NaN."""
    if kind == "none":
        return None
    hidden = torch.rand(shape) < 0.4
    hidden[..., 0] = False
    numbers = (
        torch.randn(shape, dtype=dtype) if kind == "added" else torch.zeros(shape, dtype=dtype)
    )
    return hidden if kind == "bool" else numbers.masked_fill(hidden, -INF)


def look(
    ours: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: Any,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    mask, bias = masks
    if bias is None:
        return ours(query, key, value, mask, need_weights=need_weights)  # type: ignore[no-any-return]
    queries = (
        ours.query(query).unflatten(-1, (ours.heads, -1)).transpose(1, 2)
    )  # what forward does, with a bias
    heads, weights = attend(
        queries, *ours.keys_values(key, value), mask, bias=bias, need_weights=need_weights
    )
    return ours.output(heads.transpose(1, 2).flatten(2)), weights


KINDS = st.sampled_from(["none", "bool", "hiding", "added"])


@settings(max_examples=150)
@given(
    sizes=st.tuples(
        st.integers(1, 3),
        st.integers(1, 6),
        st.integers(1, 7),
        st.integers(1, 4),
        st.integers(1, 6),
    ),
    widths=st.tuples(st.none() | st.integers(1, 9), st.none() | st.integers(1, 9)),
    to_itself=st.booleans(),
    bias=st.booleans(),
    batch_first=st.booleans(),
    kinds=st.tuples(KINDS, KINDS),
    per_head=st.booleans(),
    weights=st.sampled_from(["none", "averaged", "per head"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    gradients=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_attention_agrees_with_torch(
    sizes: tuple[int, int, int, int, int],
    widths: tuple[int | None, int | None],
    to_itself: bool,
    bias: bool,
    batch_first: bool,
    kinds: tuple[str, str],
    per_head: bool,
    weights: str,
    dtype: torch.dtype,
    gradients: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    batch, targets, sources, heads, size = sizes
    if to_itself:
        sources, widths = targets, (None, None)
    keys: dict[str, Any] = {
        "kdim": widths[0],
        "vdim": widths[1],
        "bias": bias,
        "batch_first": batch_first,
    }
    theirs = shaken(nn.MultiheadAttention(heads * size, heads, **keys)).to(dtype).eval()
    ours = attention_from_torch(theirs)
    query = torch.randn(batch, targets, heads * size, dtype=dtype, requires_grad=True)
    key = (
        query
        if to_itself
        else torch.randn(batch, sources, theirs.kdim, dtype=dtype, requires_grad=True)
    )
    value = (
        query
        if to_itself
        else torch.randn(batch, sources, theirs.vdim, dtype=dtype, requires_grad=True)
    )
    attn_mask = hiding((batch * heads if per_head else 1, targets, sources), kinds[0], dtype)
    attn_mask = attn_mask[0] if attn_mask is not None and not per_head else attn_mask
    padding = hiding((batch, sources), kinds[1], dtype)

    given_to_them = (
        [query, key, value] if batch_first else [x.transpose(0, 1) for x in (query, key, value)]
    )
    if to_itself:
        given_to_them = [given_to_them[0]] * 3
    need_weights = weights != "none"
    with (
        torch.set_grad_enabled(gradients),
        warnings.catch_warnings(),
    ):  # without gradients theirs has a way of its own
        warnings.filterwarnings(
            "ignore", "Support for mismatched"
        )  # one mask bool, the other not: it still works
        expected, expected_weights = theirs(
            *given_to_them,
            attn_mask=attn_mask,
            key_padding_mask=padding,
            need_weights=need_weights,
            average_attn_weights=weights == "averaged",
        )
        masks = mask_from_torch(attn_mask, padding, heads=heads)
        output, own_weights = look(ours, query, key, value, masks, need_weights)
    expected = expected if batch_first else expected.transpose(0, 1)
    close(output, expected, TOLERANCE[dtype])
    assert (own_weights is not None) == (expected_weights is not None) == need_weights
    if own_weights is not None:
        close(
            own_weights.mean(1) if weights == "averaged" else own_weights,
            expected_weights,
            TOLERANCE[dtype],
        )
    if gradients:
        inputs = [query] if to_itself else [query, key, value]
        slopes = torch.randn_like(output) / output.numel()
        for left, right in zip(
            torch.autograd.grad(output, [*inputs, ours.output.weight], slopes),
            torch.autograd.grad(expected, [*inputs, theirs.out_proj.weight], slopes),
            strict=True,
        ):
            close(left, right, TOLERANCE[dtype])


def test_where_nothing_is_left_to_see_theirs_is_nan_and_ours_the_bias() -> None:
    theirs = shaken(nn.MultiheadAttention(12, 3, batch_first=True)).eval()
    ours = attention_from_torch(theirs)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    hidden = torch.rand(5, 7) < 0.3
    hidden[:, 0], hidden[3] = False, True
    expected, expected_weights = theirs(
        x, memory, memory, attn_mask=hidden, average_attn_weights=False
    )
    mask, _ = mask_from_torch(hidden, heads=3)
    output, weights = ours(x, memory, memory, mask, need_weights=True)
    assert expected[:, 3].isnan().all() and expected_weights[:, :, 3].isnan().all()
    close(output[:, 3], ours.output.bias.expand(2, 12), 1e-6)
    assert not weights[:, :, 3].any()
    rest = [0, 1, 2, 4]
    close(output[:, rest], expected[:, rest], 1e-5)
    close(weights[:, :, rest], expected_weights[:, :, rest], 1e-5)


LAYERS: dict[str, Any] = {
    "sizes": st.tuples(
        st.integers(1, 3),
        st.integers(1, 6),
        st.integers(1, 7),
        st.integers(1, 4),
        st.integers(2, 6),
    ),
    "inner": st.integers(1, 9),
    "bias": st.booleans(),
    "eps": st.sampled_from([1e-5, 1e-3]),
    "batch_first": st.booleans(),
    "kinds": st.tuples(*[st.sampled_from(["none", "bool", "hiding"])] * 2),
    "gradients": st.booleans(),
    "seed": st.integers(0, 9999),
}


@types
@norms
@settings(max_examples=25)
@given(**LAYERS)
def test_an_encoder_layer_agrees_with_torch(
    norm_first: bool,
    dtype: torch.dtype,
    sizes: tuple[int, int, int, int, int],
    inner: int,
    bias: bool,
    eps: float,
    batch_first: bool,
    kinds: tuple[str, str],
    gradients: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    batch, length, _, heads, size = sizes
    keys: dict[str, Any] = {
        "bias": bias,
        "layer_norm_eps": eps,
        "batch_first": batch_first,
        "norm_first": norm_first,
    }
    theirs = shaken(nn.TransformerEncoderLayer(heads * size, heads, inner, **keys)).to(dtype).eval()
    ours = encoder_layer_from_torch(theirs)
    x = torch.randn(batch, length, heads * size, dtype=dtype)
    attn_mask, padding = (
        hiding((length, length), kinds[0], dtype),
        hiding((batch, length), kinds[1], dtype),
    )
    with torch.set_grad_enabled(gradients), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Support for mismatched")
        expected = theirs(x if batch_first else x.transpose(0, 1), attn_mask, padding)
        output = ours(x, mask_from_torch(attn_mask, padding, heads=heads)[0])
        close(output, expected if batch_first else expected.transpose(0, 1), TOLERANCE[dtype])
        close(encoder_layer_to_torch(ours)(x, attn_mask, padding), output, TOLERANCE[dtype])


@types
@norms
@settings(max_examples=25)
@given(**LAYERS)
def test_a_decoder_layer_agrees_with_torch(
    norm_first: bool,
    dtype: torch.dtype,
    sizes: tuple[int, int, int, int, int],
    inner: int,
    bias: bool,
    eps: float,
    batch_first: bool,
    kinds: tuple[str, str],
    gradients: bool,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    batch, targets, sources, heads, size = sizes
    keys: dict[str, Any] = {
        "bias": bias,
        "layer_norm_eps": eps,
        "batch_first": batch_first,
        "norm_first": norm_first,
    }
    theirs = shaken(nn.TransformerDecoderLayer(heads * size, heads, inner, **keys)).to(dtype).eval()
    ours = decoder_layer_from_torch(theirs)
    x = torch.randn(batch, targets, heads * size, dtype=dtype)
    memory = torch.randn(batch, sources, heads * size, dtype=dtype)
    seen, padding = ~causal_mask(targets), hiding((batch, targets), kinds[0], dtype)
    memory_hidden = hiding((batch * heads, targets, sources), kinds[0], dtype)
    memory_padding = hiding((batch, sources), kinds[1], dtype)
    given_to_them = [x, memory] if batch_first else [x.transpose(0, 1), memory.transpose(0, 1)]
    with torch.set_grad_enabled(gradients), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Support for mismatched")
        expected = theirs(*given_to_them, seen, memory_hidden, padding, memory_padding)
        mask, _ = mask_from_torch(seen, padding, heads=heads)
        memory_mask, _ = mask_from_torch(memory_hidden, memory_padding, heads=heads)
        pairs = ours.cross_attention.keys_values(memory, memory)
        output, _ = ours(x, pairs, mask=mask, memory_mask=memory_mask)
    close(output, expected if batch_first else expected.transpose(0, 1), TOLERANCE[dtype])


# Hugging Face

WIDTH, HEADS, INNER, ENCODER, DECODER = 12, 3, 10, 2, 3


def marian(source_size: int, target_size: int, shared: bool) -> Any:
    transformers = pytest.importorskip(
        "transformers", reason="needs transformers: pip install 'seq2see[test]'"
    )
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=source_size,
        decoder_vocab_size=target_size,
        share_encoder_decoder_embeddings=shared,
        d_model=WIDTH,
        encoder_layers=ENCODER,
        decoder_layers=DECODER,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        max_position_embeddings=32,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=1,
        forced_eos_token_id=1,
        decoder_start_token_id=0,
    )
    model = transformers.MarianMTModel(config).eval()
    positions = {
        id(stack.embed_positions.weight) for stack in (model.model.encoder, model.model.decoder)
    }
    with torch.no_grad():
        for parameter in model.parameters():
            if id(parameter) not in positions:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        model.final_logits_bias.normal_()
    return model


def interleaved(width: int) -> Tensor:
    """Theirs holds all sines, then all cosines; ours each sine beside its cosine. Our feature i is their order[i]."""
    return torch.arange(width).view(2, -1).T.flatten()


def from_marian(theirs: Any) -> Transformer:
    """Our model with the weights of theirs, the features of every residual in our order: in exact numbers the same."""
    config, order, state = theirs.config, interleaved(theirs.config.d_model), theirs.state_dict()
    model = ModelConfig(
        width=config.d_model,
        heads=config.encoder_attention_heads,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        feed_forward=config.encoder_ffn_dim,
        norm="post",
    )
    tied = (
        theirs.lm_head.weight is theirs.model.decoder.embed_tokens.weight
    )  # with two vocabularies, in some versions
    tie = "all" if config.share_encoder_decoder_embeddings else "target" if tied else "none"
    ours = (
        Transformer(model, config.vocab_size, config.decoder_vocab_size, tie)
        .to(theirs.dtype)
        .eval()
    )
    attention = {"q_proj": "query", "k_proj": "key", "v_proj": "value"}
    parts = {"self_attn": "self", "encoder_attn": "cross"}
    taken = {
        "output.weight": state["lm_head.weight"][:, order],
        "output.bias": state["final_logits_bias"][0],
    }
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        taken[f"{side}_embedding.weight"] = state[f"model.{stack}.embed_tokens.weight"][:, order]
        for name, tensor in state.items():
            if not name.startswith(f"model.{stack}.layers."):
                continue
            _, _, _, layer, *path = name.split(".")
            place, end = f"{stack}.{layer}", path[-1]
            if path[1] in attention:  # reads from the residual
                part = f"{parts[path[0]]}_attention.{attention[path[1]]}"
                tensor = tensor[:, order] if end == "weight" else tensor
            elif path[1] == "out_proj":  # writes to it
                part, tensor = f"{parts[path[0]]}_attention.output", tensor[order]
            elif path[0] == "fc1":
                part, tensor = (
                    "feed_forward.expand",
                    tensor[:, order] if end == "weight" else tensor,
                )
            elif path[0] == "fc2":
                part, tensor = "feed_forward.contract", tensor[order]
            else:
                residual = parts.get(path[0].removesuffix("_layer_norm"), "feed_forward")
                part, tensor = f"{residual}_residual.norm", tensor[order]
            taken[f"{place}.{part}.{end}"] = tensor
    ours.load_state_dict(taken)
    return ours


@types
@pytest.mark.parametrize("shared", [True, False], ids=["one vocabulary", "two vocabularies"])
def test_a_whole_model_of_hugging_face_gives_the_same_logits(
    dtype: torch.dtype, shared: bool
) -> None:
    source_size, target_size = (19, 19) if shared else (17, 19)
    theirs = marian(source_size, target_size, shared).to(dtype)
    if dtype == torch.float64:  # their table of positions was rounded to float32
        exact = sinusoidal(32, WIDTH)[:, interleaved(WIDTH).argsort()]
        for stack in (theirs.model.encoder, theirs.model.decoder):
            close(stack.embed_positions.weight.double(), exact, 1e-7)
            stack.embed_positions.weight.data.copy_(exact)
    ours = from_marian(theirs)
    source, target = torch.randint(4, source_size, (5, 11)), torch.randint(4, target_size, (5, 9))
    for row, (ends, stops) in enumerate([(11, 9), (4, 9), (7, 2), (1, 1), (10, 6)]):
        source[row, ends:], target[row, stops:] = PAD, PAD
    with torch.no_grad():
        expected = theirs(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target
        ).logits
        output = ours(Batch(source, target, target, list(range(5))))
    assert output.shape == (5, 9, target_size)
    assert (
        expected.std() > 0.5 and (expected[0] - expected[1]).abs().max() > 0.5
    )  # numbers in which errors would show
    close(output, expected, {torch.float32: 1e-4, torch.float64: 1e-10}[dtype])
