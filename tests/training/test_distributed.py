"""Several processes: the examples, losses and weights of one, killed and resumed or not."""

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from seq2see.batches import Batch, IdPair, TextExamples
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig, TrainConfig
from seq2see.training import checkpoint
from seq2see.training.distributed import ALONE, World
from seq2see.training.epochs import Epochs
from seq2see.training.loop import Objective, Training
from seq2see.training.loss import smoothed_loss
from seq2see.training.report import Reporter, Validation

CLASSES, WIDTH, UPDATES = 13, 12, 30
PAIRS: list[IdPair] = [
    (
        [4 + (3 * n + i) % 9 for i in range(1 + n % 5)],
        [4 + (5 * n + i) % 9 for i in range(1 + n % 7)],
    )
    for n in range(46)
]
# Epochs of 12 batches: their last update has 2 of them, and the last batch one line.
KEYS: dict[str, Any] = {"batch_sentences": 4, "accumulate": 5, "lr": 0.01, "warmup": 3, "ema": 0.6}
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


class Updates(Reporter):
    """Notes the losses, and the lines of the corpus that this process took."""

    def __init__(self, folder: Path, world: World = ALONE) -> None:
        super().__init__(folder, Console(file=io.StringIO()), writes=world.main, pids=world.pids)
        self.losses: list[float] = []
        self.lines: list[list[int]] = []

    def update(self, **values: Any) -> None:
        super().update(**values)
        self.losses.append(values["loss"])


def validate(network: nn.Module, share: float) -> Validation:
    loss = sum(float(weight.detach().square().sum()) for weight in network.parameters())
    return Validation(loss, {}, "", [])


def fit(folder: Path, dtype: str, world: World = ALONE, **keys: Any) -> Updates:
    """Train a tiny model with dropout, from the last checkpoint if there is one."""
    config = TrainConfig.model_validate({"steps": UPDATES, "checkpoint_every": 99, **KEYS, **keys})
    torch.manual_seed(3)
    model = ModelConfig(width=WIDTH, heads=2, encoder_layers=2, decoder_layers=1, dropout=0.3)
    network = Transformer(model, CLASSES, CLASSES, "all").to(getattr(torch, dtype))

    def loss(network: nn.Module, batch: Batch) -> Tensor:
        return smoothed_loss(network(batch), batch.targets, config.label_smoothing)

    world.connect(torch.device("cpu"), timeout=60.0)
    objective = Objective(Epochs(lambda epoch: TextExamples(PAIRS), config), loss, validate)
    with Updates(folder, world) as reporter:
        training = Training(
            network, config, WIDTH, folder / "c", objective, reporter, workers=1, world=world
        )
        note_lines(training, reporter.lines)
        if saved := checkpoint.saved_in(folder / "c"):
            training.resume(saved[-1])
        training.run()
    world.leave()
    return reporter


def note_lines(training: Training, noted: list[list[int]]) -> None:
    engine: Any = training.gradients.engine
    real = engine.backward

    def backward(passes: Sequence[Any], scale: float) -> float:
        noted.append([line for one in passes if one.weight for line in one.batch.lines])
        loss: float = real(passes, scale)
        return loss

    engine.backward = backward


def fitted(processes: Any, size: int, folder: Path, **keys: Any) -> list[dict[str, Any]]:
    """Train with several processes; return what each rank notes, for each precision."""

    def work(rank: int) -> dict[str, Any]:
        with World.join() as world:
            noted = {name: fit(folder / name, name, world, **keys) for name in TOLERANCE}
        return {name: [one.losses, one.lines] for name, one in noted.items()}

    results: list[dict[str, Any]] = processes(size, work).results
    return results


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Updates]:
    """One process without any other."""
    folder = tmp_path_factory.mktemp("alone")
    return {name: fit(folder / name, name) for name in TOLERANCE}


def assert_equal(results: list[dict[str, Any]], alone: dict[str, Updates], first: int = 0) -> None:
    """Assert that all ranks together did what one process does, from an update on."""
    for name, tolerance in TOLERANCE.items():
        one = alone[name]
        last = first + len(results[0][name][0])
        for result in results:
            assert result[name][0] == pytest.approx(one.losses[first:last], rel=tolerance)
        for update, lines in enumerate(one.lines[first:last]):
            taken = [line for result in results for line in result[name][1][update]]
            assert sorted(taken) == sorted(lines), "an update has other examples"
    precise = (alone[name].losses for name in TOLERANCE)
    assert any(math.fabs(a - b) > 1e-7 for a, b in zip(*precise, strict=True))  # they are two runs


@pytest.mark.parametrize(
    ("size", "shard", "steps"), [(2, "none", 30), (4, "none", 30), (2, "full", 5), (4, "full", 3)]
)
def test_processes_see_the_examples_and_the_losses_of_one(
    processes: Any, alone: dict[str, Updates], tmp_path: Path, size: int, shard: str, steps: int
) -> None:
    results = fitted(processes, size, tmp_path / "run", shard=shard, steps=steps)
    assert_equal(results, alone)
    # The last update of an epoch has too few passes for four.
    assert any(not lines for result in results for lines in result["float32"][1]) == (size == 4)
    log = (tmp_path / "run" / "float32" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    speeds = [json.loads(line).get("rank_tokens_per_second") for line in log]
    logged = [ranks for ranks in speeds if ranks is not None]
    assert logged and all(len(ranks) == size for ranks in logged)
    assert min(logged[0]) > 0  # later, a rank without a pass has no speed


@pytest.mark.parametrize(
    ("before", "after"), [((2, "none"), (3, "none")), ((3, "full"), (2, "none"))]
)
def test_a_run_goes_on_with_another_number_of_processes(
    processes: Any,
    alone: dict[str, Updates],
    tmp_path: Path,
    before: tuple[int, str],
    after: tuple[int, str],
) -> None:
    fitted(processes, before[0], tmp_path, shard=before[1], steps=4)
    results = fitted(processes, after[0], tmp_path, shard=after[1], steps=15)
    assert_equal(results, alone, first=4)
    assert len(results[0]["float32"][0]) == 11
    for name in TOLERANCE:  # and with one process alone
        saved = checkpoint.saved_in(tmp_path / name / "c")[-1]
        assert all(
            tensor.isfinite().all() and type(tensor) is Tensor
            for group in checkpoint.load(saved).groups.values()
            for tensor in group.values()
        )
        more = fit(tmp_path / name, name, steps=18).losses
        assert more == pytest.approx(alone[name].losses[15:18], rel=TOLERANCE[name])


@pytest.mark.parametrize(("size", "shard"), [(4, "none"), (2, "full")])
def test_a_run_resumed_with_as_many_processes_ends_in_the_same_bits(
    processes: Any, tmp_path: Path, size: int, shard: str
) -> None:
    """Of two numbers, the sum has only one order; of four, it depends on where they are summed."""
    for run, steps in (("whole", 4), ("cut", 3), ("cut", 4)):
        fitted(processes, size, tmp_path / run, shard=shard, steps=steps)
    for name in TOLERANCE:
        ends = [
            checkpoint.load(tmp_path / run / name / "c" / "update-00000004").groups
            for run in ("whole", "cut")
        ]
        for group, tensors in ends[0].items():
            for key, tensor in tensors.items():
                assert torch.equal(tensor, ends[1][group][key]), (group, key)
