"""The convolutional encoder–decoder: PyTorch's convolution, receptive fields, decoding steps."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seq2see.batches import Batch, IdPair, collate
from seq2see.layers.positions import sinusoidal
from seq2see.models.convolutional import Convolutional, GatedConvolution
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import BEGIN, END

WIDTH, ENCODER, DECODER, SOURCE, TARGET = 8, 2, 3, 11, 13
PAIRS: list[IdPair] = [([4, 9, 5, 5], [7, 12, 4]), ([8], [11, 12, 5, 6, 4]), ([6, 7, 10], [])]
kernels = pytest.mark.parametrize("kernel", [1, 2, 3, 5])


def model_of(**keys: Any) -> Convolutional:
    torch.manual_seed(3)
    sizes = {"width": WIDTH, "encoder_layers": ENCODER, "decoder_layers": DECODER, "dropout": 0.0}
    config = ModelConfig.model_validate({"kind": "conv"} | sizes | keys)
    model = Convolutional(config, SOURCE, TARGET).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def convolve(layer: GatedConvolution, x: Tensor, left: int, right: int) -> Tensor:
    """PyTorch's own convolution and gate with our weights, for one sentence x (T, D)."""
    weight = layer.window.weight.unflatten(1, (layer.kernel, WIDTH)).mT  # (2 · D, D, kernel)
    padded = functional.pad(x.T[None], (left, right))
    convolved = functional.conv1d(padded, weight, layer.window.bias)
    return functional.glu(convolved, dim=1)[0].T  # (T, D)


def by_hand(model: Convolutional, kernel: int, source: list[int], target: list[int]) -> Tensor:
    """Sections 3.1 to 3.3 of the paper for one sentence."""
    words = model.source_embedding.weight[source] * WIDTH**0.5 + sinusoidal(len(source), WIDTH)
    z = words
    for layer in model.encoder:
        z = (z + convolve(layer.convolution, z, (kernel - 1) // 2, kernel // 2)) * 0.5**0.5
    values = (z + words) * 0.5**0.5
    goal = model.target_embedding.weight[target] * WIDTH**0.5 + sinusoidal(len(target), WIDTH)
    h = goal
    for layer in model.decoder:
        y = convolve(layer.convolution, h, kernel - 1, 0)
        weights = ((layer.query(y) + goal) * 0.5**0.5 @ z.T / WIDTH**0.5).softmax(-1)
        y = (y + layer.context(weights @ values)) * 0.5**0.5
        h = (h + y) * 0.5**0.5
    return model.output(model.readout(h))


@kernels
def test_forward_is_the_paper_written_out_with_pytorchs_convolution(kernel: int) -> None:
    model = model_of(kernel=kernel)
    logits = model(collate(PAIRS, range(3)))
    for row, (source, target) in enumerate(PAIRS):
        expected = by_hand(model, kernel, [*source, END], [BEGIN, *target])
        torch.testing.assert_close(logits[row, : len(target) + 1], expected, rtol=0, atol=1e-9)


@kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_step_keeps_the_last_inputs_alone(kernel: int, dtype: torch.dtype) -> None:
    model, batch = model_of(kernel=kernel).to(dtype), collate(PAIRS, range(3))
    expected = model(batch)
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        torch.testing.assert_close(logits[:, 0], expected[:, t], rtol=0, atol=1e-5)
        assert [tuple(past.shape) for past in state.past] == [(3, kernel - 1, WIDTH)] * DECODER
        assert state.seen == t + 1


@kernels
def test_the_receptive_field_grows_with_the_stack(kernel: int) -> None:
    """An encoder state depends on the words within its layers' windows, and on no other."""
    model = model_of(kernel=kernel, positions="none")
    source = torch.randint(4, SOURCE, (1, 24))
    changed = source.clone()
    changed[0, 12] = 3
    moved = (model.encode(source).keys - model.encode(changed).keys).abs().amax(-1)[0] > 1e-12
    before, after = ENCODER * (kernel // 2), ENCODER * ((kernel - 1) // 2)
    assert moved.nonzero()[:, 0].tolist() == list(range(12 - before, 12 + after + 1))


def test_windows_know_the_order_even_without_positions() -> None:
    batch = collate(PAIRS, [0])
    swapped = Batch(batch.source[:, [1, 0, 2, 3, 4]], batch.target_in, batch.target_out, [0])
    for kernel, tells in ((3, True), (1, False)):
        model = model_of(kernel=kernel, positions="none")
        assert ((model(swapped) - model(batch)).abs().max() > 1e-4) == tells


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_layers_begin_with_the_variance_of_their_input(dropout: float) -> None:
    torch.manual_seed(0)
    layer, x = GatedConvolution(128, 3, dropout), torch.randn(4, 30, 128)
    dropped = functional.dropout(x, dropout)
    assert float(layer(dropped).detach().var()) == pytest.approx(1.0, rel=0.15)
