"""One stack under three masks: causal, masked and prefix models, and the classifier."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seq2see.batches import Batch, IdPair, TextExamples, collate, collate_labels
from seq2see.layers.mask_patterns import prefix_mask
from seq2see.layers.real_rows import RealRows
from seq2see.models.language import CausalModel, Classifier, MaskedModel, PrefixModel
from seq2see.recipe.schema import ModelConfig, TrainConfig
from seq2see.tasks.predict import token_loss
from seq2see.text.specials import END, MASK, PAD
from seq2see.training.update import Gradients

WIDTH, LAYERS, SOURCE, TARGET, LABELS = 12, 3, 17, 19, 6
PAIRS: list[IdPair] = [
    ([4, 9, 16, 5, 5], [7, 18, 4]),
    ([8, 3], [11, 12, 13, 14, 4, 6, 7]),
    ([6, 7, 8, 4], [5]),
]
HIDDEN: list[IdPair] = [
    ([4, MASK, 16, 5, 5], [PAD, 9, PAD, 7, PAD, PAD]),
    ([8, 3], [8, PAD, PAD]),
    ([MASK, MASK, 8, 4], [4, 6, PAD, PAD, PAD]),
]
LABELLED: list[IdPair] = [([4, 9, 16, 5, 5], [4]), ([8, 3], [5]), ([6, 7, 8, 4], [5])]

SETTINGS: dict[str, dict[str, Any]] = {
    "pre": {},
    "post": {"norm": "post"},
    "learned": {"positions": "learned", "max_positions": 9},
    "bilinear": {"score": "bilinear", "attention_width": 8},
    "rotary": {"positions": "rotary"},
}
settings = pytest.mark.parametrize("name", SETTINGS)
absolute = pytest.mark.parametrize("name", [name for name in SETTINGS if name != "rotary"])


def config(**keys: Any) -> ModelConfig:
    sizes = {
        "width": WIDTH,
        "heads": 2,
        "encoder_layers": LAYERS,
        "feed_forward": 20,
        "dropout": 0.0,
    }
    return ModelConfig.model_validate(sizes | keys)


def shaken(model: Any) -> Any:
    """A model in double precision without biases of 0, where a forgotten one would not show."""
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def causal(**keys: Any) -> CausalModel:
    torch.manual_seed(7)
    return shaken(CausalModel(config(**keys), TARGET))  # type: ignore[no-any-return]


def masked(**keys: Any) -> MaskedModel:
    torch.manual_seed(7)
    return shaken(MaskedModel(config(**keys), SOURCE, tied=False))  # type: ignore[no-any-return]


def prefix(tie: str = "none", **keys: Any) -> PrefixModel:
    torch.manual_seed(7)
    sizes = (TARGET, TARGET) if tie == "all" else (SOURCE, TARGET)
    model: PrefixModel = shaken(PrefixModel(config(kind="prefix", **keys), *sizes, tie))
    return model


def classifier(**keys: Any) -> Classifier:
    torch.manual_seed(7)
    return shaken(Classifier(config(**keys), SOURCE, LABELS))  # type: ignore[no-any-return]


def batch_of(*lines: int) -> Batch:
    return collate(PAIRS, lines or range(len(PAIRS)))


def close(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=1e-9)


# Causal


@settings
@pytest.mark.parametrize("cuts", [range(1, 8), [3], [1, 5], []], ids=str)
def test_a_causal_model_in_steps_equals_forward(name: str, cuts: list[int]) -> None:
    model, batch = causal(**SETTINGS[name]), batch_of()
    past = model.start(3)
    pieces = []
    for ids in batch.target_in.tensor_split(list(cuts), dim=1):
        logits, past = model.step(past, ids)
        pieces.append(logits)
    close(torch.cat(pieces, 1), model(batch))


@settings
def test_a_causal_model_never_sees_the_future(name: str, check_causal: Any) -> None:
    check_causal(causal(**SETTINGS[name]), batch_of())


def test_texts_of_a_language_model_can_be_chosen_and_repeated() -> None:
    model, batch = causal(), batch_of()
    _, past = model.step(model.start(3), batch.target_in[:, :3])
    expected, _ = model.step(past, batch.target_in[:, 3:])
    rows = torch.tensor([2, 0, 0])
    close(model.step(past.select(rows), batch.target_in[rows, 3:])[0], expected[rows])


def test_a_language_model_does_not_read_the_source() -> None:
    model, batch = causal(), batch_of()
    other = Batch(batch.source + 1, batch.target_in, batch.target_out, batch.lines)
    assert torch.equal(model(batch), model(other))


# Masked, and the classifier


@settings
@pytest.mark.parametrize("make", [masked, classifier])
def test_neither_padding_nor_companions_matter(name: str, make: Any) -> None:
    model = make(**SETTINGS[name])
    pairs = HIDDEN if make is masked else LABELLED
    batch = collate_labels(pairs, range(3))
    real = batch.target_out != PAD
    before = model(batch)
    for line, (_, labels) in enumerate(pairs):
        close(model(collate_labels(pairs, [line]))[0], before[line, : len(labels)])
    with torch.no_grad():
        model.target_embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], before[real])


def test_a_masked_model_sees_both_sides_and_the_order() -> None:
    model, batch = masked(), collate_labels(HIDDEN, [0])
    before = model(batch)

    def differs(source: Tensor) -> Tensor:
        after = model(Batch(source, source, source, [0]))
        return (after - before).abs().amax(-1) > 1e-6  # (1, S)

    for s in range(batch.source.shape[1]):
        changed = batch.source.clone()
        changed[:, s] = 10
        assert differs(changed).all()
    assert differs(batch.source[:, [1, 0, 2, 3, 4, 5]]).all()


def test_a_classifier_has_one_label_per_sentence() -> None:
    assert classifier()(collate_labels(LABELLED, range(3))).shape == (3, 1, LABELS)


# Prefix


def recomputed(model: PrefixModel, source: list[int], target: Tensor) -> Tensor:
    """Logits of a sentence in one pass through the layers, under `prefix_mask`."""
    segments = model.segment_embedding.weight * WIDTH**0.5  # (2, D)
    source_side = model.embed(model.source_embedding, torch.tensor([source])) + segments[0]
    target_side = model.embed(model.target_embedding, target[None]) + segments[1]
    x = torch.cat([source_side, target_side], dim=1)
    mask = prefix_mask(len(source), x.shape[1])
    for layer in model.encoder:
        x = layer(x, mask)
    return model.output(model.encoder_norm(x))[0, len(source) :]  # type: ignore[no-any-return]


@absolute
@pytest.mark.parametrize("tie", ["all", "none"])
def test_a_prefix_model_equals_its_full_recomputation_step_by_step(name: str, tie: str) -> None:
    model, batch = prefix(tie, **SETTINGS[name]), batch_of()
    logits = model(batch)
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        step, state = model.step(state, batch.target_in[:, t : t + 1])
        close(step[:, 0], logits[:, t])
        for line, (source, target) in enumerate(PAIRS):
            if t <= len(target):
                begun = batch.target_in[line, : t + 1]
                close(step[line, 0], recomputed(model, [*source, END], begun)[t])


# Learning


@pytest.mark.parametrize("make", [causal, masked, prefix, classifier])
def test_gradients_reach_every_parameter_and_are_those_of_the_plain_loss(make: Any) -> None:
    model = make().train()
    pairs = {masked: HIDDEN, classifier: LABELLED}.get(make, PAIRS)
    examples = TextExamples(pairs, shifted=make in (causal, prefix))
    batch = examples.batch(range(3))
    logits = model(batch)
    states = model.states(batch, layout=RealRows)
    close(model.output(states), logits[batch.target_out != PAD])
    expected = functional.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    )
    slopes = torch.autograd.grad(expected, list(model.parameters()))
    config = TrainConfig(steps=1, label_smoothing=0.0)
    gradients = Gradients(model, lambda model, batch: token_loss(model, batch, config), workers=2)
    update = gradients.fill(examples, [[0, 1], [2]], "0")
    assert update.targets == batch.target_tokens == len(states)
    assert update.loss / update.targets == pytest.approx(float(expected.detach()), rel=1e-9)
    for (name, weight), slope in zip(model.named_parameters(), slopes, strict=True):
        assert weight.grad is not None, name
        # The softmax cancels what is added to all keys.
        assert float(slope.abs().max()) > 1e-9 or name.endswith("key.bias"), name
        close(weight.grad, slope)
