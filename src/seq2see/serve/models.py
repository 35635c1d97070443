"""The models of a server, by name and by language pair; opened, exported once, and reloaded.

Those that do not translate are opened for the explorer alone.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.ct2 import engine as ct2
from seq2see.ct2.batches import Setting
from seq2see.ct2.engine import SHORTLIST, Engine
from seq2see.ct2.engines import ENGINES
from seq2see.ct2.library import cores
from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.serve.batching import Batcher
from seq2see.serve.cache import Cache
from seq2see.serve.exports import exported
from seq2see.serve.logs import log
from seq2see.serve.metrics import Metrics
from seq2see.serve.problems import Problem
from seq2see.serve.settings import Settings
from seq2see.tasks.translation_engine import TranslationEngine, translates

TORCH_BATCH = 8192  # source tokens × beam
TRANSLATION = "translation"  # views of the explorer


@dataclass(frozen=True)
class Place:
    """A model as the command line names it."""

    name: str
    directory: Path

    @classmethod
    def read(cls, argument: str) -> "Place":
        """Read NAME=DIR, or DIR, whose last part is then the name."""
        name, equals, directory = argument.partition("=")
        if not equals:
            directory = argument
            name = Path(os.path.abspath(argument)).name
        if not name or not directory:
            raise InputError(f"--model {argument}: must be DIR or NAME=DIR")
        return cls(name, Path(directory))


@dataclass(frozen=True, eq=False)
class Served:
    """A model in use, with its queue and its cache."""

    name: str
    source: str
    target: str
    directory: Path  # as the command line names it
    kind: str  # of engine: ct2 or torch
    engine: TranslationEngine
    batch_tokens: int  # source tokens × beam
    batcher: Batcher
    cache: Cache
    metrics: Metrics
    inside: str = TRANSLATION
    opened = None  # by PyTorch, when it is first looked into

    def count(self, sentences: int, hits: int) -> None:
        """Count sentences, and those of them that were found in the cache."""
        self.metrics.sentences.labels(self.name).inc(sentences)
        self.metrics.cache_hits.labels(self.name).inc(hits)


@dataclass(frozen=True, eq=False)
class Shown:
    """A model that does not translate: the explorer looks into it."""

    name: str
    directory: Path
    inside: str  # name of its views
    opened: Any  # by `Task.open`
    source = None
    target = None

    @property
    def engine(self) -> Any:
        """The opened model, whose recipe is read as an engine's."""
        return self.opened


Explored = Served | Shown


def open_place(place: Place, kind: str | None) -> tuple[str, Any]:
    """Open a model by an engine, or to look into: return the engine's kind or the views' name."""
    recipe = place.directory / "recipe.toml"
    if ct2.exported(place.directory) or not recipe.is_file() or translates(Recipe.load(recipe)):
        return open_engine(place, kind)
    from seq2see.tasks.table import open_inside

    return open_inside(place.directory)


def open_engine(place: Place, kind: str | None) -> tuple[str, TranslationEngine]:
    """Open a model by CTranslate2 if it exports, else by PyTorch; with `kind`, by that one."""
    directory = place.directory
    if kind != "torch" and not ct2.exported(directory):
        try:
            directory = exported(directory)
        except InputError as error:
            if kind == "ct2" or not (place.directory / "model.safetensors").is_file():
                raise
            log("engine", model=place.name, engine="torch", reason=str(error))
    if not ct2.exported(directory):
        from seq2see.ct2.engines import load

        return "torch", load(directory, engine="torch")
    if kind == "torch":
        raise InputError(f"{directory}: an export for CTranslate2, not for engine 'torch'")
    if (directory / SHORTLIST).exists():
        rule = "with it, a translation depends on the others of its batch"
        raise InputError(f"{directory}: exported with a shortlist; {rule}")
    engine = ct2.load(directory)
    # Every worker has one thread, the fastest for a single sentence, and gets batches of ours.
    one_each = Setting(cores(), 1, engine.setting.batch_tokens)
    if engine.setting != one_each:
        engine = Engine(directory, engine.recipe, engine.tokenizers, one_each)
    engine.setting = Setting(1, 1, one_each.batch_tokens)
    return "ct2", engine


def _batch_tokens(engine: TranslationEngine) -> int:
    """The size of batches that an export was found to be fastest with, or a usual one."""
    return engine.setting.batch_tokens if isinstance(engine, Engine) else TORCH_BATCH


class Models:
    """All models of a server."""

    def __init__(self, places: list[Place], kind: str | None, settings: Settings) -> None:
        names = [place.name for place in places]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"--model: two models are named {name}; give names: NAME=DIR")
        self.metrics = Metrics()
        self.settings = settings
        self._places = places
        self._kind = kind
        self._served: dict[str, Served] = {}
        self._shown: dict[str, Shown] = {}

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    @property
    def explored(self) -> list[Explored]:
        """All models, those that do not translate included, as the command line orders them."""
        known: dict[str, Explored] = {**self._served, **self._shown}
        return [known[place.name] for place in self._places]

    def open(self) -> list[tuple[Place, str, Any]]:
        """Open all models; takes seconds, or minutes if one has to be exported."""
        return [(place, *open_place(place, self._kind)) for place in self._places]

    def serve(self, opened: list[tuple[Place, str, Any]]) -> None:
        """Take these models for all further requests; requests that have begun keep theirs."""
        self._served = {}
        self._shown = {}
        for place, kind, engine in opened:
            if kind not in ENGINES:
                self._shown[place.name] = Shown(place.name, place.directory, kind, engine)
                log("model", model=place.name, inside=kind)
                continue
            data = engine.recipe.data
            workers = cores() if kind == "ct2" else 1
            limits = self.settings.limits
            batcher = Batcher(place.name, workers, limits.queue, self.metrics)
            self._served[place.name] = Served(
                name=place.name,
                source=data.source,
                target=data.target,
                directory=place.directory,
                kind=kind,
                engine=engine,
                batch_tokens=self.settings.batch_tokens or _batch_tokens(engine),
                batcher=batcher,
                cache=Cache(self.settings.cache),
                metrics=self.metrics,
            )
            log("model", model=place.name, source=data.source, target=data.target, engine=kind)

    async def reload(self) -> None:
        """Open all models again; the old ones stay if that fails, else until their last request."""
        try:
            opened = await asyncio.to_thread(self.open)
        except Exception as error:
            log("reload failed", "error", reason=str(error))
            return
        self.serve(opened)
        log("reloaded", models=len(opened))

    def find(self, name: str | None) -> Explored:
        """Return the model of this name to look into; without a name, the first."""
        models = self.explored
        if not models:
            raise Problem(422, "this server has no model")
        for one in models:
            if name in (None, one.name):
                return one
        raise Problem(422, f"model is not one of {', '.join(one.name for one in models)}")

    def choose(
        self, name: str | None, source: str | None, target: str | None, status: int = 422
    ) -> list[Served]:
        """Return the models that a request may mean; refuse if there are none."""
        if name in self._shown:
            raise Problem(status, f"model {name} does not translate; it is for /v1/explore alone")
        if not self._served:
            raise Problem(status, "this server has no model that translates")
        if name is not None and name not in self._served:
            raise Problem(422, f"model is not one of {', '.join(self._served)}")
        choice = [
            served
            for served in self._served.values()
            if name in (None, served.name)
            and source in (None, served.source)
            and target in (None, served.target)
        ]
        if not choice:
            pairs = sorted({f"{served.source}→{served.target}" for served in self})
            raise Problem(status, f"no model for these languages; there are {', '.join(pairs)}")
        return choice
