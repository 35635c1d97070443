"""Task `diffusion`: a prompt → a picture of what it says."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from seq2see.batches import spread
from seq2see.errors import InputError
from seq2see.models.build import diffusion_model
from seq2see.models.diffusion import DiffusionModel
from seq2see.models.directory import ModelDirectory
from seq2see.models.init import Rows
from seq2see.models.noise import noise_process
from seq2see.pictures.prompted import LONGEST_PROMPT, PromptedPictures, ScenePictures
from seq2see.pictures.prompts import PaintingFormat
from seq2see.pictures.sheet import sheet
from seq2see.recipe.network import PAINTERS
from seq2see.recipe.schema import Recipe
from seq2see.scoring.painting import prompt_accuracy, prompt_lines
from seq2see.tasks.keys import PAINTED, refuse_keys
from seq2see.tasks.painter import Painter, Pictures
from seq2see.tasks.painting_data import PaintingBatch, PaintingData, PaintingExamples
from seq2see.tasks.predict import validated
from seq2see.tasks.protocol import Report
from seq2see.tasks.text import device_of
from seq2see.text.history import History
from seq2see.text.progress import Progress, silent
from seq2see.training.denoising import denoising_loss
from seq2see.training.report import Validation
from seq2see.training.workers import share_out

VALIDATION_BATCH = 16
VALIDATION_PICTURES = 64  # painted at each validation
SHEET_PICTURES = 16  # of them shown, in rows of
SHEET_COLUMNS = 4

# Keys of other tasks.
REFUSED = (
    *("data.source", "data.target", "data.mix", "data.val", "data.test", "data.columns"),
    *("data.hold_out", "data.overlap", "data.join", "data.exchange", "data.labels", "tokenizer"),
    *(
        "model.tie",
        "model.overlap",
        "model.pool",
        "model.attention_dropout",
        "model.score",
        "augment",
        "reduce",
        "decode",
    ),
    *("train.batch_tokens", "train.label_smoothing", "train.smoothing", "train.choose"),
    "train.validate_sentences",
)


class Diffusion:
    """Learns to remove noise from pictures, and paints by removing it from noise alone."""

    medium: ClassVar[str] = "prompted pictures"
    command: ClassVar[str] = "seq2see paint"
    unit: ClassVar[str] = "pictures"

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.process = noise_process(recipe.diffusion.predict)

    def check(self) -> None:
        recipe = self.recipe
        refuse_keys(recipe, REFUSED, "other tasks")
        if recipe.model.kind not in PAINTERS:
            kinds = " or ".join(map(repr, PAINTERS))
            raise ValueError(f"model.kind {recipe.model.kind!r}: task 'diffusion' needs {kinds}")
        recipe.diffusion.check(recipe.model)
        for table, key in (("model", "patch"), ("train", "batch_sentences")):
            if key not in getattr(recipe, table).model_fields_set:
                raise ValueError(f"{table}.{key} is missing; task 'diffusion' needs it")
        data = recipe.data
        if data.corpus is not None and data.corpus not in PAINTED:
            raise ValueError(f"data.corpus {data.corpus!r} is text; task 'diffusion' paints")
        for key in ("language", "groups"):
            if key in data.model_fields_set and data.corpus != "scenes":
                raise ValueError(f"data.{key} is for data.corpus 'scenes'")
        if data.corpus == "scenes" and data.max_length < LONGEST_PROMPT:
            rule = f"must be at least {LONGEST_PROMPT}, the words of the longest prompt of 'scenes'"
            raise ValueError(f"data.max_length ({data.max_length}) {rule}")
        if isinstance(data.train, list):
            raise ValueError("data.train lists files; pictures are in one folder")

    def data(
        self,
        where: Path | None,
        history: History,
        progress: Progress = silent,
        folder: Path | None = None,
    ) -> PaintingData:
        progress("reading the pictures", None)
        return PaintingData(self.recipe, where, history)

    def build(self, data: PaintingData) -> DiffusionModel:
        assert data.format is not None
        return self.network(data.format)

    def network(self, format: PaintingFormat) -> DiffusionModel:
        try:
            return diffusion_model(self.recipe, format.shape, len(format.vocabulary))
        except ValueError as error:
            raise InputError(f"the model does not fit the pictures: {error}") from None

    def loss(self, model: nn.Module, batch: PaintingBatch) -> Tensor:
        without_prompt = self.recipe.diffusion.without_prompt
        return denoising_loss(model, self.process, *batch.parts, without_prompt=without_prompt)

    def validate(self, model: Any, data: PaintingData, share: float = 1.0) -> Validation:
        """Loss on the validation set under fixed noise, and pictures of some of its prompts."""
        examples = data.validation()
        lines = validated(len(examples.pictures), share)
        started = time.perf_counter()
        loss = self._mean_loss(model, examples, lines)
        one_picture = (time.perf_counter() - started) / len(lines)  # seconds to score it
        if not math.isfinite(loss):
            return Validation(loss, {}, "", [])
        count = max(SHEET_PICTURES, round(share * VALIDATION_PICTURES))
        painted = spread(len(examples.pictures), count)
        painter = Painter(self.recipe, examples.format, model, device_of(model))
        started = time.perf_counter()
        prompts = data.corpus.val.read(painted).prompts
        pictures = painter.paint(prompts, painted)  # the line is the seed
        seconds = time.perf_counter() - started
        figures: dict[str, float] = {}
        summary = ""
        if isinstance(data.corpus.val, ScenePictures):  # only these are painted to score them
            one_picture += seconds / len(painted)
            accuracy = judged(data.corpus.val, painted, pictures)["accuracy"]
            figures = {"accuracy": accuracy}
            summary = f"{accuracy:.1%} of {len(painted)} pictures right"
        shown = spread(len(painted), SHEET_PICTURES)
        tested = sum(self._scored(test) for test in data.corpus.tests.values())
        return Validation(
            loss,
            figures,
            summary,
            samples=[],
            examples=f"{len(lines):,} of {len(examples.pictures):,} pictures",
            share=len(lines) / len(examples.pictures),
            scoring_seconds=one_picture * tested,
            sheet=sheet(pictures[shown], SHEET_COLUMNS, labels=[prompts[place] for place in shown]),
        )

    def _scored(self, test: PromptedPictures) -> int:
        return min(len(test), self.recipe.diffusion.test_pictures)

    def _mean_loss(
        self, model: nn.Module, examples: PaintingExamples, lines: Sequence[int]
    ) -> float:
        device = device_of(model)

        @torch.inference_mode()
        def run(first: int) -> float:
            batch = examples.batch(lines[first : first + VALIDATION_BATCH]).to(device)
            return float(denoising_loss(model, self.process, *batch.parts, without_prompt=0.0))

        workers = torch.get_num_threads() if device.type == "cpu" else 1
        losses = share_out(run, range(0, len(lines), VALIDATION_BATCH), workers)
        return sum(losses) / len(lines)

    def score(self, opened: Painter, data: PaintingData, test: str) -> Report:
        """Loss on a test set and, for scenes, the share of prompts that are painted rightly."""
        pictures = data.corpus.tests[test]
        lines = spread(len(pictures), self._scored(pictures))
        examples = PaintingExamples(pictures, opened.format, "noise/test")
        loss = self._mean_loss(opened.model.eval(), examples, lines)
        values: dict[str, Any] = {"loss": loss, "pictures": len(lines)}
        report = [f"denoising loss {loss:.4f} on {len(lines):,} pictures"]
        if isinstance(pictures, ScenePictures):
            started = time.perf_counter()
            painted = opened.paint(pictures.read(lines).prompts, lines)
            seconds = (time.perf_counter() - started) / len(lines)
            figures = judged(pictures, lines, painted)
            values |= {**figures, "seconds_per_picture": seconds}
            report += prompt_lines(figures)
        return Report(values | {"corpus_sha256": pictures.digest}, report)

    def open(
        self, directory: ModelDirectory, device: torch.device, merge: int | None = None
    ) -> Painter:
        if merge is not None:
            raise InputError(f"--merge {merge}: is for encoders; paint --merge takes a ratio")
        format = PaintingFormat.load(directory.path)
        model = self.network(format)
        directory.fill(model)
        return Painter(self.recipe, format, model, device, directory.path)

    def inside(self) -> str:
        raise InputError("a painter is not served; seq2see see painting shows what happens in it")

    def rows(self, vocabulary: Any) -> Rows:
        if isinstance(vocabulary, PaintingData):
            assert vocabulary.format is not None
            return {"prompts": vocabulary.format.words}
        return {"prompts": PaintingFormat.load(vocabulary.path).words}


def judged(scenes: ScenePictures, lines: Sequence[int], painted: Pictures) -> dict[str, Any]:
    """Judge pictures painted for the prompts of some lines: `prompt_accuracy`."""
    from seq2see.pictures.scenes.judge import judge

    prompts = [scenes.drawings[line].prompt for line in lines]
    verdicts = [judge(*pair) for pair in zip(painted, prompts, strict=True)]
    return prompt_accuracy(verdicts)
