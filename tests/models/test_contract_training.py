"""The contract of all translation models in training: gradients, ties, loss, dropout, runs."""

import math
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch, Ids, TextExamples, collate
from seq2see.bench.train import bench_train
from seq2see.ct2 import convert
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import greedy
from seq2see.errors import InputError
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.scores import SCORES
from seq2see.layers.trace import Trace
from seq2see.models.build import KINDS
from seq2see.recipe.schema import Recipe, TrainConfig
from seq2see.see import attention, figures
from seq2see.tasks.predict import token_loss
from seq2see.tasks.table import load
from seq2see.text import captions
from seq2see.text.specials import PAD
from seq2see.training.update import Gradients


def kinds(*names: str) -> Any:
    return pytest.mark.parametrize("tiny", names, indirect=True)


ATTENDING = ["transformer", "rnn", "lstm", "gru", "conv", "prefix"]
WITH_POSITIONS = ["transformer", "conv", "prefix"]
each_kind = kinds(*ATTENDING, "lstm-last-state")


def close(left: Tensor, right: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    return functional.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD
    )


def check_gradients(model: nn.Module, smallest: float) -> None:
    """Check that every weight has a gradient, but for those that the softmax cancels.

    One vector added to all keys adds the same to all scores of a query, unless it is rotated.
    """
    cancelled = {
        f"{name}.key.bias"
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention) and module.rotary is None
    }
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        size = float(parameter.grad.abs().max())
        assert size < 1e-12 if name in cancelled else size > smallest, name


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_gradients_reach_every_parameter_but_not_the_padding(tiny: Any, tie: str) -> None:
    model, batch = tiny.model(tie=tie), tiny.batch()
    loss_of(model(batch), batch).backward()
    check_gradients(model, 1e-6 if tiny.has_blocks else 1e-8)
    if tie == "none":
        for embedding in (model.source_embedding, model.target_embedding):
            assert not embedding.weight.grad[PAD].any()
            assert embedding.weight.grad[4].any()


CHOICES = [(name, score, None) for name in ("rnn", "lstm", "gru") for score in SCORES] + [
    (name, score, positions)
    for name in WITH_POSITIONS
    for score in SCORES
    for positions in ("sinusoidal", "learned", "rotary", "none")
    if positions != "rotary" or name == "transformer"
]


@pytest.mark.parametrize(("tiny", "score", "positions"), CHOICES, indirect=["tiny"])
def test_every_score_and_kind_of_position_works_and_is_learned(
    tiny: Any, score: str, positions: str | None
) -> None:
    keys: dict[str, Any] = {} if positions is None else {"positions": positions}
    if tiny.has_blocks:
        keys |= {"attention_width": 18, "attention_bias": False}
    model, batch, trace = tiny.model(score=score, **keys), tiny.batch(), Trace()
    expected = model(batch)
    close(model(batch, trace), expected)
    assert trace.weights
    state = model.start(model.encode(batch.source))
    for t in range(batch.target_in.shape[1]):
        logits, state = model.step(state, batch.target_in[:, t : t + 1])
        close(logits[:, 0], expected[:, t])
    loss_of(expected, batch).backward()
    check_gradients(model, 1e-8)
    scaled = tiny.model(score="scaled_dot", **keys)
    assert (score == "scaled_dot") == torch.equal(scaled(batch), expected)


@kinds(*WITH_POSITIONS)
def test_learned_positions_have_a_last_one(tiny: Any) -> None:
    model, batch = tiny.model(positions="learned", max_positions=7), tiny.batch()
    assert model.target_positions.embedding.weight.shape == (7, tiny.width)
    model.encode(batch.source)
    with pytest.raises(ValueError, match=r"^a sentence has 8 positions; 7 were learned$"):
        model(batch)


