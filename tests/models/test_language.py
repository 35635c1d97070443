"""One stack under three masks: steps, the future, the prefix, companions, padding, and what is shared."""

from typing import Any

import pytest
import torch
from seq2see.training.packed import answers as packed_answers
from torch import Tensor
from torch.nn import functional

from seq2see.batches import Batch, IdPair, collate, collate_answers
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import beam_search, greedy
from seq2see.layers.mask_patterns import prefix_mask
from seq2see.layers.masks import combine, padding_mask
from seq2see.layers.trace import Trace
from seq2see.models.language import CausalModel, Classifier, MaskedModel, PrefixModel
from seq2see.recipe.schema import ModelConfig, TrainConfig
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
    """In double precision, and away from the biases of 0, where a forgotten one would not show."""
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
    return shaken(PrefixModel(config(kind="prefix", **keys), *sizes, tie))  # type: ignore[no-any-return]


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
def test_a_causal_model_goes_on_as_if_it_read_all_at_once(name: str, cuts: list[int]) -> None:
    model, batch = causal(**SETTINGS[name]), batch_of()
    past, pieces = model.start(3), []
    for ids in batch.target_in.tensor_split(list(cuts), dim=1):
        logits, past = model.step(past, ids)
        pieces.append(logits)
    close(torch.cat(pieces, 1), model(batch))


@settings
def test_a_causal_model_never_sees_the_future(name: str) -> None:
    model, batch = causal(**SETTINGS[name]), batch_of()
    before = model(batch)
    for t in range(1, batch.target_in.shape[1]):
        changed = batch.target_in.clone()
        changed[:, t:] = 15
        after = model(Batch(batch.source, changed, batch.target_out, batch.lines))
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


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


# Masked, and what reads as it does


@settings
@pytest.mark.parametrize("make", [masked, classifier])
def test_garbage_in_the_padding_does_not_matter_and_neither_do_companions(
    name: str, make: Any
) -> None:
    model, pairs = make(**SETTINGS[name]), HIDDEN if make is masked else LABELLED
    batch = collate_answers(pairs, range(3))
    real = batch.target_out != PAD
    before = model(batch)
    for line, (_, answers) in enumerate(pairs):
        close(model(collate_answers(pairs, [line]))[0], before[line, : len(answers)])
    with torch.no_grad():
        model.target_embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], before[real])


def test_a_masked_model_sees_both_sides_and_the_order() -> None:
    model, batch = masked(), collate_answers(HIDDEN, [0])
    before = model(batch)
    for s in range(batch.source.shape[1]):
        changed = batch.source.clone()
        changed[:, s] = 10
        assert ((model(Batch(changed, changed, changed, [0])) - before).abs().amax(-1) > 1e-6).all()
    swapped = batch.source[:, [1, 0, 2, 3, 4, 5]]
    assert ((model(Batch(swapped, swapped, swapped, [0])) - before).abs().amax(-1) > 1e-6).all()


def test_a_classifier_says_one_label_of_a_sentence() -> None:
    assert classifier()(collate_answers(LABELLED, range(3))).shape == (3, 1, LABELS)


# Prefix


def recomputed(model: PrefixModel, source: list[int], target: Tensor) -> Tensor:
    """The logits of a sentence by the layers as they are, all at once, under `prefix_mask`."""
    ids = torch.tensor([source])
    x = torch.cat(
        [
            model.embed(model.source_embedding, ids)
            + model.segment_embedding.weight[0] * WIDTH**0.5,
            model.embed(model.target_embedding, target[None])
            + model.segment_embedding.weight[1] * WIDTH**0.5,
        ],
        dim=1,
    )
    mask = combine(
        prefix_mask(len(source), x.shape[1]), padding_mask(torch.cat([ids, target[None]], 1), -1)
    )
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


def test_a_prefix_model_never_sees_the_future_and_always_the_source() -> None:
    model, batch = prefix(), batch_of(0)
    before = model(batch)
    changed = batch.target_in.clone()
    changed[:, 2:] = 15
    after = model(Batch(batch.source, changed, batch.target_out, [0]))
    assert torch.equal(after[:, :2], before[:, :2]) and not torch.equal(after[:, 2], before[:, 2])
    for s in range(batch.source.shape[1]):
        source = batch.source.clone()
        source[:, s] = 10
        assert (
            (model(Batch(source, batch.target_in, batch.target_out, [0])) - before).abs().amax(-1)
            > 1e-7
        ).all()


