"""What every model promises, for all that came before the Transformer: steps, hypotheses, companions, traces, runs."""

from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch, IdPair, collate
from seq2see.bench.train import bench_train
from seq2see.ct2 import convert
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import beam_search, greedy
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.build import KINDS
from seq2see.recipe.schema import ModelConfig, Recipe, TrainConfig
from seq2see.see import figures
from seq2see.tasks.table import load
from seq2see.text import captions
from seq2see.text.specials import END, PAD
from seq2see.training.update import Gradients

WIDTH, ENCODER, DECODER, SOURCE, TARGET = 12, 3, 2, 17, 19
PAIRS: list[IdPair] = [
    ([4, 9, 16, 5, 5], [7, 18, 4]),
    ([8, 3], [11, 12, 13, 14, 4, 6, 7]),
    ([6, 7, 8, 4], [5]),
]
EXACT = {torch.float32: 1e-5, torch.float64: 1e-9}

MODELS: dict[str, dict[str, Any]] = {
    "rnn": {"kind": "rnn"},
    "lstm": {"kind": "lstm"},
    "gru": {"kind": "gru"},
    "rnn-last-state": {"kind": "rnn", "attend": False},
    "lstm-last-state": {"kind": "lstm", "attend": False},
    "gru-last-state": {"kind": "gru", "attend": False},
    "lstm-additive": {"kind": "lstm", "score": "additive"},
    "conv": {"kind": "conv"},
    "conv-wide": {
        "kind": "conv",
        "kernel": 4,
        "positions": "learned",
        "max_positions": 40,
        "score": "bilinear",
    },
    "conv-narrow": {"kind": "conv", "kernel": 1},
}
every = pytest.mark.parametrize("name", MODELS)
each_kind = pytest.mark.parametrize("name", ["rnn", "lstm-last-state", "lstm", "gru", "conv"])
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def config(name: str, **keys: Any) -> ModelConfig:
    sizes = {"width": WIDTH, "encoder_layers": ENCODER, "decoder_layers": DECODER, "dropout": 0.0}
    return ModelConfig.model_validate(sizes | MODELS[name] | keys)


def model_of(name: str, dtype: torch.dtype = torch.float64, tie: str = "none", **keys: Any) -> Any:
    torch.manual_seed(7)
    sizes = (TARGET, TARGET) if tie == "all" else (SOURCE, TARGET)
    how = config(name, **keys)
    model = KINDS[how.kind](how, *sizes, tie).to(dtype).eval()
    with torch.no_grad():  # biases start at 0, where a forgotten one would not show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def batch_of(*lines: int) -> Batch:
    return collate(PAIRS, lines or range(len(PAIRS)))


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


@types
@every
def test_step_by_step_equals_forward(name: str, dtype: torch.dtype) -> None:
    model, batch = model_of(name, dtype), batch_of()
    expected = model(batch)
    assert expected.shape == (3, 8, TARGET)
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        assert logits.shape == (3, 1, TARGET)
        close(logits[:, 0], expected[:, t], EXACT[dtype])


@every
@settings(max_examples=5)
@given(cuts=st.sets(st.integers(1, 7)))
def test_steps_of_any_sizes_equal_forward(name: str, cuts: set[int]) -> None:
    model, batch = model_of(name), batch_of()
    state, pieces = model.start(model.encode(batch.source)), []
    for ids in batch.target_in.tensor_split(sorted(cuts), dim=1):
        logits, state = model.step(state, ids)
        pieces.append(logits)
    close(torch.cat(pieces, 1), model(batch), 1e-9)


@every
def test_a_later_target_token_never_changes_an_earlier_logit(name: str) -> None:
    model, batch = model_of(name), batch_of()
    before = model(batch)
    for t in range(1, batch.target_in.shape[1]):
        changed = batch.target_in.clone()
        changed[:, t:] = 15
        after = model(Batch(batch.source, changed, batch.target_out, batch.lines))
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


