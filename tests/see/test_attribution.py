"""Attribution: every method against a slower way to its figures, on models of every kind."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.batches import Batch, collate
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.build import build
from seq2see.models.reduced import with_merging
from seq2see.recipe.schema import Recipe
from seq2see.see import attribution, erasure, gradients
from seq2see.see.attention_flow import norms_by_layer, rollout, rollout_to_both
from seq2see.see.attribution import METHODS, attribute
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END

SOURCE, TARGET = [4, 9, 16, 5, 11], [7, 18, 4]
SHAPE = (len(TARGET) + 1, len(SOURCE) + 1)
BLOCKS = {"heads": 3, "feed_forward": 10}
LEARNED = {"positions": "learned", "max_positions": 40}
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "pre": BLOCKS,
    "post": BLOCKS | {"norm": "post"},
    "rotary": BLOCKS | {"positions": "rotary"},
    "learned": BLOCKS | LEARNED | {"attention_width": 18, "score": "bilinear"},
}
OTHERS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm"},
    "last state": {"kind": "gru", "attend": False},
    "conv": {"kind": "conv"},
    "prefix": {"kind": "prefix", **BLOCKS},
}
REFUSED = {  # models and the methods that do not apply to them
    "lstm": {"norm", "rollout"},
    "last state": {"norm", "rollout", "attention"},
    "conv": {"norm", "rollout"},
    "prefix": {"norm", "rollout"},
}
Make = Callable[..., Translator]


@pytest.fixture
def make(translator: Translator) -> Make:
    """Make translators in float64, of fresh weights under which every parameter counts."""

    def of(keys: dict[str, Any], tie: str = "none", layers: int = 2) -> Translator:
        sizes = {"width": 12, "encoder_layers": 3, "dropout": 0.1}
        sizes |= {} if keys.get("kind") == "prefix" else {"decoder_layers": layers}
        data = {"train": "pairs.tsv", "max_length": 9}
        recipe = Recipe.model_validate(
            {"data": data, "model": sizes | keys | {"tie": tie}, "train": {"steps": 1}}
        )
        torch.manual_seed(7)
        model = build(recipe, 19 if tie == "all" else 17, 19).double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        return Translator(recipe, translator.tokenizers, model, torch.device("cpu"))

    return of


def log_p(model: Any, read: list[int]) -> Tensor:
    """Compute log p of each target token (T), given exactly these source ids."""
    target = [torch.tensor([ids]) for ids in ([BEGIN, *TARGET], [*TARGET, END])]
    with torch.no_grad():
        by_id = model(Batch(torch.tensor([read]), *target, lines=[0])).log_softmax(-1)[0]
    return by_id[range(len(TARGET) + 1), [*TARGET, END]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_every_method_attributes_in_every_transformer(make: Make, name: str, method: str) -> None:
    values = attribute(make(TRANSFORMERS[name]), SOURCE, TARGET, method)
    assert values.shape == SHAPE and values.isfinite().all() and values.std() > 1e-4
    assert (values < 0).any() or not METHODS[method].signed
    if not METHODS[method].signed:
        assert (values >= 0).all() and torch.allclose(values.sum(1), torch.ones(4).double())


@pytest.mark.parametrize("name", OTHERS)
def test_a_method_applies_or_says_what_is_missing(make: Make, name: str) -> None:
    model = make(OTHERS[name])
    for method in METHODS:
        if method in REFUSED[name]:
            with pytest.raises(InputError, match=f"^method '{method}' needs .*(cross|self)-atten"):
                attribute(model, SOURCE, TARGET, method)
        else:
            assert attribute(model, SOURCE, TARGET, method).shape == SHAPE


@pytest.mark.parametrize("name", ["pre", "rotary", "lstm", "conv", "prefix"])
def test_erasure_equals_one_pass_for_each_token(make: Make, name: str) -> None:
    translator = make((TRANSFORMERS | OTHERS)[name])
    read = [*SOURCE, END]
    whole = log_p(translator.model, read)
    slow = [whole - log_p(translator.model, read[:s] + read[s + 1 :]) for s in range(len(read))]
    values = attribute(translator, SOURCE, TARGET, "erasure")
    assert torch.allclose(values, torch.stack(slow, dim=1), atol=1e-12)


def test_any_set_of_positions_may_be_erased(make: Make) -> None:
    model = make(BLOCKS).model
    falls = erasure.falls(model, SOURCE, TARGET, [{1, 3}, set()])
    expected = log_p(model, [*SOURCE, END]) - log_p(model, [4, 16, 11, END])
    assert torch.allclose(falls[:, 0], expected, atol=1e-12)
    assert falls[:, 1].abs().max() < 1e-12


@pytest.mark.parametrize("method", ["erasure", "gradient", "integrated"])
def test_the_size_of_a_pass_changes_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    translator = make(BLOCKS)
    together = attribute(translator, SOURCE, TARGET, method)
    monkeypatch.setattr(erasure, "TOKENS_PER_PASS", 2 * sum(SHAPE))  # two or three rows
    assert torch.allclose(attribute(translator, SOURCE, TARGET, method), together, atol=1e-12)


@pytest.mark.parametrize("name", ["pre", "post", "lstm", "conv", "prefix"])
def test_gradient_times_input_is_the_slope_of_log_p(make: Make, name: str) -> None:
    translator = make((TRANSFORMERS | OTHERS)[name])
    values = attribute(translator, SOURCE, TARGET, "gradient")
    for s, id in enumerate([*SOURCE, END]):  # all different
        nearby = []
        for scale in (1 + 1e-5, 1 - 1e-5):
            model: Any = copy.deepcopy(translator.model)
            model.source_embedding.weight.data[id] *= scale
            nearby.append(log_p(model, [*SOURCE, END]))
        assert torch.allclose(values[:, s], (nearby[0] - nearby[1]) / 2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "steps", "error"),
    [
        ("lstm", 32, 1e-9),
        ("last state", 32, 1e-9),
        ("conv", 32, 1e-9),
        ("pre", 128, 0.03),  # the kinks of ReLU make quadrature slower
        ("post", 128, 0.03),
        ("rotary", 128, 0.05),
    ],
)
def test_integrated_gradients_are_complete(make: Make, name: str, steps: int, error: float) -> None:
    model = make((TRANSFORMERS | OTHERS)[name]).model
    given, nothing = (gradients.log_p_of_scaled(model, SOURCE, TARGET, a) for a in (1.0, 0.0))
    assert torch.allclose(given, log_p(model, [*SOURCE, END]), atol=1e-12)
    total = gradients.integrated_gradients(model, SOURCE, TARGET, steps).sum(1)
    assert (total - (given - nothing)).abs().max() < error
    assert (given - nothing).abs().max() > 10 * error


def test_tied_embeddings_are_attributed_at_the_source_alone(make: Make) -> None:
    tied = make(BLOCKS, tie="all")
    copied: Any = copy.deepcopy(tied.model)
    assert copied.source_embedding is copied.target_embedding
    copied.source_embedding = copy.deepcopy(copied.source_embedding)
    apart = Translator(tied.recipe, tied.tokenizers, copied, tied.device)
    for method in ("gradient", "integrated"):
        values = attribute(tied, SOURCE, TARGET, method)
        assert torch.equal(values, attribute(apart, SOURCE, TARGET, method))


def test_norms_equal_a_computation_by_hand(make: Make) -> None:
    model: Any = make(BLOCKS, layers=1).model
    batch = collate([(SOURCE, TARGET)], [0])
    trace = Trace()
    with torch.no_grad():
        model(batch, trace)
        states = model.encode(batch.source).states[0]
    weights = trace.weights["decoder.0.cross"][0]
    cross = model.decoder[0].cross_attention
    for t in range(SHAPE[0]):
        for s in range(SHAPE[1]):
            vector = torch.zeros(12, dtype=torch.float64)
            for head in range(3):
                own = slice(4 * head, 4 * head + 4)
                value = cross.value.weight[own] @ states[s] + cross.value.bias[own]
                vector += weights[head, t, s] * (cross.output.weight[:, own] @ value)
            norm = norms_by_layer(model, SOURCE, TARGET)[0, t, s]
            assert norm.item() == pytest.approx(vector.norm().item(), rel=1e-9)


def test_rollout_follows_both_stacks(make: Make) -> None:
    model: Any = make(BLOCKS, layers=1).model
    both = rollout_to_both(model, SOURCE, TARGET)
    assert both.shape == (SHAPE[0], sum(reversed(SHAPE)))
    assert torch.allclose(both.sum(1), torch.ones(4).double())
    assert (both[:, SHAPE[1] :].triu(1) == 0).all()  # the future is not read
    trace = Trace()
    with torch.no_grad():
        model(collate([(SOURCE, TARGET)], [0]), trace)
    mean = {name: weights[0].mean(0) for name, weights in trace.weights.items()}
    memory = torch.eye(SHAPE[1]).double()
    for i in range(3):
        memory = (mean[f"encoder.{i}.self"] @ memory + memory) / 2
    # One layer reads the source once, so half of it all comes from there.
    assert torch.allclose(both[:, : SHAPE[1]], mean["decoder.0.cross"] @ memory / 2)
    assert torch.allclose(rollout(model, SOURCE, TARGET), mean["decoder.0.cross"] @ memory)


def test_attention_is_the_mean_of_the_last_layer(make: Make) -> None:
    translator = make(BLOCKS)
    trace = Trace()
    with torch.no_grad():
        translator.model(collate([(SOURCE, TARGET)], [0]), trace)
    expected = trace.weights["decoder.1.cross"][0].mean(0)
    assert torch.allclose(attribute(translator, SOURCE, TARGET, "attention"), expected)


@pytest.mark.parametrize("method", METHODS)
def test_merged_tokens_get_their_shares(make: Make, method: str) -> None:
    plain = make(BLOCKS)
    merged = Translator(plain.recipe, plain.tokenizers, with_merging(plain.model, 1), plain.device)
    values = attribute(merged, SOURCE, TARGET, method)
    assert values.shape == SHAPE and values.isfinite().all()
    assert METHODS[method].signed or torch.allclose(values.sum(1), torch.ones(4).double())


@pytest.mark.parametrize("method", METHODS)
def test_attributing_changes_nothing(make: Make, method: str) -> None:
    translator = make(BLOCKS)
    model: Any = translator.model
    expected = attribute(translator, SOURCE, TARGET, method)
    weights = copy.deepcopy(model.state_dict())
    output = model(collate([(SOURCE, TARGET)], [0]))
    model.train()
    model.encoder[1].eval()
    modes = [module.training for module in model.modules()]
    modules = list(model.modules())
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            assert torch.equal(attribute(translator, SOURCE, TARGET, method), expected)
    assert [module.training for module in model.modules()] == modes
    assert all(a is b for a, b in zip(model.modules(), modules, strict=True))
    assert all(
        parameter.grad is None and parameter.requires_grad for parameter in model.parameters()
    )
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
    assert torch.equal(model.eval()(collate([(SOURCE, TARGET)], [0])), output)


@pytest.mark.parametrize(
    ("source", "target", "method", "says"),
    [
        (SOURCE, TARGET, "magic", "method 'magic' is not one of erasure, gradient, integrated, "),
        ([], TARGET, "erasure", "the source has no tokens"),
        ([4] * 10, TARGET, "erasure", "the source has more than the model's 9 tokens"),
        (SOURCE, [4] * 10, "norm", "the target has more than the model's 9 tokens"),
    ],
)
def test_impossible_requests_are_refused(
    make: Make, source: list[int], target: list[int], method: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        attribute(make(BLOCKS), source, target, method)


def test_a_text_is_attributed_with_its_tokens(translator: Translator) -> None:
    result = attribution.attribute_text(translator, "drei acht eins", None, "erasure")
    assert (result.source, result.target) == ("drei acht eins", "three eight one")
    explained = translator.explain("drei acht eins")
    assert result.source_tokens == explained.source_tokens
    assert result.target_tokens == explained.target_out
    source, target = (
        side.encode(text)
        for side, text in (
            (translator.tokenizers.source, result.source),
            (translator.tokenizers.target, result.target),
        )
    )
    assert torch.equal(result.values, attribute(translator, source, target, "erasure"))
    given = attribution.attribute_text(translator, "drei acht eins", "two", "norm")
    assert given.target == "two" and given.values.shape[0] == len(given.target_tokens)


def test_an_empty_target_has_its_end(make: Make) -> None:
    for method in METHODS:
        assert attribute(make(BLOCKS), [4], [], method).shape == (1, 2)
