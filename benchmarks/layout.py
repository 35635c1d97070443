"""When a U-Net learns what "above" means: with and without coordinates, at several times.

    python benchmarks/layout.py --pictures 48000

Trains the model of the recipe `scenes` from the start in each setting, at a constant learning rate.
Every 6,000 pictures it predicts from pure noise, for prompts of `val` that relate objects of two
colours. The prediction is a blurred picture: is the first colour on the stated side of the second,
and further along that axis than across it? Writes `results/layout.json`.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seq2see.batches import epoch_batches
from seq2see.models.unet import Stage
from seq2see.pictures.scenes import Drawing, Drawings
from seq2see.pictures.scenes.scene import COLOURS
from seq2see.recipe.schema import Recipe
from seq2see.scoring.card import machine
from seq2see.tasks.diffusion import Diffusion
from seq2see.tasks.painting_data import PaintingData, PaintingExamples
from seq2see.text.history import History
from seq2see.training.machine import product_type
from seq2see.training.optimizer import optimizer
from seq2see.training.update import Gradients
from seq2see.training.workers import one_thread

RESULTS = Path(__file__).parent / "results"
EVERY = 6_000  # pictures
WARM_UP = 100  # updates
PROMPTS = 400
AXES = {"above": (0, -1), "below": (0, 1), "left of": (1, -1), "right of": (1, 1)}


@dataclass(frozen=True)
class Setting:
    """How a model is trained."""

    name: str
    overrides: tuple[str, ...]
    coordinates: bool = True


SETTINGS = (
    Setting("uniform", ("diffusion.times=uniform", "diffusion.noisy_epochs=0")),
    Setting("logit-normal", ("diffusion.noisy_epochs=0",)),
    Setting("above 0.97", ("diffusion.noisy_epochs=9",)),
    Setting("above 0.97, no coordinates", ("diffusion.noisy_epochs=9",), coordinates=False),
)


def related() -> list[Drawing]:
    """List drawings of `val` whose prompts relate objects of two colours."""

    def fits(drawing: Drawing) -> bool:
        said = drawing.prompt.said
        colours = {group.colour for group in said.groups}
        return said.relation is not None and None not in colours and len(colours) == 2

    return list(islice(filter(fits, Drawings("val", 10 * PROMPTS, single=True)), PROMPTS))


@torch.inference_mode()
def first_sight(task: Diffusion, model: Any, data: PaintingData, drawings: list[Drawing]) -> float:
    """The share of prompts whose relation the prediction from pure noise shows."""
    assert data.format is not None
    model.eval()
    noise = torch.randn(len(drawings), *model.shape, generator=torch.Generator().manual_seed(1))
    time = torch.full((len(drawings),), task.process.latest)
    memory = model.read(data.format.ids([drawing.prompt.text for drawing in drawings]))
    predicted = task.process.parts(noise, model(noise, time, memory), time).picture
    model.train()
    right = [shows(*pair) for pair in zip(predicted, drawings, strict=True)]
    return sum(right) / len(right)


def shows(picture: Tensor, drawing: Drawing) -> bool:
    """Whether a blurred picture (3, H, W) has the two colours on the stated sides."""
    said = drawing.prompt.said
    first, second = (torch.tensor(COLOURS[str(group.colour)]) for group in said.groups)
    balance = torch.einsum("chw,c->hw", picture, (first - second).float())  # first against second
    places = torch.linspace(-1, 1, len(balance))
    slopes = (balance.sum(1) @ places).item(), (balance.sum(0) @ places).item()
    axis, sign = AXES[str(said.relation)]
    return sign * slopes[axis] > abs(slopes[1 - axis])


def withhold_coordinates(model: nn.Module) -> None:
    """Replace the coordinates of a U-Net with zeros."""
    for stage in model.modules():
        if isinstance(stage, Stage) and stage.layer is not None:
            stage.positions.zero_()


def learn(setting: Setting, pictures: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Train from the start; every 6,000 pictures, measure the share of relations it shows."""
    recipe = Recipe.load("scenes", setting.overrides)
    config = recipe.train
    task = Diffusion(recipe)
    data = task.data(None, History())
    with tempfile.TemporaryDirectory() as folder:
        data.prepare(Path(folder), None)
    torch.manual_seed(config.seed)
    model = task.build(data).train()
    if not setting.coordinates:
        withhold_coordinates(model)
    workers = torch.get_num_threads()
    dtype = product_type(config.precision, torch.device("cpu"))
    gradients = Gradients(model, task.loss, workers, dtype=dtype)
    optimize = optimizer(model, config.optimizer, workers)
    drawings = related()
    rows: list[dict[str, Any]] = []
    seen = 0
    for update, (examples, lines) in enumerate(_batches(data, recipe), start=1):
        gradients.fill(examples, [lines], f"layout/{update}")
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        for group in optimize.param_groups:
            group["lr"] = config.peak(recipe.model.width) * min(1, update / WARM_UP)
        with one_thread():
            optimize.step()
        optimize.zero_grad(set_to_none=True)
        seen += len(lines)
        if seen // EVERY > (seen - len(lines)) // EVERY:
            share = first_sight(task, model, data, drawings)
            rows.append({"setting": setting.name, "pictures": seen, "right": share})
            say(f"{setting.name}: {share:.1%} right after {seen:,} pictures")
        if seen >= pictures:
            return rows
    raise AssertionError("epochs never end")


def _batches(data: PaintingData, recipe: Recipe) -> Iterator[tuple[PaintingExamples, list[int]]]:
    for epoch in count(1):
        examples = data.train(epoch)
        for lines in epoch_batches(examples.lengths, recipe.train, epoch):
            yield examples, lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pictures", type=int, default=48_000, help="to train on, in each setting")
    pictures = parser.parse_args().pictures
    rows = [row for setting in SETTINGS for row in learn(setting, pictures, print)]
    result = {"machine": machine(), "prompts": PROMPTS, "rows": rows}
    path = RESULTS / "layout.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
