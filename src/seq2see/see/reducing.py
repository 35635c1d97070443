"""Merging and pruning layer by layer, for the words of a text or the patches of a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from seq2see.batches import collate
from seq2see.errors import InputError
from seq2see.models.reduced import reducible
from seq2see.see.reduction_charts import draw_picture, draw_text
from seq2see.see.reduction_trace import ReductionTrace
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.table import open_model, task_of
from seq2see.tasks.text import TextTask


@dataclass(frozen=True)
class Subject:
    """A text or a picture, and the model that reads it."""

    model: Any
    batch: Any
    title: str
    tokens: list[str]  # of a text, with </s>; or "class", if there is one, and "row/column" patches
    pixels: Tensor | None = None  # (C, H, W), bytes
    grid: tuple[int, int] = (0, 0)

    def draw(self, trace: ReductionTrace) -> Figure:
        """Draw the reduction of this text or picture."""
        if self.pixels is None:
            return draw_text(trace, self.tokens, self.title)
        return draw_picture(trace, self.pixels, self.grid, self.title)


def read_subject(directory: Path, argument: str) -> Subject:
    """Open a model and read its input: a sentence, or the path of a picture."""
    opened = open_model(directory, "cpu", tasks=("translate", "classify", "images"))
    if isinstance(opened, PictureModel):
        return _picture(opened, argument)
    recipe = opened.recipe
    if not reducible(opened.model):
        raise InputError(
            f"{directory}: model.kind {recipe.model.kind!r} has no encoder that can merge or prune"
        )
    task = task_of(recipe)
    assert isinstance(task, TextTask)
    tokenizer = task.encoder(opened.tokenizers).reader
    limit = recipe.data.max_length
    ids = tokenizer.encode(argument)
    if not 0 < len(ids) <= limit:
        raise InputError(
            f"the text has {len(ids)} tokens; the model takes 1 to data.max_length = {limit}"
        )
    tokens = [*tokenizer.pieces(argument), "</s>"]
    return Subject(opened.model, collate([(ids, [])], [0]), argument, tokens)


def _picture(pictures: PictureModel, path: str) -> Subject:
    pixels = pictures.read(path)
    rows, columns = pictures.model.grid
    tokens = [f"{row + 1}/{column + 1}" for row in range(rows) for column in range(columns)]
    if pictures.model.class_embedding is not None:
        tokens.insert(0, "class")
    batch = pictures.format.batch(pixels[None])
    return Subject(pictures.model, batch, Path(path).name, tokens, pixels, (rows, columns))
