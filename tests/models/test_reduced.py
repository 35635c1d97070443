"""Models that merge or prune: what the untouched model keeps, what decoding sees, what training learns, what loads."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seq2see.batches import Batch, IdPair, collate, collate_answers
from seq2see.cli import main as cli
from seq2see.ct2 import convert
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import beam_search, greedy
from seq2see.errors import InputError
from seq2see.layers.reduction.plans import Merging, Pruning, SoftPruning, plan_of
from seq2see.layers.trace import Trace
from seq2see.models.language import Classifier
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig, ReduceConfig, TrainConfig
from seq2see.tasks import run
from seq2see.tasks import text as tasks
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text.specials import END, PAD
from seq2see.training.update import Gradients, loss_of

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
each = pytest.mark.parametrize("name", PLANS)
both = pytest.mark.parametrize("kind", ["translate", "classify"])
examples = settings(max_examples=8, deadline=None)


def model_of(kind: str = "translate", **keys: Any) -> Any:
    torch.manual_seed(7)
    sizes = {
        "width": WIDTH,
        "heads": 2,
        "encoder_layers": ENCODER,
        "decoder_layers": DECODER,
        "dropout": 0.0,
    }
    config = ModelConfig.model_validate(sizes | keys)
    model: nn.Module = (
        Transformer(config, SOURCE, TARGET)
        if kind == "translate"
        else Classifier(config, SOURCE, LABELS)
    )
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def reduced(name: str, kind: str = "translate", **keys: Any) -> Any:
    return model_of(kind, **keys).with_plan(
        plan_of(ReduceConfig.model_validate(PLANS[name]), ENCODER)
    )


def batch_of(
    kind: str = "translate", lines: Sequence[int] = range(3), pairs: list[IdPair] | None = None
) -> Batch:
    if kind == "translate":
        return collate(pairs or PAIRS, lines)
    return collate_answers(pairs or LABELLED, lines)


def close(left: Tensor, right: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


@both
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_nothing_merged_and_nothing_pruned_is_the_same_model_bit_for_bit(
    kind: str, norm: str
) -> None:
    model, batch = model_of(kind, norm=norm), batch_of(kind)
    expected = model(batch)
    for other in (model.with_merging(0), model.with_pruning(0.0), model.with_top(1.0)):
        assert torch.equal(other(batch), expected)
    changed = model.with_merging(2)
    assert not torch.equal(changed(batch), expected)
    assert torch.equal(model(batch), expected) and torch.equal(
        changed.with_plan(None)(batch), expected
    )


@both
@pytest.mark.parametrize("match", ["bipartite", "neighbours"])
@examples
@given(
    words=st.lists(st.integers(4, SOURCE - 1), min_size=1, max_size=5, unique=True), data=st.data()
)
def test_merging_the_same_word_twice_changes_nothing(
    kind: str, match: str, words: list[int], data: Any
) -> None:
    model = model_of(kind, positions="none")  # or the second would stand elsewhere
    source = [word for word in words for _ in range(2)]
    batch = batch_of(kind, [0, 1], [(source, [5]), (source[:2], [5])])
    r = data.draw(st.integers(0, len(words)))
    merging = model.with_merging([r, 0, 0], match=match)
    trace = Trace()
    close(merging(batch, trace), model(batch))
    assert trace.reductions[-1].real.sum(1).tolist() == [len(source) + 1 - r, 3 - min(r, 1)]
    plain = Trace()
    model(batch, plain)
    for name, weights in trace.on_tokens().items():
        real = (
            (batch.source != PAD)[:, None, :, None]
            if name.startswith("encoder")
            else torch.ones(1).bool()
        )
        close(weights.masked_fill(~real, 0.0), plain.weights[name].masked_fill(~real, 0.0))


@both
@each
def test_companions_change_nothing(kind: str, name: str) -> None:
    model = reduced(name, kind)
    together = model(batch_of(kind))
    for line, (_, target) in enumerate(PAIRS if kind == "translate" else LABELLED):
        alone = model(batch_of(kind, [line]))[0]
        close(together[line, : len(alone)], alone)
        assert kind == "classify" or len(alone) == len(target) + 1


@each
def test_garbage_in_the_padding_leaves_the_same_bits(name: str) -> None:
    model, batch = reduced(name), batch_of()
    real = batch.target_out != PAD
    before = model(batch)[real]
    with torch.no_grad():
        model.source_embedding.weight[PAD] = 1000 * torch.randn(WIDTH)
    assert torch.equal(model(batch)[real], before)


@each
def test_step_by_step_equals_forward_and_hypotheses_are_selected(name: str) -> None:
    model, batch = reduced(name), batch_of()
    expected = model(batch)
    memory = model.encode(batch.source)
    assert (
        memory.states.shape[1] == memory.mask.shape[3] <= batch.source.shape[1] - (name != "soft")
    )
    assert (memory.bias is None) == (name in ("hard", "top"))
    state = model.start(memory)
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        close(logits[:, 0], expected[:, t])
    for rows in ([2, 0, 1], [1, 1, 0, 2, 2], [2], [0, 0, 1, 1, 2, 2]):
        pick = torch.tensor(rows)
        logits, _ = model.step(model.start(memory).select(pick), batch.target_in[pick])
        close(logits, expected[pick])


@each
@pytest.mark.parametrize("find", [greedy, beam_search])
def test_the_search_finds_the_same_alone_and_together(name: str, find: Callable[..., Any]) -> None:
    model, how = reduced(name), Search(beam=3)
    together = find(model, batch_of().source, how)
    for (source, _), found in zip(PAIRS, together, strict=True):
        alone = find(model, torch.tensor([[*source, END]]), how)[0]
        assert [hypothesis.ids for hypothesis in alone] == [hypothesis.ids for hypothesis in found]


@each
def test_cross_attention_is_drawn_on_the_words(name: str) -> None:
    model, batch, trace = reduced(name), batch_of(), Trace()
    model(batch, trace)
    real = (batch.source != PAD)[:, None, None]
    for layer in range(DECODER):
        weights = trace.on_tokens()[f"decoder.{layer}.cross"]
        assert weights.shape == (3, 2, 8, 10)
        assert not weights.masked_fill(real, 0.0).any()
        close(weights.sum(-1), torch.ones(3, 2, 8).double())
        assert trace.on_tokens()[f"decoder.{layer}.self"].shape == (3, 2, 8, 8)


@both
@each
def test_the_gradient_is_that_of_the_loss_and_of_what_is_kept(kind: str, name: str) -> None:
    model = reduced(name, kind).train()
    pairs, config = (PAIRS if kind == "translate" else LABELLED), TrainConfig(steps=1)
    collated = collate if kind == "translate" else collate_answers
    loss, tokens = Gradients(model, config, 1, collated).fill(pairs, [[0, 1, 2]], "key")
    batch, trace = batch_of(kind), Trace(weights=False)
    logits = model(batch, trace).log_softmax(-1)
    target = batch.target_out
    smooth = 0.9 * logits.gather(-1, target[..., None])[..., 0] + 0.1 * logits.mean(-1)
    expected = -smooth[target != PAD].sum()
    if name == "soft":
        shares = [step.sizes.sum() / step.real.sum() for step in trace.reductions]
        expected = expected + tokens * 0.1 * sum(shares) / ENCODER  # type: ignore[operator]
    assert loss == pytest.approx(float(expected.detach()), rel=1e-9)
    assert float(loss_of(model, batch, config).detach()) == pytest.approx(loss, rel=1e-9)
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    for weight, slope in zip(learned, torch.autograd.grad(expected / tokens, learned), strict=True):
        close(weight.grad, slope)
    for parameter_name, weight in model.named_parameters():
        assert (weight.grad is None) == (parameter_name == "plan.thresholds" and name == "hard"), (
            parameter_name
        )
        assert weight.grad is None or weight.grad.abs().max() > 0, parameter_name


@each
def test_a_validation_pays_for_what_is_kept_as_training_does(name: str, toy: Any) -> None:
    recipe, model = toy.recipe(), reduced(name)
    found = tasks.look(recipe, model, PAIRS, torch.device("cpu"))
    assert found.loss == pytest.approx(
        float(loss_of(model, batch_of(), recipe.train).detach()), rel=1e-5
    )


def test_a_model_that_merges_is_not_exported(toy: Any, translator: Translator) -> None:
    with pytest.raises(InputError, match="'merge' cannot be exported to CTranslate2"):
        convert.refuse(toy.recipe("reduce.kind=merge"), translator.tokenizers)


QUICK = (
    "data.hold_out=10",
    "decode.beam=1",
    "decode.max_ratio=0.1",
)  # to score what has hardly begun to learn
SOFT = (
    "reduce.kind=prune",
    "reduce.mode=soft",
    "reduce.thresholds=0.5",
    "reduce.penalty=1.0",
    *QUICK,
)


def test_thresholds_are_learned_then_kept_while_the_rest_is_trained_on(
    toy: Any, tmp_path: Path
) -> None:
    learned = toy.train(tmp_path / "soft", *SOFT, "train.steps=8", "model.encoder_layers=2")
    thresholds = learned.model.plan.thresholds
    assert isinstance(learned.model.plan, SoftPruning) and thresholds.requires_grad
    assert (thresholds - torch.tensor([0.25, 0.5])).abs().min() > 1e-5
    hard = ["reduce.kind=prune", "train.steps=4", "model.encoder_layers=2", *QUICK]
    found = run.train(
        toy.path, out=tmp_path / "hard", overrides=hard, init=tmp_path / "soft", device="cpu"
    )
    assert type(found.model.plan) is Pruning and torch.equal(
        found.model.plan.thresholds, thresholds
    )
    weights = safetensors.torch.load_file(tmp_path / "hard" / "model.safetensors")
    assert torch.equal(weights["plan.thresholds"], thresholds)
    again = load(tmp_path / "hard", "cpu")
    texts = ["drei acht vier", "zwei eins"]
    assert again.translate(texts) == found.translate(texts)  # type: ignore[union-attr]
    trace = Trace(weights=False)
    again.model.encode(torch.tensor([[4, 5, 6, 7, 8, 9, 10, 11, 12, END]]), trace)  # type: ignore[operator]
    assert trace.reductions[-1].real.sum() < 10


def test_a_run_that_merges_goes_on_where_it_was(toy: Any, tmp_path: Path) -> None:
    merge = ("reduce.kind=merge", "reduce.r=2", "train.checkpoint_every=2", *QUICK)
    whole = toy.train(tmp_path / "whole", *merge, "train.steps=4")
    toy.train(tmp_path / "parts", *merge, "train.steps=2")
    for name in ("model.safetensors", "scorecard.json"):
        (tmp_path / "parts" / name).unlink()
    parts = toy.train(tmp_path / "parts", *merge, "train.steps=4", resume=True)
    assert parts.model.plan.r == [2]
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_trained_model_merges_on_request(translator: Translator, trained: Path) -> None:
    texts = ["drei acht vier fünf", "zwei eins"]
    plain = translator.translate(texts)
    assert load(trained, "cpu", merge=0).translate(texts) == plain
    merging = load(trained, "cpu", merge=2)
    assert isinstance(merging.model.plan, Merging)
    explained = merging.explain("drei acht vier fünf")
    tokens = len(explained.source_tokens)
    assert explained.weights["encoder.0.self"].shape == (2, tokens, tokens)
    assert explained.weights["decoder.1.cross"].shape == (2, len(explained.target_out), tokens)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_option_is_the_same_everywhere(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for merge in (0, 1):
        assert (
            call(monkeypatch, "translate", "--model", trained, "--merge", str(merge), "drei acht")
            == 0
        )
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "three eight" and len(said) == 2
    for name, line in (
        ("source", "drei acht vier fünf sechs"),
        ("reference", "three eight four five six"),
    ):
        (tmp_path / name).write_text(f"{line}\n")
    files = ("--source", tmp_path / "source", "--reference", tmp_path / "reference", "--json")
    scores = []
    for merge in (0, 3):
        assert call(monkeypatch, "evaluate", "--model", trained, *files, "--merge", str(merge)) == 0
        scores.append(json.loads(capsys.readouterr().out)["bleu"])
    assert scores[0] > 99 > scores[1]
    assert (
        call(
            monkeypatch, "translate", "--model", trained, "--engine", "ct2", "--merge", "1", "drei"
        )
        == 2
    )
    assert "--merge 1: is for --engine torch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("model.kind=lstm", "is for an encoder of self-attention; this is a Recurrent"),
        ("model.positions=rotary", "rotary positions are counted anew"),
    ],
)
def test_models_that_cannot_merge_say_so(toy: Any, tmp_path: Path, setting: str, says: str) -> None:
    text = toy.path.read_text(encoding="utf-8")
    toy.path.write_text(
        text.replace("heads = 2\n", "") if "lstm" in setting else text, encoding="utf-8"
    )
    toy.train(tmp_path / "run", setting, "train.steps=1", *QUICK)
    with pytest.raises(InputError, match=says):
        load(tmp_path / "run", "cpu", merge=2)