@absolute
def test_companions_and_padding_do_not_matter_to_a_prefix_model(name: str) -> None:
    model, batch = prefix(**SETTINGS[name]), batch_of()
    real = batch.target_out != PAD
    together = model(batch)
    for line, (_, target) in enumerate(PAIRS):
        close(model(batch_of(line))[0], together[line, : len(target) + 1])
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], together[real])


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 2], [2], []], ids=str)
def test_select_reorders_repeats_and_shrinks(rows: list[int]) -> None:
    model, batch = prefix(), batch_of()
    fresh = model.start(model.encode(batch.source))
    _, state = model.step(fresh, batch.target_in[:, :3])
    expected, _ = model.step(state, batch.target_in[:, 3:])
    pick = torch.tensor(rows, dtype=torch.long)
    close(model.step(state.select(pick), batch.target_in[pick, 3:])[0], expected[pick])
    close(model.step(fresh.select(pick), batch.target_in[pick])[0][:, 3:], expected[pick])


def test_hypotheses_of_one_sentence_share_its_prefix() -> None:
    model, batch = prefix(), batch_of()
    fresh, twice = model.start(model.encode(batch.source)), torch.arange(3).repeat_interleave(2)
    state = fresh.select(twice)
    assert state.memory is fresh.memory
    close(model.step(state, batch.target_in[twice])[0], model(batch)[twice])


@pytest.mark.parametrize("beam", [1, 3])
def test_search_finds_the_same_alone_and_together(beam: int) -> None:
    model, how, find = prefix(), Search(beam=beam), greedy if beam == 1 else beam_search
    together = find(model, batch_of().source, how)
    for line, (source, _) in enumerate(PAIRS):
        alone = find(model, torch.tensor([[*source, END]]), how)[0]
        assert [each.ids for each in alone] == [each.ids for each in together[line]]


def test_a_trace_shows_the_prefix_as_an_encoder_and_a_decoder_do() -> None:
    model, batch, trace = prefix(), batch_of(), Trace()
    close(model(batch, trace), model(batch))
    assert {name.split(".", 2)[0] + "." + name.split(".", 2)[2] for name in trace.weights} == {
        "encoder.self",
        "decoder.self",
        "decoder.cross",
    }
    for i in range(LAYERS):
        cross, own = trace.weights[f"decoder.{i}.cross"], trace.weights[f"decoder.{i}.self"]
        assert (cross.shape, own.shape) == ((3, 2, 8, 6), (3, 2, 8, 8))
        close(cross.sum(-1) + own.sum(-1), torch.ones(3, 2, 8, dtype=torch.float64))
        assert not cross[(batch.source == PAD)[:, None, None].expand_as(cross)].any()


def test_ties_share_parameters_and_need_one_vocabulary() -> None:
    for tie, same, tied in (("all", True, True), ("target", False, True), ("none", False, False)):
        model = prefix(tie)
        assert (model.source_embedding is model.target_embedding) == same
        assert (model.output.weight is model.target_embedding.weight) == tied
    with pytest.raises(
        ValueError, match=r"^tie 'all' needs one vocabulary, not 17 and 19 entries$"
    ):
        PrefixModel(config(kind="prefix"), SOURCE, TARGET, "all")


# Learning


@pytest.mark.parametrize("make", [causal, masked, prefix, classifier])
def test_gradients_reach_every_parameter_and_are_those_of_the_plain_loss(make: Any) -> None:
    model = make().train()
    pairs = {masked: HIDDEN, classifier: LABELLED}.get(make, PAIRS)
    way = collate_answers if make in (masked, classifier) else collate
    batch = way(pairs, range(3))
    found = packed_answers(model, batch)
    logits, targets = found.logits, found.targets
    close(logits, model(batch)[batch.target_out != PAD])
    expected = functional.cross_entropy(
        model(batch).flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    )
    slopes = torch.autograd.grad(expected, list(model.parameters()))
    train = TrainConfig(steps=1, label_smoothing=0.0)
    update = Gradients(model, train, 2, way).fill(pairs, [[0, 1], [2]], "0")
    assert update.tokens == batch.target_tokens == len(targets)
    assert update.loss / update.tokens == pytest.approx(float(expected.detach()), rel=1e-9)
    for (name, weight), slope in zip(model.named_parameters(), slopes, strict=True):
        assert weight.grad is not None, name
        assert float(slope.abs().max()) > 1e-9 or name.endswith("key.bias"), (
            name
        )  # softmax takes no notice of that
        close(weight.grad, slope)
