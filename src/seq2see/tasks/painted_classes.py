"""Evaluation of pictures painted by class, with a classifier of real pictures."""

from dataclasses import asdict
from pathlib import Path

import torch

from seq2see.batches import spread
from seq2see.errors import InputError
from seq2see.pictures import captioned
from seq2see.pictures.prompted import PromptedCorpus, PromptedPictures, StoredPictures
from seq2see.scoring.painting import class_lines, class_report
from seq2see.tasks.painter import Painter
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.protocol import Report
from seq2see.tasks.table import task_of
from seq2see.text.history import History


def evaluate_classes(
    painter: Painter, classifier: PictureModel, data: Path | None = None
) -> Report:
    """Paint the classes of the test set; compare the pictures with real ones.

    The classifier must not have been trained on the painter's test or validation set.
    """
    corpus = corpus_of(painter, data)
    held_out = by_class(next(iter(corpus.tests.values())))
    others = by_class(corpus.val)
    lines = spread(len(held_out), painter.recipe.diffusion.test_pictures)
    prompts = held_out.read(lines).prompts
    pixels = torch.from_numpy(painter.paint(prompts, lines)).permute(0, 3, 1, 2)
    generated = captioned.pictures("generated", pixels, prompts)
    figures = class_report(classifier, generated, held_out.captioned, others.captioned)
    sampling = asdict(painter.settings())
    return Report({**figures, "sampling": sampling}, class_lines(figures))


def corpus_of(painter: Painter, data: Path | None = None) -> PromptedCorpus:
    """Read the pictures of a painter's recipe, without held-out ones that it was trained on."""
    history = History() if painter.path is None else History.of(painter.path)
    corpus: PromptedCorpus = task_of(painter.recipe).data(data, history).corpus
    return corpus


def by_class(pictures: PromptedPictures) -> StoredPictures:
    """Refuse pictures that no classifier judges."""
    if not isinstance(pictures, StoredPictures):
        raise InputError("--classifier is for pictures by class; scenes are judged by a program")
    return pictures
