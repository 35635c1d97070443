"""The Transformer itself: the paper written out by hand, dropout, positions, and initial weights."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.batches import Batch, IdPair, collate
from seq2see.layers import dropout
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.blocks import FeedForward, Residual
from seq2see.layers.positions import sinusoidal
from seq2see.models.build import build
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig, Recipe
from seq2see.text.specials import BEGIN, END

WIDTH, HEADS, INNER, ENCODER, DECODER, SOURCE, TARGET = 12, 3, 10, 3, 2, 17, 19
PAIRS: list[IdPair] = [
    ([4, 9, 16, 5, 5], [7, 18, 4]),
    ([8, 3], [11, 12, 13, 14, 4, 6, 7]),
    ([6, 7, 8, 4], [5]),
]

norms = pytest.mark.parametrize("norm", ["pre", "post"])


def config(**keys: Any) -> ModelConfig:
    sizes = {"width": WIDTH, "heads": HEADS, "feed_forward": INNER, "dropout": 0.0}
    sizes |= {"encoder_layers": ENCODER, "decoder_layers": DECODER}
    return ModelConfig.model_validate(sizes | keys)


def model_of(**keys: Any) -> Transformer:
    torch.manual_seed(7)
    model = Transformer(config(**keys), SOURCE, TARGET).double().eval()
    with torch.no_grad():  # biases and norms start at 0 and 1, where errors would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def batch_of(*lines: int) -> Batch:
    return collate(PAIRS, lines or range(len(PAIRS)))


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=1e-9)


class ByHand:
    """The paper's figure 1 for one sentence, in the order it is drawn.

    With dropout, `masks` holds those of its sites, in that order.
    """

    def __init__(self, model: Transformer, norm: str, masks: Iterator[Tensor] | None = None):
        self.model = model
        self.pre = norm == "pre"
        self.masks = masks

    def logits(self, source: list[int], target: list[int]) -> Tensor:
        model = self.model
        memory = self.embed(model.source_embedding, source)
        for layer in model.encoder:
            memory = self.attend_to_self(layer, memory, torch.zeros(len(source), len(source)))
            memory = self.transform(layer, memory)
        memory = model.encoder_norm(memory) if self.pre else memory
        future = torch.full((len(target), len(target)), float("-inf")).triu(1)
        y = self.embed(model.target_embedding, target)
        for layer in model.decoder:
            y = self.attend_to_self(layer, y, future)
            y = self.attend_to_memory(layer, y, memory)
            y = self.transform(layer, y)
        return model.output(model.decoder_norm(y) if self.pre else y)  # type: ignore[no-any-return]

    def embed(self, embedding: nn.Module, ids: list[int]) -> Tensor:
        words = embedding(torch.tensor(ids)) * math.sqrt(WIDTH)
        return self.drop(words + sinusoidal(len(ids), WIDTH))

    def attend_to_self(self, layer: Any, x: Tensor, hidden: Tensor) -> Tensor:
        attention = layer.self_attention
        return self.around(
            layer.self_residual, x, lambda y: self.attend(attention, y, y, hidden.double())
        )

    def attend_to_memory(self, layer: Any, x: Tensor, memory: Tensor) -> Tensor:
        attention = layer.cross_attention
        hidden = torch.zeros(len(x), len(memory), dtype=torch.float64)
        return self.around(
            layer.cross_residual, x, lambda y: self.attend(attention, y, memory, hidden)
        )

    def transform(self, layer: Any, x: Tensor) -> Tensor:
        network: FeedForward = layer.feed_forward

        def feed_forward(y: Tensor) -> Tensor:
            return network.contract(self.drop(network.expand(y).clamp(min=0)))  # type: ignore[no-any-return]

        return self.around(layer.feed_forward_residual, x, feed_forward)

    def attend(
        self, attention: MultiHeadAttention, query: Tensor, memory: Tensor, hidden: Tensor
    ) -> Tensor:
        queries = attention.query(query).chunk(HEADS, -1)
        keys = attention.key(memory).chunk(HEADS, -1)
        values = attention.value(memory).chunk(HEADS, -1)
        weights = [
            (q @ k.T / math.sqrt(WIDTH / HEADS) + hidden).softmax(-1)
            for q, k in zip(queries, keys, strict=True)
        ]
        kept = self.drop(torch.stack(weights))
        heads = [w @ v for w, v in zip(kept, values, strict=True)]
        return attention.output(torch.cat(heads, -1))  # type: ignore[no-any-return]

    def around(self, residual: Residual, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        norm = residual.norm
        if self.pre:
            return x + self.drop(sublayer(norm(x)))
        return norm(x + self.drop(sublayer(x)))  # type: ignore[no-any-return]

    def drop(self, x: Tensor) -> Tensor:
        return x if self.masks is None else x * next(self.masks)[0]


@norms
def test_forward_is_the_paper_written_out_sentence_by_sentence(norm: str) -> None:
    model = model_of(norm=norm)
    logits = model(batch_of())
    assert logits.shape == (3, 8, TARGET)
    for row, (source, target) in enumerate(PAIRS):
        expected = ByHand(model, norm).logits([*source, END], [BEGIN, *target])
        close(logits[row, : len(target) + 1], expected)


@norms
def test_dropout_acts_where_the_paper_puts_it(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(norm=norm, dropout=0.3, attention_dropout=0.2).train()
    draw = dropout._mask
    masks: list[Tensor] = []

    def record(x: Tensor, p: float) -> Tensor:
        masks.append(draw(x, p))
        return masks[-1]

    monkeypatch.setattr(dropout, "_mask", record)
    for line, (source, target) in enumerate(PAIRS):
        masks.clear()
        logits = model(batch_of(line))[0]
        sites = iter(masks)
        close(logits, ByHand(model, norm, sites).logits([*source, END], [BEGIN, *target]))
        assert next(sites, None) is None


def test_without_positions_attention_ignores_the_order() -> None:
    batch = batch_of(0)
    swapped = Batch(batch.source[:, [1, 0, 2, 3, 4, 5]], batch.target_in, batch.target_out, [0])
    model = model_of(positions="none")
    close(model(swapped), model(batch))


def test_rotary_positions_need_no_weights_and_leave_the_memory_alone() -> None:
    names = {name for name, _ in model_of(positions="none").named_parameters()}
    model = model_of(positions="rotary")
    assert {name for name, _ in model.named_parameters()} == names
    for layer in model.decoder:
        assert layer.self_attention.rotary is not None and layer.cross_attention.rotary is None


def test_embeddings_start_with_a_standard_deviation_of_width_to_the_minus_half() -> None:
    torch.manual_seed(0)
    for tie in ("all", "target", "none"):
        model = Transformer(config(width=48, heads=4), 3000, 3000, tie)
        for embedding in (model.source_embedding, model.target_embedding):
            assert float(embedding.weight.detach().std()) == pytest.approx(48**-0.5, rel=0.03)
        # An output matrix of its own is drawn within Xavier's bounds.
        largest = float(model.output.weight.detach().abs().max())
        assert (largest <= math.sqrt(6 / 3048)) == (tie == "none")


def test_xavier_embeddings_where_the_recipe_asks_for_them() -> None:
    model = Transformer(config(embedding_init="xavier"), 3000, 2000)
    assert float(model.source_embedding.weight.detach().abs().max()) <= math.sqrt(6 / 3012)
    deviation = float(model.target_embedding.weight.detach().std())
    assert deviation == pytest.approx(math.sqrt(2 / 2012), rel=0.03)


def test_pre_norm_ends_each_stack_with_a_norm_and_post_norm_with_none() -> None:
    pre, post = (
        {name for name, _ in Transformer(config(norm=norm), SOURCE, TARGET).named_parameters()}
        for norm in ("pre", "post")
    )
    assert pre - post == {
        f"{stack}_norm.{part}" for stack in ("encoder", "decoder") for part in ("weight", "bias")
    }
    assert post < pre


def test_build_returns_the_model_of_the_recipe() -> None:
    sizes = {"width": WIDTH, "heads": HEADS, "encoder_layers": 1, "decoder_layers": 2}
    recipe = Recipe.model_validate(
        {
            "data": {"corpus": "captions"},
            "tokenizer": {"kind": "words"},
            "model": sizes | {"norm": "post"},
            "train": {"steps": 1},
        }
    )
    model = build(recipe, SOURCE, TARGET)
    assert model.source_embedding.num_embeddings == SOURCE
    assert model.target_embedding.num_embeddings == TARGET
    # Words have two vocabularies, so the output shares the target's embeddings.
    assert model.output.weight is model.target_embedding.weight
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert any(name.startswith("decoder.1.") for name in shapes)
    assert not any(name.startswith("encoder.1.") for name in shapes)
    assert shapes["encoder.0.feed_forward.expand.weight"] == (4 * WIDTH, WIDTH)
