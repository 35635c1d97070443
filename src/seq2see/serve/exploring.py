"""Looking into the models of a server, one request after the other, on a thread of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from seq2see.ct2 import engine as ct2
from seq2see.errors import InputError
from seq2see.serve.batching import Batcher
from seq2see.serve.logs import log
from seq2see.serve.metrics import Metrics
from seq2see.serve.models import Explored, Models
from seq2see.serve.patience import Patience
from seq2see.serve.problems import Problem

WAITING = 16  # requests
EXPORT = "this model is an export; serve the directory that it was made from to look inside"
BROKEN = "this model cannot be opened by PyTorch; the server's log says why"


@dataclass(frozen=True)
class _Alone:
    """The work of a queue whose items are computations, each a batch of its own."""

    def tokens(self, computation: Callable[[], Any]) -> int:
        return 1

    def largest(self, tokens: int) -> int:
        return 1

    def run(self, batch: list[Callable[[], Any]]) -> list[Any]:
        return [computation() for computation in batch]


class Explorer:
    """Opens models by PyTorch when they are first looked into: other engines show nothing inside.

    What is opened goes with the served model that it belongs to, when the server reloads.
    """

    def __init__(self) -> None:
        self._opened: WeakKeyDictionary[Explored, Any] = WeakKeyDictionary()
        self._descriptions: WeakKeyDictionary[Explored, dict[str, Any]] = WeakKeyDictionary()

    @cached_property
    def _queue(self) -> Batcher:
        # Its figures are not among those of translation.
        return Batcher("explore", 1, WAITING, Metrics())

    async def look(
        self, served: Explored, view: str, asked: Any, patience: Patience
    ) -> dict[str, Any]:
        """Compute one view of a model, unless the request ends before."""

        def compute() -> dict[str, Any]:
            opened = self._open(served)
            if opened is None:
                raise Problem(422, _reason(served))
            from seq2see.serve import explore_views  # needs torch

            return explore_views.view(view, opened, asked, patience.check, served.inside)

        return await self._run(compute, patience)

    async def describe(self, models: Models, patience: Patience) -> dict[str, Any]:
        """Describe all models, each once: that tries every attribution."""
        all_served = models.explored

        def compute() -> dict[str, Any]:
            for served in all_served:
                if served not in self._descriptions:
                    self._descriptions[served] = self._describe(served)
            return {"models": [self._descriptions[served] for served in all_served]}

        return await self._run(compute, patience)

    async def _run(
        self, computation: Callable[[], dict[str, Any]], patience: Patience
    ) -> dict[str, Any]:
        (result,) = await self._queue.run(_Alone(), [computation], patience.add)
        view: dict[str, Any] = result
        return view

    def _open(self, served: Explored) -> Any:
        """Open a model once; None if it cannot be."""
        if served not in self._opened:
            self._opened[served] = served.opened or _load(served)
        return self._opened[served]

    def _describe(self, served: Explored) -> dict[str, Any]:
        recipe = served.engine.recipe
        opened = self._open(served)
        described = {
            "name": served.name,
            "source": served.source,
            "target": served.target,
            "available": opened is not None,
            "reason": None if opened is not None else _reason(served),
            "inside": served.inside,
            "kind": recipe.model.kind,
            "beam": max(recipe.decode.beam, 1),
            "length_penalty": recipe.decode.length_penalty,
        }
        if opened is None:
            nothing: dict[str, Any] = {"maps": [], "methods": [], "checkpoints": []}
            return described | nothing | {"parameters": 0, "gold": False}
        from seq2see.serve.explore_views import describe  # needs torch

        return described | describe(opened, served.inside)


def _reason(served: Explored) -> str:
    return EXPORT if ct2.exported(served.directory) else BROKEN


def _load(served: Explored) -> Any:
    if ct2.exported(served.directory):
        return None
    from seq2see.tasks.table import load  # needs torch

    try:
        return load(served.directory, "cpu")
    except InputError as error:
        log("explorer", "warning", model=served.name, reason=str(error))
        return None
