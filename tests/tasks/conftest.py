"""Shared by the tests of tasks: the command line, captions and pictures of dots, short runs."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from rich.console import Console

from seq2see.cli import main as cli
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.run import train
from seq2see.text import corpora
from seq2see.training.loop import Training

CAPTIONS = """
task = "{task}"

[data]
corpus = "captions"
source = "en"
target = "de"
limit = 200
{data}
[tokenizer]
kind = "words"

[model]
width = 24
heads = 2
encoder_layers = 2
dropout = 0.0

[train]
steps = {steps}
batch_tokens = 512
schedule = "linear"
lr = 0.02
warmup = 10
label_smoothing = 0.0
checkpoint_every = {steps}
"""
DOTS = """
task = "images"

[data]
train = "{folder}"

[model]
width = 16
heads = 2
encoder_layers = 2
dropout = 0.0
patch = 2

[train]
steps = 60
batch_sentences = 30
schedule = "linear"
lr = 0.01
warmup = 10
label_smoothing = 0.0
"""
# Small, and with everything on that draws at random or keeps a state.
SMALL = (
    "model.width=16",
    "model.dropout=0.2",
    "model.attention_dropout=0.1",
    "tokenizer.sampling=0.7",
    "train.accumulate=2",
    "train.ema=0.8",
    "train.average=2",
    "train.label_smoothing=0.1",
    "train.batch_tokens=250",
    "train.validate_sentences=3",
)
HEIGHT, WIDTH = 8, 10
PLACES = {"lower left": (5, 1), "upper left": (1, 1), "upper right": (1, 7)}


class Folder:
    """A folder of runs: their logs, score cards and weights by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = io.StringIO()

    def run(self, recipe: Path, name: str, overrides: tuple[str, ...], **keys: Any) -> Any:
        self.said = io.StringIO()
        console = Console(file=self.said, soft_wrap=True)
        out = self.folder / name
        return train(recipe, out=out, overrides=overrides, device="cpu", console=console, **keys)

    def log(self, name: str, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / name / "log.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def card(self, name: str) -> Any:
        text = (self.folder / name / "scorecard.json").read_text(encoding="utf-8")
        return json.loads(text)

    def weights(self, name: str) -> dict[str, torch.Tensor]:
        return safetensors.torch.load_file(self.folder / name / "model.safetensors")

    def equal(self, first: str, second: str) -> bool:
        """Whether two runs ended in the same bits."""
        one, other = self.weights(first), self.weights(second)
        same = all(torch.equal(one[name], other[name]) for name in one)
        return same and one.keys() == other.keys()


class SmallRuns(Folder):
    """Short runs on the toy language."""

    settings = SMALL

    def __init__(self, toy: Any) -> None:
        super().__init__(toy.folder)
        self.path: Path = toy.path

    def train(self, name: str, *overrides: str, **keys: Any) -> Any:
        return self.run(self.path, name, (*SMALL, *overrides), **keys)


class Captions(Folder):
    """Short runs of any text task on 200 captions; `model` trains one of each task."""

    def recipe(self, task: str, steps: int = 15) -> Path:
        path = self.folder / f"{task}.toml"
        data = 'labels = "number"' if task == "classify" else ""
        path.write_text(CAPTIONS.format(task=task, steps=steps, data=data), encoding="utf-8")
        return path

    def train(self, task: str, name: str, *overrides: str, steps: int = 15, **keys: Any) -> Any:
        return self.run(self.recipe(task, steps), name, overrides, **keys)

    def model(self, task: str) -> Path:
        if not (self.folder / task).exists():
            self.train(task, task)
        return self.folder / task


class Dots(Folder):
    """Pictures of a dot, classified by its corner, and short runs on them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for i, name in enumerate(PLACES):
            (folder / "data" / "train" / name).mkdir(parents=True)
            for number in range(40):
                self.draw(
                    folder / "data" / "train" / name / f"{number}.png", name, 100 * i + number
                )
        self.path = folder / "dots.toml"
        self.path.write_text(DOTS.format(folder=folder / "data"), encoding="utf-8")

    def draw(self, path: Path, name: str, number: int) -> Path:
        """Draw a bright dot of two pixels by two near a corner, on noise."""
        chance = np.random.default_rng(number)
        pixels = chance.integers(0, 60, (HEIGHT, WIDTH), dtype=np.uint8)
        row = PLACES[name][0] + chance.integers(-1, 1)
        column = PLACES[name][1] + chance.integers(-1, 1)
        pixels[row : row + 2, column : column + 2] = 250
        Image.fromarray(pixels).save(path)
        return path

    def picture(self, name: str, number: int = 999) -> Path:
        return self.draw(self.folder / f"{name}-{number}.png", name, number)

    def train(self, name: str, *overrides: str, **keys: Any) -> PictureModel:
        model = self.run(self.path, name, overrides, **keys)
        assert isinstance(model, PictureModel)
        return model

    def model(self) -> Path:
        if not (self.folder / "model").exists():
            self.train("model")
        return self.folder / "model"


@pytest.fixture
def small(toy: Any) -> SmallRuns:
    return SmallRuns(toy)


@pytest.fixture(scope="module")
def few_captions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "CAPTIONS", {"train": 200, "val": 20, "test": 30})
        yield


@pytest.fixture(scope="module")
def captions(few_captions: None, tmp_path_factory: pytest.TempPathFactory) -> Captions:
    pytest.importorskip("spacy")
    return Captions(tmp_path_factory.mktemp("captions"))


@pytest.fixture
def own_captions(few_captions: None, tmp_path: Path) -> Captions:
    """Captions for one test alone."""
    pytest.importorskip("spacy")
    return Captions(tmp_path)


@pytest.fixture(scope="module")
def dots(tmp_path_factory: pytest.TempPathFactory) -> Dots:
    return Dots(tmp_path_factory.mktemp("dots"))


@pytest.fixture
def own_dots(tmp_path: Path) -> Dots:
    """Dots for one test alone, which may change the pictures."""
    return Dots(tmp_path)


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line; return exit code, stdout and stderr."""

    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        return int(ended.value.code or 0), out, error

    return run


class Killed(BaseException):
    """Simulated kill: nothing in the code catches it."""


Killing = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def killed_after(monkeypatch: pytest.MonkeyPatch) -> Killing:
    """Expect the run inside to end by force, after a number of updates from now."""

    @contextmanager
    def kill(updates: int) -> Iterator[None]:
        real = Training._update
        done = 0

        def update(self: Training, *given: Any) -> None:
            nonlocal done
            if done == updates:
                raise Killed
            done += 1
            real(self, *given)

        with monkeypatch.context() as context, pytest.raises(Killed):
            context.setattr(Training, "_update", update)
            yield
        torch.manual_seed(0)  # another process would begin with another state

    return kill
