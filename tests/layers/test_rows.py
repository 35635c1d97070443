"""Rows without padding: equal to padded rows at the real targets, with and without dropout."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.batches import Batch, IdPair, collate, collate_labels
from seq2see.layers import dropout
from seq2see.layers.real_rows import RealRows
from seq2see.layers.shapes import PADDED, Rows
from seq2see.models.language import CausalModel, Classifier, MaskedModel, PrefixModel
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD

WIDTH, HEADS, INNER, ENCODER, DECODER, SOURCE, TARGET = 8, 2, 20, 2, 3, 13, 17
LABELS = 6

# Sources and targets of different lengths, so that rows of one side do not fit the other.
UNEVEN: list[IdPair] = [([4, 5, 6], [7, 8]), ([9], [4, 5, 6, 7, 8]), ([5, 5, 4, 8, 9, 6], [11])]
EVEN: list[IdPair] = [([4, 5], [7, 8, 9]), ([9, 6], [4, 5, 6])]
PAIRS = {"uneven": UNEVEN, "even": EVEN}

SETTINGS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post-learned": {"norm": "post", "positions": "learned", "max_positions": 9},
    "rotary": {"positions": "rotary", "attention_bias": False},
    "additive": {"positions": "none", "score": "additive", "attention_width": 12},
}
MODELS: dict[str, Callable[[ModelConfig], Any]] = {
    "transformer": lambda config: Transformer(config, SOURCE, TARGET),
    "causal": lambda config: CausalModel(config, TARGET),
    "masked": lambda config: MaskedModel(config, SOURCE),
    "classifier": lambda config: Classifier(config, SOURCE, LABELS),
    "prefix": lambda config: PrefixModel(config, SOURCE, TARGET),
}
READS = {"causal": ["target_in"], "masked": ["source"], "classifier": ["source"]}
CASES = [
    (kind, setting)
    for kind in MODELS
    for setting in SETTINGS
    if (kind, setting) != ("prefix", "rotary")  # both sides would share their positions
]
cases = pytest.mark.parametrize(("kind", "setting"), CASES)
corpora = pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
kinds = pytest.mark.parametrize("kind", MODELS)


def model_of(kind: str, setting: str = "pre", **keys: Any) -> Any:
    torch.manual_seed(5)
    sizes = {"width": WIDTH, "heads": HEADS, "feed_forward": INNER}
    sizes |= {"encoder_layers": ENCODER, "decoder_layers": DECODER}
    config = ModelConfig.model_validate(sizes | SETTINGS[setting] | keys)
    model = MODELS[kind](config).double().eval()
    with torch.no_grad():  # biases and norms start at 0 and 1, where errors would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def batch_of(kind: str, pairs: Sequence[IdPair]) -> Batch:
    lines = range(len(pairs))
    if kind == "masked":  # every second word is hidden
        hidden = [[PAD if i % 2 else id for i, id in enumerate(source)] for source, _ in pairs]
        labels = [[*ids, PAD] for ids in hidden]
        return collate_labels([(pairs[i][0], labels[i]) for i in lines], lines)
    if kind == "classifier":
        return collate_labels([(pairs[i][0], [4 + i % 2]) for i in lines], lines)
    return collate(pairs, lines)


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def compare(model: Any, padded: Tensor, rows: Tensor) -> None:
    """Compare states (N, D) of both layouts, and the gradients that their logits pass down."""
    assert rows.shape == padded.shape
    close(rows, padded, 1e-12)
    slopes = torch.randn_like(model.output(rows))
    weights = list(model.parameters())
    gradients, expected = (
        torch.autograd.grad(model.output(states), weights, slopes, materialize_grads=True)
        for states in (rows, padded)
    )
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        close(gradient, expected_gradient, 1e-10)


@corpora
@cases
def test_states_are_those_of_padded_rows_at_the_real_targets(
    kind: str, setting: str, pairs: list[IdPair]
) -> None:
    model, batch = model_of(kind, setting), batch_of(kind, pairs)
    real = batch.target_out != PAD
    compare(model, model.states(batch)[real], model.states(batch, layout=RealRows))


class Replay:
    """Dropout masks that one pass draws over padded rows, and the next applies to the same values.

    A site that the second pass skips, repeats or moves gets the mask of another one.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *laid_out: Tensor) -> None:
        self.real = {tuple(ids.shape): (ids != PAD).flatten() for ids in laid_out}
        self.draw = dropout._mask
        self.patch = patch
        self.sites: list[tuple[Tensor, float]] = []
        self.shapes: list[tuple[int, ...]] = []  # of the second pass

    def first(self) -> None:
        self.patch.setattr(dropout, "_mask", self._record)

    def second(self) -> None:
        self.patch.setattr(dropout, "_mask", self._repeat)

    def _record(self, x: Tensor, p: float) -> Tensor:
        self.sites.append((self.draw(x, p), p))
        return self.sites[-1][0]

    def _repeat(self, x: Tensor, p: float) -> Tensor:
        assert len(self.shapes) < len(self.sites), "more dropout than in padded rows"
        mask, share = self.sites[len(self.shapes)]
        self.shapes.append(tuple(x.shape))
        if x.dim() == 2:
            mask = mask.flatten(0, 1)[self.real[mask.shape[:2]]]
        assert (mask.shape, share) == (x.shape, p)
        return mask


