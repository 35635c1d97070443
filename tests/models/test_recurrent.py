"""Recurrent encoder–decoders, against PyTorch's cells word by word, and their bottleneck."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.batches import IdPair, collate
from seq2see.models.recurrent import Recurrent
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import BEGIN, END

WIDTH, ENCODER, DECODER, SOURCE, TARGET = 6, 2, 3, 11, 13
PAIRS: list[IdPair] = [([4, 9, 5, 5], [7, 12, 4]), ([8], [11, 12, 5, 6, 4]), ([6, 7, 10], [])]
CELLS: dict[str, Any] = {"rnn": nn.RNNCell, "lstm": nn.LSTMCell, "gru": nn.GRUCell}
kinds = pytest.mark.parametrize("kind", CELLS)


def model_of(kind: str, **keys: Any) -> Recurrent:
    torch.manual_seed(3)
    sizes = {"width": WIDTH, "encoder_layers": ENCODER, "decoder_layers": DECODER, "dropout": 0.0}
    config = ModelConfig.model_validate({"kind": kind} | sizes | keys)
    model = Recurrent(config, SOURCE, TARGET).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


class ByHand:
    """One sentence, one word at a time, with PyTorch's cells for single steps."""

    def __init__(self, model: Recurrent, kind: str, attend: bool) -> None:
        self.model, self.kind, self.attend = model, kind, attend

    def read(
        self, layer: Any, inputs: list[Tensor], hidden: tuple[Tensor, ...] | None = None
    ) -> list[Tensor]:
        cell = CELLS[self.kind](layer.input_size, layer.hidden_size).double()
        cell.load_state_dict(
            {name.removesuffix("_l0"): weight for name, weight in layer.state_dict().items()}
        )
        outputs = []
        for x in inputs:
            before = hidden if hidden is None or self.kind == "lstm" else hidden[0]
            hidden = cell(x, before) if self.kind == "lstm" else (cell(x, before),)
            outputs.append(hidden[0])
        return outputs

    def logits(self, source: list[int], target: list[int]) -> Tensor:
        model = self.model
        x = [model.source_embedding.weight[id] * WIDTH**0.5 for id in source]
        for layer in model.encoder:
            there, back = self.read(layer.forwards, x), self.read(layer.backwards, x[::-1])[::-1]
            x = [torch.cat(pair) for pair in zip(there, back, strict=True)]
        last = torch.cat([there[-1], back[0]])
        memory = torch.stack(x) if self.attend else last[None]
        begun = iter(model.bridge(last).tanh().chunk(DECODER * (2 if self.kind == "lstm" else 1)))
        y = [model.target_embedding.weight[id] * WIDTH**0.5 for id in target]
        y = y if self.attend else [torch.cat([word, last]) for word in y]
        for layer in model.decoder:
            y = self.read(
                layer, y, tuple(next(begun) for _ in range(2 if self.kind == "lstm" else 1))
            )
        h = torch.stack(y)
        context = (h @ memory.T / WIDTH**0.5).softmax(-1) @ memory
        return model.output(model.readout(torch.cat([context, h], -1)).tanh())


@kinds
@pytest.mark.parametrize("attend", [True, False], ids=["attention", "last-state"])
def test_forward_is_pytorchs_cells_word_by_word(kind: str, attend: bool) -> None:
    model = model_of(kind, attend=attend)
    logits = model(collate(PAIRS, range(3)))
    for row, (source, target) in enumerate(PAIRS):
        expected = ByHand(model, kind, attend).logits([*source, END], [BEGIN, *target])
        torch.testing.assert_close(logits[row, : len(target) + 1], expected, rtol=0, atol=1e-9)


@kinds
def test_without_attention_the_memory_is_one_vector(kind: str) -> None:
    model, batch = model_of(kind, attend=False), collate(PAIRS, range(3))
    memory = model.encode(batch.source)
    assert memory.keys.shape == memory.values.shape == (3, 1, WIDTH) and memory.mask.all()
    with_attention = model_of(kind).encode(batch.source)
    assert with_attention.keys.shape == (3, 5, WIDTH)


@kinds
def test_recurrent_weights_start_orthogonal_and_the_second_gate_open(kind: str) -> None:
    model = Recurrent(ModelConfig.model_validate({"kind": kind, "width": 16}), SOURCE, TARGET)
    for cell in model.modules():
        if isinstance(cell, nn.RNNBase):
            size = cell.hidden_size
            for gate in cell.weight_hh_l0.detach().split(size):  # type: ignore[operator]
                torch.testing.assert_close(gate @ gate.T, torch.eye(size), rtol=0, atol=1e-5)
            ones = (cell.bias_ih_l0 + cell.bias_hh_l0).detach()  # type: ignore[operator]
            kept = ones[size : 2 * size]
            assert (kept == 1).all() and int(ones.sum()) == (0 if kind == "rnn" else size)


def test_the_first_state_of_each_layer_is_its_own() -> None:
    model, batch = model_of("lstm"), collate(PAIRS, range(3))
    past = model.start(model.encode(batch.source)).past
    assert [tuple(state.shape) for state in past] == [(3, WIDTH)] * 2 * DECODER
    assert len({float(state.detach().sum()) for state in past}) == 2 * DECODER
    assert all((state.abs() < 1).all() for state in past)