@pytest.mark.parametrize(
    ("tie", "source_is_target", "output_is_target"),
    [("all", True, True), ("target", False, True), ("none", False, False)],
)
def test_ties_share_parameters(
    tiny: Any, tie: str, source_is_target: bool, output_is_target: bool
) -> None:
    model = tiny.model(tie=tie)
    target = model.target_embedding.weight
    assert (model.source_embedding.weight is target) == source_is_target
    assert (model.output.weight is target) == output_is_target
    other = tiny.model(tie=tie)
    other.load_state_dict(model.state_dict())
    assert (other.output.weight is other.target_embedding.weight) == output_is_target


@each_kind
def test_tied_parameters_are_counted_once(tiny: Any) -> None:
    size = tiny.target_size
    counts = {}
    for tie in ("all", "target", "none"):
        model = tiny.fresh(size, size, tie)
        counts[tie] = sum(parameter.numel() for parameter in model.parameters())
    assert counts["none"] - counts["target"] == size * tiny.width
    assert counts["target"] - counts["all"] == size * tiny.width


@each_kind
def test_tie_all_needs_one_vocabulary(tiny: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^tie 'all' needs one vocabulary, not 17 and 19 entries$"
    ):
        tiny.fresh(tiny.source_size, tiny.target_size, "all")


@pytest.mark.parametrize("tie", ["all", "none"])
def test_the_first_loss_is_about_that_of_guessing(tiny: Any, tie: str) -> None:
    torch.manual_seed(1)
    keys = {"heads": 4} if tiny.has_blocks else {}
    if tiny.name == "transformer-wide":
        keys |= {"attention_width": 48}
    model = tiny.fresh(500, 500, tie, width=32, **keys).eval()
    ids = torch.randint(4, 500, (12, 2, 15))
    batch = collate([(source.tolist(), target.tolist()) for source, target in ids], range(12))
    excess = float(loss_of(model(batch), batch).detach()) - math.log(500)
    # Logits of variance one, which tied embeddings give after a norm, cost half a nat.
    assert (-0.1 < excess < 0.7) if tiny.has_blocks else (-0.2 < excess < 1.2)


@each_kind
def test_dropout_acts_in_training_alone(tiny: Any) -> None:
    torch.manual_seed(0)
    shares = ["dropout", "attention_dropout"] if tiny.attends else ["dropout"]
    for share in shares:
        model, batch = tiny.model(**{share: 0.3}).train(), tiny.batch()
        assert not torch.equal(model(batch), model(batch))
        model.eval()
        assert torch.equal(model(batch), model(batch))


def test_translating_before_training_does_not_stop_training(tiny: Any) -> None:
    """Tables that are computed once, like positions, must not stay in inference mode."""
    model, batch = tiny.model(), tiny.batch()
    with torch.inference_mode():
        model(batch)
    model(batch).sum().backward()
    assert model.target_embedding.weight.grad is not None


@each_kind
@pytest.mark.parametrize("workers", [2, 4])
def test_several_workers_compute_the_gradient_of_one(tiny: Any, workers: int) -> None:
    config = TrainConfig(steps=1)

    def filled(model: nn.Module, workers: int, key: str = "0") -> tuple[float, list[Tensor]]:
        gradients = Gradients(model, lambda model, batch: token_loss(model, batch, config), workers)
        update = gradients.fill(TextExamples(tiny.pairs), [[0, 1], [2]], key)
        weights = [weight.grad for weight in model.parameters() if weight.grad is not None]
        return update.loss, [gradient.clone() for gradient in weights]

    model = tiny.model(tie="target").train()
    (one, alone), (several, together) = filled(model, 1), filled(model, workers)
    assert several == pytest.approx(one, rel=1e-9)
    for left, right in zip(alone, together, strict=True):
        close(left, right)
    dropped = tiny.model(tie="target", dropout=0.3).train()
    (_, first), (_, again), (_, other) = (filled(dropped, workers, key) for key in ("a", "a", "b"))
    assert all(map(torch.equal, first, again))  # the same key, the same dropout
    assert not all(map(torch.equal, first, other))