@every
def test_every_source_token_matters_and_so_does_its_place(name: str) -> None:
    model, batch = model_of(name), batch_of(0)
    before = model(batch)
    for s in range(batch.source.shape[1]):
        changed = batch.source.clone()
        changed[:, s] = 10
        assert (
            model(Batch(changed, batch.target_in, batch.target_out, [0])) - before
        ).abs().max() > 1e-6
    swapped = Batch(batch.source[:, [1, 0, 2, 3, 4, 5]], batch.target_in, batch.target_out, [0])
    assert (model(swapped) - before).abs().max() > 1e-4


@types
@every
def test_other_companions_of_the_same_shape_leave_the_same_bits(
    name: str, dtype: torch.dtype
) -> None:
    model = model_of(name, dtype)
    others = [([9] * len(source), [10] * len(target)) for source, target in PAIRS]
    longer = (
        [*PAIRS[2][0], 4],
        [*PAIRS[2][1], 5, 5],
    )  # the same shape of the batch, with less padding in it
    here, there = collate(PAIRS, [0, 1, 2]), collate([PAIRS[0], others[1], longer], [0, 1, 2])
    left, right = model(here), model(there)
    assert here.source.shape == there.source.shape and here.target_in.shape == there.target_in.shape
    assert torch.equal(left[0], right[0])
    assert not torch.equal(left[1], right[1])


@types
@every
def test_garbage_in_the_padding_leaves_the_same_bits(name: str, dtype: torch.dtype) -> None:
    model, batch = model_of(name, dtype), batch_of()
    real = batch.target_out != PAD
    before = model(batch)[real]
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], before)


@types
@every
def test_other_shapes_change_next_to_nothing(name: str, dtype: torch.dtype) -> None:
    model = model_of(name, dtype)
    together = model(batch_of())
    for line, (_, target) in enumerate(PAIRS):
        alone = model(batch_of(line))[0]
        close(
            together[line, : len(target) + 1],
            alone,
            {torch.float32: 1e-4, torch.float64: 1e-9}[dtype],
        )


@every
@pytest.mark.parametrize("tie", ["all", "none"])
def test_gradients_reach_every_parameter_but_not_the_padding(name: str, tie: str) -> None:
    model, batch = model_of(name, tie=tie), batch_of()
    functional.cross_entropy(
        model(batch).flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    ).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert float(parameter.grad.abs().max()) > 1e-8, parameter_name
    if tie == "none":
        for embedding in (model.source_embedding, model.target_embedding):
            assert not embedding.weight.grad[PAD].any() and embedding.weight.grad[4].any()


@every
@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 2], [2], []], ids=str)
def test_select_reorders_repeats_and_shrinks(name: str, rows: list[int]) -> None:
    model, batch = model_of(name), batch_of()
    begin, end = batch.target_in[:, :3], batch.target_in[:, 3:]
    fresh = model.start(model.encode(batch.source))
    _, state = model.step(fresh, begin)
    expected, _ = model.step(state, end)
    assert torch.equal(model.step(state, end)[0], expected)  # a step leaves the state it was given
    pick = torch.tensor(rows, dtype=torch.long)
    logits, _ = model.step(state.select(pick), end[pick])
    close(logits, expected[pick], 1e-9)
    again, _ = model.step(fresh.select(pick), batch.target_in[pick])  # also before the first token
    close(again[:, 3:], expected[pick], 1e-9)


