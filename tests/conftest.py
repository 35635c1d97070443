"""Shared by all tests: one thread, a toy language of number words, and a model trained on it."""

import io
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import hypothesis
import pytest
import torch
from PIL import Image
from rich.console import Console

from seq2see.ct2.export import export
from seq2see.pictures import prompted
from seq2see.recipe.schema import Recipe
from seq2see.tasks.run import train
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator

# Tiny models gain nothing from a second thread, and lose much if another process has the core.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"
hypothesis.settings.register_profile("patient", deadline=None)  # the machine may be busy
hypothesis.settings.load_profile("patient")

GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
RECIPE = """
[data]
train = "{pairs}"

[tokenizer]
size = 60

[model]
width = 32
heads = 2
encoder_layers = 1
decoder_layers = 2
dropout = 0.0

[train]
steps = 160
batch_tokens = 256
schedule = "linear"
lr = 0.01
warmup = 20
label_smoothing = 0.0
"""


class Toy:
    """Pairs like `drei acht` → `three eight` in a file, and short runs on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pairs = folder / "pairs.tsv"
        self.path = folder / "toy.toml"
        draw = random.Random(1)
        numbers: set[tuple[int, ...]] = set()
        while len(numbers) < 300:
            numbers.add(tuple(draw.sample(range(10), k=draw.randint(2, 5))))
        self.write(
            (" ".join(GERMAN[n] for n in row), " ".join(ENGLISH[n] for n in row))
            for row in sorted(numbers)
        )
        self.path.write_text(RECIPE.format(pairs=self.pairs), encoding="utf-8")

    def write(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs.write_text(
            "".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8"
        )

    def recipe(self, *overrides: str) -> Recipe:
        return Recipe.load(self.path, overrides)

    def train(self, out: Path, *overrides: str, resume: bool = False) -> Translator:
        self.said = io.StringIO()
        console = Console(file=self.said, soft_wrap=True)
        return train(
            self.path, out=out, overrides=overrides, resume=resume, device="cpu", console=console
        )


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Directory of a model that knows the toy language; read-only."""
    folder = tmp_path_factory.mktemp("trained")
    Toy(folder).train(folder / "run")
    yield folder / "run"


@pytest.fixture(scope="session")
def others(pictured: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories of hardly trained models of the tasks that do not translate; read-only."""
    toy = Toy(tmp_path_factory.mktemp("others"))
    recipe = toy.path.read_text(encoding="utf-8").replace("decoder_layers = 2\n", "")
    settings = ("model.encoder_layers=2", "model.heads=4", "train.steps=6", "data.max_length=60")
    labels = ("tokenizer.joint=true", "data.labels=language", "data.source=de", "data.target=en")
    directories = {"pictured": pictured}
    for name, task, more in (
        ("writer", "language", ()),
        ("filler", "masked", ()),
        ("labeller", "classify", labels),
    ):
        toy.path.write_text(f'task = "{task}"\n{recipe}', encoding="utf-8")
        toy.train(toy.folder / name, *settings, *more)
        directories[name] = toy.folder / name
    return directories


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a hardly trained model with learned positions; read-only."""
    folder = tmp_path_factory.mktemp("learned")
    settings = (
        "model.positions=learned",
        "model.max_positions=20",
        "data.max_length=16",
        "train.steps=2",
    )
    Toy(folder).train(folder / "run", *settings)
    return folder / "run"


@pytest.fixture(scope="session")
def siblings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Directories of two half-trained models of different seeds, with checkpoints; read-only."""
    folder = tmp_path_factory.mktemp("siblings")
    settings = ("train.steps=60", "train.checkpoint_every=15", "train.average=9")
    runs = [folder / f"seed-{seed}" for seed in (3, 4)]
    for seed, run in enumerate(runs, start=3):
        Toy(folder).train(run, *settings, "train.validate_sentences=2", f"train.seed={seed}")
    return runs


@pytest.fixture(scope="session")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a hardly trained model of digits, beside a digit.png; read-only."""
    return _digits_run(tmp_path_factory.mktemp("pictured"))


@pytest.fixture(scope="session")
def pruning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a hardly trained model of digits that prunes by thresholds; read-only."""
    settings = ("reduce.kind=prune", "reduce.thresholds=0.9")
    return _digits_run(tmp_path_factory.mktemp("pruning"), *settings)


def _digits_run(folder: Path, *more: str) -> Path:
    pytest.importorskip("sklearn")
    Image.new("L", (8, 8), 99).save(folder / "digit.png")
    settings = ("train.steps=2", "model.width=8", "model.heads=2", "model.encoder_layers=2", *more)
    out, console = folder / "run", Console(file=io.StringIO())
    train("vit-digits", out=out, overrides=settings, device="cpu", console=console)
    return folder / "run"


@pytest.fixture
def few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    _draw_few_scenes(monkeypatch)


def _draw_few_scenes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompted, "VALIDATION_SCENES", 20)
    patch.setattr(prompted, "FOR_VOCABULARY", 400)


@pytest.fixture(scope="session")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a hardly trained diffusion model of scenes; read-only."""
    pytest.importorskip("scipy", reason="the judge of scenes needs SciPy")
    out = tmp_path_factory.mktemp("painted") / "run"
    settings = ("train.steps=5", "train.batch_sentences=6", "data.limit=24", "model.width=8")
    settings += ("train.lr=0.05", "train.ema=0.5")  # so that every part of the model counts
    settings += ("model.heads=2", "model.encoder_layers=1", "model.patch=2")
    settings += (
        "diffusion.channels=[8, 16]",
        "diffusion.attention_levels=[0, 1]",
        "diffusion.steps=5",
        "diffusion.test_pictures=4",
    )
    settings += ("train.optimizer=adam", "train.precision=float32", "diffusion.times=uniform")
    settings += ("diffusion.noisy_epochs=0", "diffusion.sampler=ddim", "diffusion.shift=1")
    with pytest.MonkeyPatch.context() as patch:
        _draw_few_scenes(patch)
        console = Console(file=io.StringIO())
        train("scenes", out=out, overrides=settings, device="cpu", console=console)
    return out


@pytest.fixture(scope="session")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained model exported to CTranslate2 in float32; read-only."""
    pytest.importorskip("ctranslate2")
    out = tmp_path_factory.mktemp("exported") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seq2see.ct2.calibration.CALIBRATION", 0.0)
        export(trained, out, quantization="float32")
    return out


@pytest.fixture(scope="session")
def translator(trained: Path) -> Translator:
    return load(trained, "cpu")
