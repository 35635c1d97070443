"""The training loop: accumulation, budgets, choosing, patience, averaging, losses not finite."""

import io
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional

from seq2see.batches import Batch, IdPair, TextExamples, by_sentences, collate
from seq2see.errors import InputError, WorkError
from seq2see.models.transformer import Transformer
from seq2see.models.unfinished import kept_in, update_of
from seq2see.models.weights import Tensors, weights
from seq2see.recipe.schema import ModelConfig, TrainConfig
from seq2see.text.specials import PAD
from seq2see.training import checkpoint
from seq2see.training.epochs import Epochs
from seq2see.training.loop import Objective, Training
from seq2see.training.loss import smoothed_loss
from seq2see.training.report import Reporter, Validation
from seq2see.training.update import BatchLoss
from seq2see.training.validation import OnShare

CLASSES, WIDTH = 13, 8
PAIRS: list[IdPair] = [
    (
        [4 + (3 * n + i) % 9 for i in range(1 + n % 5)],
        [4 + (5 * n + i) % 9 for i in range(1 + n % 7)],
    )
    for n in range(22)
]
EXAMPLES = TextExamples(PAIRS)


def model(seed: int = 3, dropout: float = 0.0) -> Transformer:
    torch.manual_seed(seed)
    config = ModelConfig(width=WIDTH, heads=2, encoder_layers=1, decoder_layers=1, dropout=dropout)
    return Transformer(config, CLASSES, CLASSES, "all")


def losses(*values: float) -> OnShare:
    """A validation with these losses in turn, and a BLEU that rises with them."""
    rest: Iterator[float] = iter(values)

    def validate(model: nn.Module, share: float) -> Validation:
        loss = next(rest)
        return Validation(loss, {"bleu": 100 * loss}, "", [])

    return validate


@pytest.fixture
def reporter(tmp_path: Path) -> Iterator[Reporter]:
    with Reporter(tmp_path, Console(file=io.StringIO())) as reporter:
        yield reporter


