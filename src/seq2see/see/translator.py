"""Translators whose explanations draw themselves, as `seq2see.load` and `train` return them."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Literal, ParamSpec, Self, overload

from seq2see.ct2 import engines
from seq2see.ct2.engine import Engine
from seq2see.see.explanation import Explanation
from seq2see.tasks import run, translator
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.painter import Painter
from seq2see.tasks.picture_model import PictureModel

Arguments = ParamSpec("Arguments")


class Translator(translator.Translator):
    """Translates, scores and explains with one model; its explanations draw themselves."""

    @classmethod
    def of(cls, plain: translator.Translator) -> Self:
        """Take over a translator's model."""
        return cls(plain.recipe, plain.tokenizers, plain.model, plain.device, plain.directory)

    def explain(self, text: str, target: str | None = None) -> Explanation:
        """Translate a text, or take the given translation, and return all attention weights.

        The explanation draws itself in a notebook, with `plot()` and with `save(path)`.
        """
        return Explanation(**vars(super().explain(text, target)))


Trained = Translator | LanguageModel | PictureModel | Painter  # by the task of the recipe


@overload
def load(
    directory: str | Path,
    device: str = "auto",
    merge: int | None = None,
    *,
    engine: Literal["torch"],
) -> Translator: ...
@overload
def load(
    directory: str | Path,
    device: str = "auto",
    merge: int | None = None,
    *,
    engine: Literal["ct2"],
    alone: bool = False,
) -> Engine: ...
@overload
def load(
    directory: str | Path,
    device: str = "auto",
    merge: int | None = None,
    *,
    engine: str | None = None,
    alone: bool = False,
) -> Translator | Engine: ...
def load(
    directory: str | Path,
    device: str = "auto",
    merge: int | None = None,
    *,
    engine: str | None = None,
    alone: bool = False,
) -> Translator | Engine:
    """Open the directory of a translation model, trained or exported for CTranslate2.

    With `engine`, only a directory for "torch" or for "ct2" is accepted. With `merge`, the encoder
    merges that many tokens in each layer. `alone` gives CTranslate2 one thread, the fastest for a
    single sentence.
    """
    opened = engines.load(directory, device, merge, engine=engine, alone=alone)
    return Translator.of(opened) if isinstance(opened, translator.Translator) else opened


def _drawing(train: Callable[Arguments, run.Trained]) -> Callable[Arguments, Trained]:
    """Let a function that trains a model return translators whose explanations draw themselves."""

    @wraps(train)
    def trained(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Trained:
        model = train(*args, **kwargs)
        return Translator.of(model) if isinstance(model, translator.Translator) else model

    return trained


train = _drawing(run.train)