@each_kind
def test_products_in_bfloat16_hardly_change_the_loss(tiny: Any) -> None:
    config = TrainConfig(steps=1)

    def loss(dtype: torch.dtype) -> float:
        model = tiny.model(tie="target").float().train()
        gradients = Gradients(
            model, lambda model, batch: token_loss(model, batch, config), 2, dtype=dtype
        )
        return gradients.fill(TextExamples(tiny.pairs), [[0, 1], [2]], "0").loss

    assert loss(torch.bfloat16) == pytest.approx(loss(torch.float32), rel=0.01)


@each_kind
def test_a_few_captions_are_learned_by_heart(tiny: Any) -> None:
    known: dict[str, int] = {}

    def encode(text: str) -> Ids:
        return [known.setdefault(word, len(known) + 4) for word in captions.words(text)]

    pairs = [
        (encode(caption.source), encode(caption.target))
        for caption in captions.generate("train", 8)
    ]
    torch.manual_seed(1)
    layers = {} if tiny.kind == "prefix" else {"decoder_layers": 1}
    size = len(known) + 4
    model = tiny.fresh(size, size, "all", width=48, encoder_layers=1, **layers).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batch = collate(pairs, range(len(pairs)))
    for _ in range(60):
        optimizer.zero_grad()
        loss_of(model(batch), batch).backward()
        optimizer.step()
    translations = greedy(model.eval(), batch.source, Search(beam=1))
    assert [hypotheses[0].ids for hypotheses in translations] == [target for _, target in pairs]


def overrides(tiny: Any) -> list[str]:
    return [f"model.{key}={str(value).lower()}" for key, value in tiny.keys.items()]


def small(toy: Any, tiny: Any, *more: str) -> Recipe:
    """The toy recipe for another kind, without the keys that this kind does not have."""
    unused = [] if tiny.has_blocks else ["heads"]
    unused += ["decoder_layers"] if tiny.kind == "prefix" else []
    lines = toy.path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.split(" ")[0] not in unused]
    toy.path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return toy.recipe(*overrides(tiny), *more)


@kinds("transformer-post", "lstm", "gru-last-state", "conv", "prefix")
def test_a_run_trains_translates_scores_explains_and_draws(
    toy: Any, tmp_path: Path, tiny: Any
) -> None:
    recipe = small(toy, tiny, "train.steps=20")
    translator = toy.train(tmp_path / "run", *overrides(tiny), "train.steps=20")
    again = load(tmp_path / "run", "cpu")
    assert again.recipe == recipe == translator.recipe
    assert type(again.model) is KINDS[recipe.model.kind]
    texts = ["zwei vier", "drei acht eins"]
    assert again.translate(texts, beam=2) == translator.translate(texts, beam=2)
    assert again.score(["zwei"], ["two"]) == translator.score(["zwei"], ["two"]) < [0.0]
    explanation = again.explain("zwei vier")
    if recipe.model.attend:
        figures.save(attention.on_one_page(explanation), tmp_path / "a.png")
        assert matplotlib.image.imread(tmp_path / "a.png").std() > 0.01
    else:
        with pytest.raises(InputError, match=r"^this model has no attention to draw$"):
            attention.draw(explanation)
    if tiny.kind == "transformer":
        convert.refuse(again.recipe, again.tokenizers)
        return
    rule = r"cannot be exported to CTranslate2; only transformer"
    with pytest.raises(InputError, match=rf"^model.kind = '\w+' {rule}"):
        convert.refuse(again.recipe, again.tokenizers)


@kinds("gru")
def test_utilisation_is_computed_for_the_transformer_alone(toy: Any, tiny: Any) -> None:
    result = bench_train(small(toy, tiny), None, seconds=0.1, device=torch.device("cpu"))
    assert result["utilisation"] is None and result["target_tokens_per_second"] > 0
