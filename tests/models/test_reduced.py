"""Models that merge or prune tokens: decoding, training, and their relation to the plain model."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seq2see.batches import Batch, IdPair, TextExamples, collate, collate_labels
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import beam_search, greedy
from seq2see.errors import InputError
from seq2see.layers.real_rows import RealRows
from seq2see.layers.reduction import plans
from seq2see.layers.trace import Trace
from seq2see.models.build import KINDS
from seq2see.models.language import CausalModel, Classifier
from seq2see.models.reduced import (
    plan_of,
    reducible,
    with_merging,
    with_plan,
    with_pruning,
    with_top,
)
from seq2see.models.transformer import Transformer
from seq2see.models.weights import copy_into, weights
from seq2see.recipe.schema import ModelConfig, ReduceConfig, TrainConfig
from seq2see.tasks.predict import predict, token_loss
from seq2see.text.specials import END, PAD
from seq2see.training.update import Gradients

WIDTH, ENCODER, DECODER, SOURCE, TARGET, LABELS = 12, 3, 2, 17, 19, 7
PAIRS: list[IdPair] = [
    ([4, 9, 16, 5, 5, 12, 7, 10, 6], [7, 18, 4]),
    ([8, 3], [11, 12, 13, 14, 4, 6, 7]),
    ([6, 7, 8, 4, 9, 11, 5], [5]),
]
LABELLED: list[IdPair] = [(source, [4 + i]) for i, (source, _) in enumerate(PAIRS)]
PLANS: dict[str, dict[str, Any]] = {
    "merge": {"kind": "merge", "r": [1, 2, 1]},
    "neighbours": {"kind": "merge", "r": 1, "match": "neighbours"},
    "hard": {"kind": "prune", "thresholds": [0.8, 0.9, 1]},
    "soft": {"kind": "prune", "mode": "soft", "thresholds": 0.9, "temperature": 0.2},
    "top": {"kind": "prune", "mode": "top", "keep": 0.5},
}
all_plans = pytest.mark.parametrize("name", PLANS)
both = pytest.mark.parametrize("task", ["translate", "classify"])
norms = pytest.mark.parametrize("norm", ["pre", "post"])


def model_of(task: str = "translate", **keys: Any) -> Any:
    torch.manual_seed(7)
    sizes = {"width": WIDTH, "heads": 2, "encoder_layers": ENCODER, "decoder_layers": DECODER}
    config = ModelConfig.model_validate(sizes | {"dropout": 0.0} | keys)
    model: nn.Module = Classifier(config, SOURCE, LABELS)
    if task == "translate":
        model = Transformer(config, SOURCE, TARGET)
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def reduced(name: str, task: str = "translate", **keys: Any) -> Any:
    plan = plans.plan_of(ReduceConfig.model_validate(PLANS[name]), ENCODER)
    return with_plan(model_of(task, **keys), plan)


def batch_of(
    task: str = "translate", lines: Sequence[int] = range(3), pairs: list[IdPair] | None = None
) -> Batch:
    if task == "translate":
        return collate(pairs or PAIRS, lines)
    return collate_labels(pairs or LABELLED, lines)


def close(left: Tensor, right: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


# The plain model


def test_a_copy_with_a_plan_shares_the_weights_and_leaves_the_model_as_it_is() -> None:
    model = model_of()
    merging: Any = with_merging(model, 2, kind="decreasing", match="neighbours")
    pruning: Any = with_pruning(model, 0.3)
    assert plan_of(model) is None and plan_of(with_plan(merging, None)) is None
    assert merging.encoder.plan.r == [4, 2, 0]
    thresholds = pruning.encoder.plan.thresholds
    assert thresholds.dtype == torch.float64
    assert thresholds.tolist() == pytest.approx([0.1, 0.2, 0.3])
    top: Any = plan_of(with_top(model, [0.9, 0.8, 0.1]))
    assert top.shares == [0.9, 0.8, 0.1]
    own = dict(model.named_parameters())
    for other in (merging, pruning, with_plan(merging, None)):
        shared = dict(other.named_parameters())
        shared.pop("encoder.plan.thresholds", None)
        assert shared.keys() == own.keys()
        assert all(shared[name] is parameter for name, parameter in own.items())
    for training in (True, False):
        assert with_merging(model.train(training), 2).encoder.training == training


@both
@norms
@pytest.mark.parametrize("traced", [False, True])
def test_a_plan_that_removes_nothing_changes_no_bit(task: str, norm: str, traced: bool) -> None:
    model, batch = model_of(task, norm=norm), batch_of(task)
    plain = Trace(weights=traced)
    expected = model(batch, plain)
    for other in (with_merging(model, 0), with_pruning(model, 0.0), with_top(model, 1.0)):
        trace = Trace(weights=traced)
        assert torch.equal(other(batch, trace), expected)
        on_tokens = trace.on_tokens()
        assert on_tokens.keys() == plain.weights.keys()
        assert all(torch.equal(on_tokens[name], plain.weights[name]) for name in on_tokens)
    merging = with_merging(model, 2)
    assert not torch.equal(merging(batch), expected)
    assert torch.equal(model(batch, Trace(weights=traced)), expected)
    assert torch.equal(with_plan(merging, None)(batch, Trace(weights=traced)), expected)


@both
@norms
@pytest.mark.parametrize("match", ["bipartite", "neighbours"])
@settings(max_examples=8, deadline=None)
@given(
    words=st.lists(st.integers(4, SOURCE - 1), min_size=1, max_size=5, unique=True), data=st.data()
)
def test_merging_the_same_word_twice_changes_nothing(
    task: str, norm: str, match: str, words: list[int], data: Any
) -> None:
    model = model_of(task, norm=norm, positions="none")  # positions would make the words differ
    source = [word for word in words for _ in range(2)]
    batch = batch_of(task, [0, 1], [(source, [5]), (source[:2], [5])])
    r = data.draw(st.integers(0, len(words)))
    trace, plain = Trace(), Trace()
    close(with_merging(model, [r, 0, 0], match=match)(batch, trace), model(batch, plain))
    assert trace.reductions[-1].real.sum(1).tolist() == [len(source) + 1 - r, 3 - min(r, 1)]
    for name, attention in trace.on_tokens().items():
        expected = plain.weights[name]
        if name.startswith("encoder"):  # rows of padding are never read
            padding = (batch.source == PAD)[:, None, :, None]
            attention, expected = (x.masked_fill(padding, 0.0) for x in (attention, expected))
        close(attention, expected)


# Decoding


@both
@all_plans
def test_companions_change_nothing(task: str, name: str) -> None:
    model = reduced(name, task)
    together = model(batch_of(task))
    for line, (_, target) in enumerate(PAIRS if task == "translate" else LABELLED):
        alone = model(batch_of(task, [line]))[0]
        close(together[line, : len(alone)], alone)
        assert task == "classify" or len(alone) == len(target) + 1


@all_plans
def test_garbage_in_the_padding_leaves_the_same_bits(name: str) -> None:
    model, batch = reduced(name), batch_of()
    real = batch.target_out != PAD
    before = model(batch)[real], model.states(batch, layout=RealRows)
    with torch.no_grad():
        model.source_embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], before[0])
    assert torch.equal(model.states(batch, layout=RealRows), before[1])


@all_plans
def test_step_by_step_equals_forward_and_hypotheses_are_selected(name: str) -> None:
    model, batch = reduced(name), batch_of()
    expected = model(batch)
    memory = model.encode(batch.source)
    tokens = batch.source.shape[1]
    assert memory.states.shape[1] == memory.mask.shape[3]
    assert memory.mask.shape[3] == tokens if name == "soft" else memory.mask.shape[3] < tokens
    assert (memory.bias is None) == (name in ("hard", "top"))
    state = model.start(memory)
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        close(logits[:, 0], expected[:, t])
    for rows in ([2, 0, 1], [1, 1, 0, 2, 2], [2], [0, 0, 1, 1, 2, 2]):
        pick = torch.tensor(rows)
        logits, _ = model.step(model.start(memory).select(pick), batch.target_in[pick])
        close(logits, expected[pick])


@all_plans
@pytest.mark.parametrize("find", [greedy, beam_search])
def test_the_search_finds_the_same_alone_and_together(name: str, find: Callable[..., Any]) -> None:
    model, config = reduced(name), Search(beam=3)
    together = find(model, batch_of().source, config)
    for (source, _), hypotheses in zip(PAIRS, together, strict=True):
        alone = find(model, torch.tensor([[*source, END]]), config)[0]
        assert [one.ids for one in alone] == [one.ids for one in hypotheses]


@all_plans
def test_cross_attention_is_mapped_back_to_the_words(name: str) -> None:
    model, batch, trace = reduced(name), batch_of(), Trace()
    model(batch, trace)
    real = (batch.source != PAD)[:, None, None]
    for layer in range(DECODER):
        attention = trace.on_tokens()[f"decoder.{layer}.cross"]
        assert attention.shape == (3, 2, 8, 10)
        assert not attention.masked_fill(real, 0.0).any()
        close(attention.sum(-1), torch.ones(3, 2, 8).double())
        assert trace.on_tokens()[f"decoder.{layer}.self"].shape == (3, 2, 8, 8)


# Training


@both
@all_plans
def test_the_gradient_is_that_of_the_loss_and_of_the_tokens_kept(task: str, name: str) -> None:
    model, config = reduced(name, task).train(), TrainConfig(steps=1)
    examples = TextExamples(PAIRS if task == "translate" else LABELLED, task == "translate")
    gradients = Gradients(model, lambda model, batch: token_loss(model, batch, config), workers=1)
    loss, targets = gradients.fill(examples, [[0, 1, 2]], "key")
    batch, trace = batch_of(task), Trace(weights=False)
    logits = model(batch, trace).log_softmax(-1)
    target = batch.target_out
    smooth = 0.9 * logits.gather(-1, target[..., None])[..., 0] + 0.1 * logits.mean(-1)
    expected = -smooth[target != PAD].sum()
    if name == "soft":
        shares = [step.sizes.sum() / step.real.sum() for step in trace.reductions]
        expected = expected + targets * 0.1 * torch.stack(shares).mean()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-9)
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    slopes = torch.autograd.grad(expected / targets, learned)
    for weight, slope in zip(learned, slopes, strict=True):
        close(weight.grad, slope)
    for weight_name, weight in model.named_parameters():
        fixed = weight_name == "encoder.plan.thresholds" and name == "hard"
        assert (weight.grad is None) == fixed, weight_name
        assert fixed or weight.grad.abs().max() > 0, weight_name


@all_plans
def test_validation_adds_the_cost_of_the_tokens_kept_as_training_does(name: str) -> None:
    model, config = reduced(name), TrainConfig(steps=1)
    predictions = predict(model, TextExamples(PAIRS), config, torch.device("cpu"))
    expected = float(token_loss(model, batch_of(), config).detach())
    assert predictions.loss == pytest.approx(expected, rel=1e-9)


# Names and refusals


def test_thresholds_are_found_by_the_name_that_earlier_versions_gave_them() -> None:
    model, other = with_pruning(model_of(), 0.3), with_pruning(model_of(), 0.9)
    tensors = {name: tensor.clone() for name, tensor in weights(model).items()}
    tensors["plan.thresholds"] = tensors.pop("encoder.plan.thresholds")
    copy_into(other, tensors, "here")
    assert weights(other)["encoder.plan.thresholds"].tolist() == pytest.approx([0.1, 0.2, 0.3])
    with pytest.raises(InputError, match=r"^here: unknown weight 'encoder.plan.thresholds' for "):
        copy_into(model_of(), tensors, "here")


def test_only_models_with_an_encoder_of_self_attention_reduce() -> None:
    sizes = {"width": WIDTH, "encoder_layers": 1}
    for kind, network in KINDS.items():
        model = network(ModelConfig.model_validate(sizes | {"kind": kind}), SOURCE, TARGET)
        assert reducible(model) == (kind == "transformer")
    causal = CausalModel(ModelConfig.model_validate(sizes), TARGET)
    rule = "CausalModel has no encoder that could merge or prune tokens"
    with pytest.raises(InputError, match=f"^{rule}$"):
        with_merging(causal, 2)


def test_rotary_positions_need_every_token() -> None:
    with pytest.raises(InputError, match=r"^rotary positions need every token; "):
        with_merging(model_of(positions="rotary"), 2)


def test_numbers_that_do_not_fit_the_layers_are_refused() -> None:
    model = model_of()
    for use, name in ((with_pruning, "thresholds"), (with_top, "shares")):
        with pytest.raises(ValueError, match=rf"^{name} \[0.1\] must be one number, or one for "):
            use(model, [0.1])
        with pytest.raises(InputError, match=rf"^{name} of tokens to prune: nan must be a number"):
            use(model, float("nan"))
