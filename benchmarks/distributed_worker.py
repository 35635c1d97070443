"""One process of a measured run: trains some updates of a recipe and notes each of them.

`distributed.py` starts it, alone or under torchrun, with the path of a job as its argument. Each
rank writes its notes as JSON into the folder of the run: losses, examples, and times.
"""

import contextlib
import io
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import distributed, nn

from seq2see.models.build import pass_tokens
from seq2see.recipe.schema import Recipe
from seq2see.tasks.protocol import Data, Task
from seq2see.tasks.table import task_of
from seq2see.text.history import History
from seq2see.training import checkpoint
from seq2see.training.criterion import Compute, Criterion
from seq2see.training.distributed import World
from seq2see.training.epochs import Epochs
from seq2see.training.loop import Objective, Training
from seq2see.training.parallel import Parallel
from seq2see.training.report import Reporter, Validation


@dataclass(frozen=True)
class Job:
    """A run of some updates; the data is prepared once, in a folder that runs share."""

    recipe: str
    settings: list[str]  # keys of the recipe with other values
    folder: str  # checkpoints and notes
    prepared: str  # tokenizers and ids
    dtype: str = "float32"
    die_at: int | None = None  # the update after which every process kills itself
    communicates: bool = True  # whether gradients are summed over the processes
    wrapped: bool = False  # whether a process alone uses DDP, too
    backwards: bool = False  # whether passes are summed in the opposite order


class Notes(Reporter):
    """Notes the loss and the time of each update."""

    def __init__(self, job: Job, world: World) -> None:
        console = Console(file=io.StringIO())
        super().__init__(Path(job.folder), console, writes=world.main, pids=world.pids)
        self.die_at = job.die_at
        self.losses: list[float] = []
        self.times: list[float] = []

    def update(self, **values: Any) -> None:
        super().update(**values)
        self.losses.append(values["loss"])
        self.times.append(time.perf_counter())
        if values["update"] == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def prepare(task: Task, job: Job, world: World) -> Data:
    """Read and prepare the data, on rank 0 first."""
    data: Data = task.data(None, History())
    folder = Path(job.prepared)
    if world.main:
        folder.mkdir(parents=True, exist_ok=True)
        data.prepare(folder, None)
    world.share("prepared")
    if not world.main:
        data.prepare(folder, None)
    return data


def accept(network: nn.Module, share: float) -> Validation:
    """Validate nothing: the last weights are as good as any."""
    return Validation(0.0, {}, "", [])


def wrap(training: Training, world: World) -> None:
    """Let a process alone compute as if it were one of several."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    gradients = training.gradients
    criterion = Criterion(training.model, training.objective.loss)
    compute = Compute(gradients.device, torch.float32)
    gradients.engine = Parallel(criterion, compute, world, shard="none")


def note_lines(training: Training, noted: list[list[int]], backwards: bool) -> None:
    """Note the lines of the corpus that this process computes in each update."""
    engine: Any = training.gradients.engine
    backward = engine.backward

    def noting(passes: Sequence[Any], scale: float) -> Any:
        noted.append([line for one in passes if one.weight for line in one.batch.lines])
        return backward(passes[::-1] if backwards else passes, scale)

    engine.backward = noting


def run(job: Job, world: World) -> dict[str, Any]:
    """Train, from the last checkpoint if there is one; return the notes of this process."""
    torch.set_default_dtype(getattr(torch, job.dtype))
    recipe = Recipe.load(job.recipe, job.settings)
    task = task_of(recipe)
    data = prepare(task, job, world)
    torch.manual_seed(recipe.train.seed)
    model = task.build(data)
    world.connect(torch.device("cpu"), timeout=300.0)
    workers = torch.get_num_threads() if world.size == 1 else 1
    objective = Objective(Epochs(data.train, recipe.train), task.loss, accept, pass_tokens(model))
    saved_in = Path(job.folder) / "checkpoints"
    lines: list[list[int]] = []
    with Notes(job, world) as notes, contextlib.ExitStack() as stack:
        training = Training(
            *(model, recipe.train, recipe.model.width, saved_in, objective, notes, workers),
            world=world,
        )
        if job.wrapped:
            wrap(training, world)
        note_lines(training, lines, job.backwards)
        if saved := checkpoint.saved_in(saved_in):
            training.resume(saved[-1])
        first = training.position.update
        if not job.communicates:
            engine: Any = training.gradients.engine
            stack.enter_context(engine.module.no_sync())
        tokens = training.position.tokens
        training.run()
    world.leave()
    return {
        "first": first,
        "losses": notes.losses,
        "lines": lines,
        "times": notes.times,
        "tokens": training.position.tokens - tokens,
        "parameters": sum(weight.numel() for weight in model.parameters()),
    }


def main() -> None:
    job = Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    with World.join() as world:
        notes = run(job, world)
        path = Path(job.folder) / f"rank-{world.rank}.json"
        path.write_text(json.dumps(notes), encoding="utf-8")


if __name__ == "__main__":
    main()