def training(
    reporter: Reporter,
    folder: Path,
    validate: OnShare | None = None,
    network: nn.Module | None = None,
    loss: BatchLoss | None = None,
    **keys: Any,
) -> Training:
    config = TrainConfig.model_validate({"lr": 0.01, "warmup": 2, **keys})

    def smoothed(network: nn.Module, batch: Batch) -> Tensor:
        return smoothed_loss(network(batch), batch.targets, config.label_smoothing)

    epochs = Epochs(lambda epoch: EXAMPLES, config)
    objective = Objective(epochs, loss or smoothed, validate or losses(*[1.0] * 99))
    return Training(network or model(), config, WIDTH, folder, objective, reporter)


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = [
        json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return [line for line in lines if line["event"] == kind]


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_accumulated_batches_give_the_gradient_of_one_large_one(
    reporter: Reporter, tmp_path: Path, clip: float
) -> None:
    all_gradients, all_weights = [], []
    for sentences, accumulate in ((12, 1), (3, 4), (1, 12)):
        keys = {"steps": 1, "batch_sentences": sentences, "accumulate": accumulate, "clip": clip}
        run = training(reporter, tmp_path / f"{accumulate}", network=model().double(), **keys)
        gradients: list[Tensor] = []
        run.optimizer.register_step_pre_hook(
            lambda optimizer, *_, gradients=gradients: gradients.extend(
                [p.grad.clone() for group in optimizer.param_groups for p in group["params"]]
            )
        )
        run.run()
        all_gradients.append(gradients)
        all_weights.append(list(weights(run.model).values()))
    for other in (1, 2):
        torch.testing.assert_close(all_gradients[other], all_gradients[0], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(all_weights[other], all_weights[0], rtol=1e-9, atol=1e-9)
    norm = torch.cat([gradient.flatten() for gradient in all_gradients[0]]).norm()
    assert (norm <= 0.5 + 1e-6) == bool(clip)


def test_an_update_is_adam_on_the_mean_loss_per_token(reporter: Reporter, tmp_path: Path) -> None:
    keys = {
        "steps": 2,
        "batch_sentences": 5,
        "accumulate": 2,
        "clip": 0.0,
        "label_smoothing": 0.2,
        "seed": 9,
    }
    run = training(reporter, tmp_path / "c", network=model().double(), **keys)
    run.run()
    other = model().double()
    adam = torch.optim.Adam(other.parameters(), betas=(0.9, 0.98), eps=1e-9)
    batches = by_sentences(EXAMPLES.lengths, 5, accumulate=1, seed=9, epoch=1)
    updates = ([*batches[0], *batches[1]], [*batches[2], *batches[3]])
    for update, lines in enumerate(updates, start=1):
        batch = collate(PAIRS, lines)
        loss = functional.cross_entropy(
            other(batch).flatten(0, 1),
            batch.target_out.flatten(),
            ignore_index=PAD,
            label_smoothing=0.2,
        )
        loss.backward()
        for group in adam.param_groups:
            group["lr"] = 0.01 * update / 2
        adam.step()
        adam.zero_grad()
    for ours, theirs in zip(run.model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("choose", "best"), [("loss", 4), ("bleu", 2)])
def test_the_best_checkpoint_is_kept_and_returned(
    reporter: Reporter, tmp_path: Path, choose: str, best: int
) -> None:
    run = training(
        reporter,
        tmp_path / "c",
        losses(3.0, 5.0, 4.0, 1.0, 2.0),
        steps=5,
        checkpoint_every=1,
        choose=choose,
    )
    chosen = run.run()
    kept = tmp_path / "c" / f"update-{best:08d}"
    saved = checkpoint.load(kept).groups["weights"]
    assert all(torch.equal(chosen[name], tensor) for name, tensor in saved.items())
    assert not torch.equal(chosen["output.bias"], dict(run.model.named_parameters())["output.bias"])
    names = [path.name for path in checkpoint.saved_in(tmp_path / "c")]
    assert names == [kept.name, "update-00000005"]  # the best, and the newest to resume from
    (event,) = events(tmp_path, "chosen")
    assert event["weights"] == kept.name and event["by"] == choose
    assert event["score"] == (1.0 if choose == "loss" else 500.0)
    assert (event["updates"], event["epochs"]) == (5, 5)  # 22 short pairs are one batch


def test_patience_counts_validations_without_a_better_one(
    reporter: Reporter, tmp_path: Path
) -> None:
    run = training(
        reporter,
        tmp_path / "c",
        losses(5.0, 4.0, 4.5, 4.2, 3.0, 3.0, 3.1, 3.2),
        steps=50,
        checkpoint_every=2,
        patience=3,
    )
    run.run()
    assert run.position.update == 16
    best = [event["best"] for event in events(tmp_path, "validation")]
    assert best == [True, True, False, False, True, False, False, False]


def test_without_patience_a_run_never_stops_early(reporter: Reporter, tmp_path: Path) -> None:
    run = training(reporter, tmp_path / "c", losses(*range(1, 10)), steps=6, checkpoint_every=1)
    run.run()
    assert run.position.update == 6


@pytest.mark.parametrize(("which", "averaged"), [("last", [4, 5, 6]), ("best", [5, 3, 1])])
def test_an_average_that_validates_better_is_kept(
    reporter: Reporter, tmp_path: Path, which: str, averaged: list[int]
) -> None:
    in_turn = losses(1.0, 9.0, 1.1, 8.0, 1.2, 7.0, 0.9)  # the last one is the average's
    kept: dict[int, Tensors] = {}

    def validate(network: nn.Module, share: float) -> Validation:
        kept[len(kept) + 1] = {name: tensor.clone() for name, tensor in weights(network).items()}
        return in_turn(network, share)

    run = training(
        reporter, tmp_path / "c", validate, steps=6, checkpoint_every=1, average=3, average_of=which
    )
    chosen = run.run()
    for name, tensor in chosen.items():
        mean = sum(kept[update][name].double() for update in averaged) / 3
        torch.testing.assert_close(tensor, mean.float())
    (event,) = events(tmp_path, "chosen")
    assert event["weights"] == "the average of " + ", ".join(
        f"update-{update:08d}" for update in averaged
    )


def test_an_average_that_validates_worse_is_not_kept(reporter: Reporter, tmp_path: Path) -> None:
    run = training(
        reporter, tmp_path / "c", losses(2.0, 1.0, 3.0, 1.5), steps=3, checkpoint_every=1, average=2
    )
    run.run()
    assert events(tmp_path, "chosen")[0]["weights"] == "update-00000002"


def test_the_moving_average_is_what_is_validated_and_kept(
    reporter: Reporter, tmp_path: Path
) -> None:
    validated: list[Tensor] = []

    def validate(network: nn.Module, share: float) -> Validation:
        assert not network.training
        validated.append(weights(network)["output.bias"].clone())
        return Validation(1.0 / len(validated), {}, "", [])

    run = training(reporter, tmp_path / "c", validate, steps=4, checkpoint_every=1, ema=0.5)
    chosen = run.run()
    own = checkpoint.load(tmp_path / "c" / "update-00000004").groups["weights"]["output.bias"]
    decay = min(0.5, (1 + 3) / (10 + 3))
    torch.testing.assert_close(validated[3], decay * validated[2] + (1 - decay) * own)
    assert torch.equal(chosen["output.bias"], validated[-1])
    assert run.model.training  # and its own weights are back
    assert torch.equal(weights(run.model)["output.bias"], own)


@pytest.mark.parametrize("update", [1, 4])
def test_a_loss_that_is_not_finite_ends_the_run_in_one_line(
    reporter: Reporter, tmp_path: Path, update: int
) -> None:
    calls = 0

    def breaking(network: nn.Module, batch: Batch) -> Tensor:
        nonlocal calls
        calls += 1
        loss = smoothed_loss(network(batch), batch.targets)
        return loss * (math.nan if calls == update else 1)

    run = training(reporter, tmp_path / "c", loss=breaking, steps=9, checkpoint_every=2)
    with pytest.raises(WorkError) as caught:
        run.run()
    message = str(caught.value)
    assert message.startswith(f"update {update}: the loss is nan") and "\n" not in message
    if update == 1:
        assert "no checkpoint was written yet" in message
    else:
        assert f"the last good checkpoint is {tmp_path / 'c' / 'update-00000002'}" in message
        state = checkpoint.load(tmp_path / "c" / "update-00000002")
        assert all(tensor.isfinite().all() for tensor in state.groups["weights"].values())


def test_a_validation_that_is_not_finite_is_no_checkpoint(
    reporter: Reporter, tmp_path: Path
) -> None:
    run = training(reporter, tmp_path / "c", losses(1.0, math.nan), steps=9, checkpoint_every=2)
    with pytest.raises(
        WorkError, match=r"update 4: the validation loss is nan; the last good .*update-00000002"
    ):
        run.run()
    assert [path.name for path in checkpoint.saved_in(tmp_path / "c")] == ["update-00000002"]


def test_a_budget_in_minutes_ends_near_its_time(reporter: Reporter, tmp_path: Path) -> None:
    run = training(reporter, tmp_path / "c", minutes=3 / 60, schedule="linear", decay=0.5)
    started = time.perf_counter()
    run.run()
    assert 1 <= time.perf_counter() - started < 15  # the machine may be busy
    (chosen,) = events(tmp_path, "chosen")
    assert 1 <= chosen["seconds"] < 10  # a second is kept to open the model
    assert 0 <= chosen["validation_seconds"] < chosen["seconds"]
    validations = events(tmp_path, "validation")
    assert 2 <= len(validations) <= 11
    assert run.optimizer.param_groups[0]["lr"] < 0.01 / 4  # it fell to zero in time
    assert [event["seconds"] for event in validations] == sorted(
        event["seconds"] for event in validations
    )


def test_time_spent_before_counts_after_resuming(reporter: Reporter, tmp_path: Path) -> None:
    first = training(reporter, tmp_path / "c", steps=2, checkpoint_every=2)
    first.run()
    state = checkpoint.load(tmp_path / "c" / "update-00000002")
    state.state["seconds"] = 59.0
    checkpoint.save(tmp_path / "c" / "update-00000002", state)
    second = training(reporter, tmp_path / "c", minutes=60.5 / 60)
    second.resume(tmp_path / "c" / "update-00000002")
    started = time.perf_counter()
    second.run()
    assert time.perf_counter() - started < 15  # not the minute that the budget names
    assert events(tmp_path, "chosen")[-1]["seconds"] >= 59


@pytest.mark.parametrize(
    "keys", [{"steps": 10}, {"epochs": 3}, {"steps": 7, "checkpoint_every": 3}]
)
def test_checkpoints_are_written_by_the_budget_or_as_the_recipe_says(
    reporter: Reporter, tmp_path: Path, keys: dict[str, int]
) -> None:
    run = training(reporter, tmp_path / "c", batch_sentences=5, **keys)
    run.run()
    updates = [event["update"] for event in events(tmp_path, "validation")]
    if "epochs" in keys:
        assert updates == [5, 10, 15]
    else:
        assert updates == ([3, 6, 7] if keys.get("checkpoint_every") else list(range(1, 11)))
    assert list(run.position.validations) == [f"update-{update:08d}" for update in updates]


def test_an_epoch_counts_everything_once(reporter: Reporter, tmp_path: Path) -> None:
    run = training(reporter, tmp_path / "c", epochs=2, batch_sentences=5, accumulate=3)
    run.run()
    tokens = sum(len(target) + 1 for _, target in PAIRS)
    first, second = events(tmp_path, "epoch")
    counted = ("steps", "updates", "samples", "tokens")
    assert [first[key] for key in counted] == [5, 2, 22, tokens]
    assert [second[key] for key in counted] == [10, 4, 44, 2 * tokens]
    assert events(tmp_path, "chosen")[0]["epochs"] == 2


@pytest.mark.parametrize("change", [{"groups": {}}, {"state": {"update": 1, "phase": 3}}])
def test_a_checkpoint_of_something_else_is_refused(
    reporter: Reporter, tmp_path: Path, change: dict[str, Any]
) -> None:
    training(reporter, tmp_path / "c", steps=1).run()
    path = tmp_path / "c" / "update-00000001"
    saved = checkpoint.load(path)
    checkpoint.save(
        path, checkpoint.Checkpoint(**{"groups": saved.groups, "state": saved.state, **change})
    )
    says = "update-00000001: not a checkpoint that this version can resume"
    with pytest.raises(InputError, match=says):
        training(reporter, tmp_path / "c", steps=2).resume(path)


def test_time_before_the_loop_counts_as_preparation(reporter: Reporter, tmp_path: Path) -> None:
    run = training(reporter, tmp_path / "c", minutes=1)
    run.budget.started -= 300
    run.run()
    (chosen,) = events(tmp_path, "chosen")
    assert chosen["updates"] == 1 and 300 <= chosen["seconds"] < 315
    assert 300 <= run.position.preparation_seconds < 315
    assert len(events(tmp_path, "validation")) == 1
    assert isinstance(reporter.console.file, io.StringIO)
    said = reporter.console.file.getvalue().replace("\n", " ")
    assert "train.minutes = 1 is too small: preparation took 5:0" in said


def test_epochs_are_counted_in_fractions(reporter: Reporter, tmp_path: Path) -> None:
    run = training(reporter, tmp_path / "c", steps=7, batch_sentences=5)  # of 5 batches an epoch
    run.run()
    (chosen,) = events(tmp_path, "chosen")
    assert chosen["epochs"] == 1.4


def test_a_shorter_warm_up_is_resumed(reporter: Reporter, tmp_path: Path) -> None:
    keys = {"steps": 10, "checkpoint_every": 4, "warmup": 50, "batch_sentences": 5}
    whole = training(reporter, tmp_path / "whole", **keys).run()
    rates = [event["learning_rate"] for event in events(tmp_path, "update")]
    assert rates[0] == 0.01 / 2  # the warm-up takes two updates instead of fifty
    with pytest.raises(StopIteration):  # the second validation fails
        training(reporter, tmp_path / "parts", losses(1.0), **keys).run()
    second = training(reporter, tmp_path / "parts", **keys)
    second.resume(tmp_path / "parts" / "update-00000004")
    assert second.position.warmup == 2
    resumed = second.run()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_a_recipes_checkpoints_are_written_even_where_validation_is_put_off(
    reporter: Reporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = training(reporter, tmp_path / "c", steps=6, checkpoint_every=2)
    due = iter([True, False, False])
    monkeypatch.setattr(run.budget, "validation_fits", lambda say: next(due))
    run.run()
    assert [event["update"] for event in events(tmp_path, "validation")] == [2, 6]
    assert [path.name for path in checkpoint.saved_in(tmp_path / "c")] == [
        "update-00000002",
        "update-00000006",
    ]


def test_a_run_with_a_larger_budget_is_validated_on_its_way(
    reporter: Reporter, tmp_path: Path
) -> None:
    training(reporter, tmp_path / "c", steps=10).run()
    longer = training(reporter, tmp_path / "c", steps=20)
    longer.resume(tmp_path / "c" / "update-00000010")
    longer.run()
    updates = [event["update"] for event in events(tmp_path, "validation")]
    assert updates == [*range(1, 11), 12, 14, 16, 18, 20]


@pytest.mark.parametrize(
    ("keep", "kept"), [(0, []), (1, [1]), (3, [1, 5, 9]), (4, [1, 5, 9]), (9, [1, 3, 5, 7, 9, 11])]
)
def test_further_checkpoints_are_spread_over_the_run(
    reporter: Reporter, tmp_path: Path, keep: int, kept: list[int]
) -> None:
    in_turn = losses(*range(12, 0, -1))  # the last is the best
    run = training(reporter, tmp_path / "c", in_turn, steps=24, checkpoint_every=2, keep=keep)
    run.run()
    updates = [update_of(folder) for folder in kept_in(tmp_path / "c")]
    assert updates == [2 * number for number in kept] and len(updates) <= keep
    assert [path.name for path in checkpoint.saved_in(tmp_path / "c")] == ["update-00000024"]


def test_a_checkpoint_that_is_needed_is_not_kept_twice(reporter: Reporter, tmp_path: Path) -> None:
    run = training(
        reporter,
        tmp_path / "c",
        losses(3.0, 2.0, 1.0, 4.0, 5.0, 6.0, 7.0),
        steps=6,
        keep=6,
        checkpoint_every=1,
        average=2,
    )
    run.run()
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == [
        *(f"kept-0000000{update}" for update in (1, 2, 4)),
        *(f"update-0000000{update}" for update in (3, 5, 6)),
    ]