@every
def test_hypotheses_of_one_sentence_share_its_memory(name: str) -> None:
    model, batch = model_of(name), batch_of()
    fresh = model.start(model.encode(batch.source))
    begin, end = batch.target_in[:, :3], batch.target_in[:, 3:]
    expected, _ = model.step(model.step(fresh, begin)[1], end)
    twice = torch.arange(3).repeat_interleave(2)
    state = fresh.select(twice)
    assert state.memory is fresh.memory  # no copy of what all have in common
    _, state = model.step(state, begin[twice])
    for rows, sentences in (
        ([1, 0, 3, 3, 5, 4], 3),
        ([0, 1, 5, 5], 2),
        ([0, 1, 5], 3),
        ([4, 0], 2),
        ([2, 3, 2], 1),
    ):
        pick = torch.tensor(rows)
        chosen = state.select(pick)
        assert len(chosen.memory.mask) == len(chosen.memory.keys) == sentences
        logits, after = model.step(chosen, end[pick // 2])
        close(logits, expected[pick // 2], 1e-9)
        again, _ = model.step(after.select(torch.arange(len(rows))), end[pick // 2][:, :1])
        assert again.shape == (len(rows), 1, TARGET)


@every
@pytest.mark.parametrize("beam", [1, 3])
def test_greedy_and_beam_search_find_the_same_alone_and_together(name: str, beam: int) -> None:
    model, how = model_of(name), Search(beam=beam)
    find = greedy if beam == 1 else beam_search
    together = find(model, batch_of().source, how)
    for line, (source, _) in enumerate(PAIRS):
        alone = find(model, torch.tensor([[*source, END]]), how)[0]
        assert [each.ids for each in alone] == [each.ids for each in together[line]]
        pairs = [(source, each.ids) for each in alone]
        batch = collate(pairs, range(len(pairs)))
        log_p = -functional.cross_entropy(
            model(batch).mT, batch.target_out, ignore_index=PAD, reduction="none"
        )
        ended = [len(each.ids) + 1 for each in alone]
        close(
            torch.stack([row[:end].sum() for row, end in zip(log_p, ended, strict=True)]),
            torch.tensor([each.log_probability for each in alone], dtype=torch.float64),
            1e-6,
        )


@every
@pytest.mark.parametrize(
    ("tie", "source_is_target", "output_is_target"),
    [("all", True, True), ("target", False, True), ("none", False, False)],
)
def test_ties_share_parameters(
    name: str, tie: str, source_is_target: bool, output_is_target: bool
) -> None:
    model = model_of(name, tie=tie)
    target = model.target_embedding.weight
    assert (model.source_embedding.weight is target) == source_is_target
    assert (model.output.weight is target) == output_is_target


@each_kind
def test_tie_all_needs_one_vocabulary(name: str) -> None:
    how = config(name)
    with pytest.raises(
        ValueError, match=r"^tie 'all' needs one vocabulary, not 17 and 19 entries$"
    ):
        KINDS[how.kind](how, SOURCE, TARGET, "all")


@every
def test_a_trace_names_every_attention_and_holds_weights_that_sum_to_one(name: str) -> None:
    model, batch, trace = model_of(name), batch_of(), Trace()
    close(model(batch, trace), model(batch), 1e-9)
    layers = DECODER if name.startswith("conv") else 0 if name.endswith("last-state") else 1
    expected = {f"decoder.{i}.cross": (3, 1, 8, 6) for i in range(layers)}
    assert {key: tuple(weights.shape) for key, weights in trace.weights.items()} == expected
    for weights in trace.weights.values():
        close(weights.sum(-1), torch.ones_like(weights.sum(-1)), 1e-9)
        assert not weights[(batch.source == PAD)[:, None, None].expand_as(weights)].any()


@every
def test_the_first_loss_is_about_that_of_guessing(name: str) -> None:
    torch.manual_seed(1)
    how = config(name, width=32)
    model = KINDS[how.kind](how, 500, 500, "all").eval()
    ids = torch.randint(4, 500, (12, 2, 15))
    batch = collate([(source.tolist(), target.tolist()) for source, target in ids], range(12))
    loss = functional.cross_entropy(model(batch).detach().flatten(0, 1), batch.target_out.flatten())
    assert -0.2 < float(loss) - 6.2146 < 1.2  # ln 500


@each_kind
def test_dropout_acts_in_training_alone(name: str) -> None:
    torch.manual_seed(0)
    model, batch = model_of(name, dropout=0.3).train(), batch_of()
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))


@each_kind
@pytest.mark.parametrize("workers", [2, 4])
def test_several_workers_give_the_gradient_of_one(name: str, workers: int) -> None:
    model, train = model_of(name, tie="target").train(), TrainConfig(steps=1)

    def filled(network: nn.Module, workers: int, key: str = "0") -> tuple[float, list[Tensor]]:
        update = Gradients(network, train, workers).fill(PAIRS, [[0, 1], [2]], key)
        return update.loss, [
            weight.grad.clone() for weight in network.parameters() if weight.grad is not None
        ]

    (one, alone), (several, together) = filled(model, 1), filled(model, workers)
    assert several == pytest.approx(one, rel=1e-9)
    for left, right in zip(alone, together, strict=True):
        close(left, right, 1e-9)
    dropped = model_of(name, tie="target", dropout=0.3).train()
    (_, first), (_, again), (_, other) = (filled(dropped, workers, key) for key in ("a", "a", "b"))
    assert all(map(torch.equal, first, again))  # the same key, the same dropout
    assert not all(map(torch.equal, first, other))


@each_kind
def test_a_few_captions_are_learned_by_heart(name: str) -> None:
    some = captions.generate("train", 8)
    known: dict[str, int] = {}
    encoded = [
        tuple(
            [known.setdefault(word, len(known) + 4) for word in captions.words(text)]
            for text in pair
        )
        for pair in ((caption.source, caption.target) for caption in some)
    ]
    torch.manual_seed(1)
    how = config(name, width=48, encoder_layers=1, decoder_layers=1)
    model = KINDS[how.kind](how, len(known) + 4, len(known) + 4, "all").train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batch = collate(encoded, range(len(encoded)))  # type: ignore[arg-type]
    for _ in range(60):
        loss = functional.cross_entropy(
            model(batch).flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = greedy(model.eval(), batch.source, Search(beam=1))
    assert [hypotheses[0].ids for hypotheses in found] == [target for _, target in encoded]


def small(toy: Any, name: str, *more: str) -> Recipe:
    """The toy recipe for another kind; what only the Transformer knows is left out of it."""
    text = "\n".join(
        line for line in toy.path.read_text(encoding="utf-8").splitlines() if "heads" not in line
    )
    toy.path.write_text(text + "\n", encoding="utf-8")
    return toy.recipe(
        *(f"model.{key}={str(value).lower()}" for key, value in MODELS[name].items()), *more
    )


@pytest.mark.parametrize("name", ["lstm", "gru-last-state", "conv"])
def test_a_run_trains_translates_scores_explains_and_draws(
    toy: Any, tmp_path: Path, name: str
) -> None:
    recipe = small(toy, name, "train.steps=20")
    overrides = [f"model.{key}={str(value).lower()}" for key, value in MODELS[name].items()]
    translator = toy.train(tmp_path / "run", *overrides, "train.steps=20")
    again = load(tmp_path / "run", "cpu")
    assert again.recipe == recipe == translator.recipe
    assert type(again.model) is KINDS[recipe.model.kind]
    texts = ["zwei vier", "drei acht eins"]
    assert again.translate(texts, beam=2) == translator.translate(texts, beam=2)
    assert again.score(["zwei"], ["two"]) == translator.score(["zwei"], ["two"]) < [0.0]
    explanation = again.explain("zwei vier")
    if recipe.model.attend:
        figures.save(figures.attention(explanation), tmp_path / "a.png")
        assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.01
    else:
        with pytest.raises(InputError, match=r"^this model has no attention to draw$"):
            figures.attention(explanation)
    with pytest.raises(
        InputError, match=r"^model.kind = '\w+' cannot be exported to CTranslate2; only transformer"
    ):
        convert.refuse(again.recipe, again.tokenizers)


def test_utilisation_is_not_made_up_for_them(toy: Any) -> None:
    found = bench_train(small(toy, "gru"), None, seconds=0.1, device=torch.device("cpu"))
    assert found["utilisation"] is None and found["target_tokens_per_second"] > 0