def replayed(
    kind: str, model: Any, batch: Batch, patch: pytest.MonkeyPatch
) -> tuple[Tensor, Tensor, Replay]:
    """States of padded rows at the real targets and of real rows, under the same dropout."""
    sides = READS.get(kind, ["source", "target_in"])
    replay = Replay(patch, *(getattr(batch, side) for side in sides))
    model.train()
    replay.first()
    padded = model.states(batch)[batch.target_out != PAD]
    replay.second()
    rows = model.states(batch, layout=RealRows)
    return padded, rows, replay


@corpora
@cases
def test_dropout_falls_on_the_same_values(
    kind: str, setting: str, pairs: list[IdPair], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(kind, setting, dropout=0.3, attention_dropout=0.2)
    batch = batch_of(kind, pairs)
    quiet = model.states(batch)[batch.target_out != PAD]
    padded, rows, replay = replayed(kind, model, batch, monkeypatch)
    assert len(replay.shapes) == len(replay.sites)
    assert all((mask == 0).any() for mask, _ in replay.sites)
    assert ((padded - quiet).abs().amax(-1) > 1e-3).all()
    compare(model, padded, rows)


def sites(length: int, keys: Sequence[int], rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes of dropout in a layer: weights and output of each attention, then feed-forward."""
    attentions = [shape for s in keys for shape in ((3, HEADS, length, s), (*rows, WIDTH))]
    return [*attentions, (*rows, INNER), (*rows, WIDTH)]


@pytest.mark.parametrize("setting", ["pre", "post-learned"])
def test_every_site_of_dropout_is_in_its_place(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 5.4: each sublayer's output and the embeddings; also weights and hidden features."""
    model = model_of("transformer", setting, dropout=0.3, attention_dropout=0.2)
    batch = batch_of("transformer", UNEVEN)
    _, _, replay = replayed("transformer", model, batch, monkeypatch)
    shapes = [tuple(mask.shape) for mask, _ in replay.sites]
    assert all(share == (0.3, 0.2)[mask.dim() == 4] for mask, share in replay.sites)
    s, t = 7, 6

    def expected(source: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[int, ...]]:
        encoder = [(3, s, WIDTH), *sites(s, [s], source) * ENCODER]
        return [*encoder, (3, t, WIDTH), *sites(t, [t, s], target) * DECODER]

    assert shapes == expected((3, s), (3, t))
    assert replay.shapes == expected((batch.source_tokens,), (batch.target_tokens,))


@pytest.mark.parametrize("garbage", [1e3, float("inf"), float("nan")])
@kinds
def test_garbage_in_the_padding_changes_no_bit(kind: str, garbage: float) -> None:
    model, batch = model_of(kind), batch_of(kind, UNEVEN)
    weights = list(model.parameters())

    def results() -> list[Tensor]:
        states = model.states(batch, layout=RealRows)
        slopes = torch.arange(states.numel(), dtype=states.dtype).view(states.shape)
        return [states, *torch.autograd.grad(states, weights, slopes, materialize_grads=True)]

    before = results()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name in ("source_embedding.weight", "target_embedding.weight"):
                weight[PAD] = garbage
    assert all(map(torch.equal, results(), before))


def test_a_sentence_of_padding_alone_has_no_rows() -> None:
    model = model_of("transformer")
    source = torch.tensor([[4, 5, 6], [PAD, PAD, PAD], [7, 8, PAD]])
    target = torch.tensor([[9, 4], [5, PAD], [PAD, PAD]])
    batch = Batch(source, target, target, [0, 1, 2])
    rows = model.states(batch, layout=RealRows)
    assert rows.shape == (3, WIDTH)
    compare(model, model.states(batch)[target != PAD], rows)


@pytest.mark.parametrize("shape", [(0, 4), (2, 4)], ids=["no sentences", "padding alone"])
@kinds
def test_a_batch_without_real_tokens_has_no_rows(kind: str, shape: tuple[int, int]) -> None:
    ids = torch.full(shape, PAD)
    one = ids[:, :1]
    batch = Batch(ids, one, one, list(range(shape[0])))
    model = model_of(kind)
    if kind == "classifier":  # which has a label for every sentence
        assert model.states(batch, layout=RealRows).shape == (shape[0], WIDTH)
    else:
        assert model.states(batch, layout=RealRows).shape == (0, WIDTH)


REAL = torch.tensor([[True, True, False], [True, False, False]])


def test_splitting_into_heads_and_joining_them_are_inverse() -> None:
    rows = RealRows(REAL)
    x = torch.randn(3, 8)
    heads = rows.split(x, 2, 2)
    assert heads.shape == (2, 2, 3, 4)
    assert torch.equal(heads[0, 1, 1], x[1, 4:])
    assert not heads[1, :, 1:].any() and not heads[0, :, 2:].any()
    assert torch.equal(rows.join(heads, x), x)
    # Another number of heads shares nothing with the first.
    assert torch.equal(rows.join(rows.split(x, 4, 2), x), x)
    assert torch.equal(rows.split(x, 2, 2), heads)


def test_gathering_and_padding_are_inverse() -> None:
    rows = RealRows(REAL)
    x = torch.randn(2, 3, 8)
    assert torch.equal(rows.gather(x), x[REAL])
    padded = rows.pad(rows.gather(x))
    assert torch.equal(padded, x.masked_fill(~REAL[..., None], 0.0))


def test_padded_rows_are_laid_out_as_they_are() -> None:
    rows = Rows(REAL)
    x = torch.randn(2, 3, 8)
    assert rows.gather(x) is x and rows.pad(x) is x
    heads = rows.split(x, 2, 2)
    assert heads.shape == (2, 2, 3, 4) and torch.equal(heads[1, 1, 2], x[1, 2, 4:])
    assert torch.equal(rows.join(heads, x), x)


def test_hypotheses_of_a_sentence_stand_in_one_row_of_heads() -> None:
    x = torch.randn(6, 3, 8)  # two sentences of three hypotheses
    heads = PADDED.split(x, 2, 2)
    assert heads.shape == (2, 2, 9, 4)
    assert torch.equal(heads[1, 0, 3 * 2 + 1], x[5, 1, :4])
    assert torch.equal(PADDED.join(heads, x), x)
    assert PADDED.split(x[:0], 2, 0).shape == (0, 2, 3, 4)


def test_gradients_of_the_layout_are_right() -> None:
    rows = RealRows(REAL)
    padded = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    real = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    heads = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(rows.gather, padded)
    assert torch.autograd.gradcheck(rows.pad, real)
    assert torch.autograd.gradcheck(lambda x: rows.split(x, 2, 2), real)
    assert torch.autograd.gradcheck(lambda x: rows.join(x, real), heads)
