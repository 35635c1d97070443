"""The explorer's routes under /v1/explore: views of one sentence inside a model."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response

from seq2see.serve import explore_other_schemas as other_schemas
from seq2see.serve import explore_requests as requests
from seq2see.serve import explore_schemas as schemas
from seq2see.serve.answers import REFUSALS, answer
from seq2see.serve.exploring import Explorer
from seq2see.serve.models import Models
from seq2see.serve.native import options
from seq2see.serve.patience import patience
from seq2see.serve.token import described

Asked = requests.Look | requests.TextLook | requests.PictureLook
See = Callable[[str, Request, Asked], Awaitable[Response]]

SENTENCE = {"text": "Ein Hund schläft."}
TEXT = {"text": "A dog sleeps."}
BLANK = {"text": "A <mask> sleeps."}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
HEAD = SENTENCE | {"layer": "decoder.0.cross", "head": 0}


def example(summary: str, value: dict[str, Any]) -> Any:
    """A body of a request that is described by an example."""
    return Body(openapi_examples={"one": {"summary": summary, "value": value}})


def routes(models: Models) -> APIRouter:
    """Build the routes under /v1/explore."""
    dependencies = described(models.settings.token)
    router = APIRouter(prefix="/v1/explore", tags=["explorer"], dependencies=dependencies)
    limits = models.settings.limits
    explorer = Explorer()

    async def see(view: str, request: Request, asked: Asked) -> Response:
        served = models.find(asked.model)
        n_best = asked.n_best if isinstance(asked, requests.TranslateLook) else 1
        beam = asked.beam if isinstance(asked, requests.Look) else None
        options(beam, n_best, served.engine.recipe, limits)  # within the bounds
        with patience(request, limits.deadline) as waiting:
            return answer(await explorer.look(served, view, asked, waiting))

    @router.get("", response_model=schemas.Explorables, responses=REFUSALS)
    async def list_models(request: Request) -> Response:
        """List the models, and everything that can be looked at in each."""
        with patience(request, limits.deadline) as waiting:
            return answer(await explorer.describe(models, waiting))

    add_words(router, see)
    add_attention(router, see)
    add_inside(router, see)
    add_others(router, see)
    return router


def add_words(router: APIRouter, see: See) -> None:
    """Add the views of a translation word by word: its search and its reasons."""

    @router.post("/translate", response_model=schemas.Translation, responses=REFUSALS)
    async def translate(
        request: Request,
        asked: Annotated[
            requests.TranslateLook,
            example("Three translations", SENTENCE | {"beam": 4, "n_best": 3}),
        ],
    ) -> Response:
        """Translate a sentence; return the distribution behind each token."""
        return await see("translate", request, asked)

    @router.post("/beam", response_model=schemas.Beams, responses=REFUSALS)
    async def beam(
        request: Request,
        asked: Annotated[requests.BeamLook, example("A beam of 3", SENTENCE | {"beam": 3})],
    ) -> Response:
        """Search, and return every continuation that the search compared."""
        return await see("beam", request, asked)

    @router.post("/attribution", response_model=schemas.Attribution, responses=REFUSALS)
    async def attribution(
        request: Request,
        asked: Annotated[
            requests.AttributionLook,
            example("Leave one out", SENTENCE | {"method": "erasure"}),
        ],
    ) -> Response:
        """Attribute each target token to the source tokens."""
        return await see("attribution", request, asked)


def add_attention(router: APIRouter, see: See) -> None:
    """Add the views of attention."""

    @router.post("/attention", response_model=schemas.Attention, responses=REFUSALS)
    async def attention(
        request: Request, asked: Annotated[requests.Look, example("A sentence", SENTENCE)]
    ) -> Response:
        """Return all heads of all layers in 64 levels, and the gold alignment if there is one."""
        return await see("attention", request, asked)

    @router.post("/head", response_model=schemas.HeadWeights, responses=REFUSALS)
    async def head(
        request: Request, asked: Annotated[requests.HeadLook, example("A head", HEAD)]
    ) -> Response:
        """Return one head with its exact weights, its mask and the mask's reasons."""
        return await see("head", request, asked)

    @router.post("/heads", response_model=schemas.Ranking, responses=REFUSALS)
    async def heads(
        request: Request, asked: Annotated[requests.Look, example("A sentence", SENTENCE)]
    ) -> Response:
        """Rank all heads by the harm of switching each off."""
        return await see("heads", request, asked)

    @router.post("/by-hand", response_model=schemas.ByHand, responses=REFUSALS)
    async def by_hand(
        request: Request,
        asked: Annotated[requests.ByHandLook, example("A query", HEAD | {"query": 0})],
    ) -> Response:
        """Compute the attention of one query of one head, number by number."""
        return await see("by-hand", request, asked)


def add_inside(router: APIRouter, see: See) -> None:
    """Add the views of layers, shapes and training."""

    @router.post("/layers", response_model=schemas.Layers, responses=REFUSALS)
    async def layers(
        request: Request, asked: Annotated[requests.Look, example("A sentence", SENTENCE)]
    ) -> Response:
        """Predict each token from the states after each decoder layer."""
        return await see("layers", request, asked)

    @router.post("/anatomy", response_model=schemas.Anatomy, responses=REFUSALS)
    async def anatomy(
        request: Request, asked: Annotated[requests.Look, example("A sentence", SENTENCE)]
    ) -> Response:
        """List every tensor from ids to logits, with its shape and parameters."""
        return await see("anatomy", request, asked)

    @router.post("/training", response_model=schemas.Training, responses=REFUSALS)
    async def training(
        request: Request, asked: Annotated[requests.HeadLook, example("A head", HEAD)]
    ) -> Response:
        """Follow a translation and a head over at most twelve checkpoints of the run."""
        return await see("training", request, asked)


def add_others(router: APIRouter, see: See) -> None:
    """Add the views of models that do not translate."""

    @router.post("/next", response_model=other_schemas.NextTokens, responses=REFUSALS)
    async def next_tokens(
        request: Request, asked: Annotated[requests.TextLook, example("A text", TEXT)]
    ) -> Response:
        """Predict each token of a text from those before it, and continue the text greedily."""
        return await see("next", request, asked)

    @router.post("/blanks", response_model=other_schemas.Blanks, responses=REFUSALS)
    async def blanks(
        request: Request, asked: Annotated[requests.TextLook, example("A blank", BLANK)]
    ) -> Response:
        """Fill each <mask> of a text with its five likeliest tokens."""
        return await see("blanks", request, asked)

    @router.post("/label", response_model=other_schemas.Labels, responses=REFUSALS)
    async def label(
        request: Request, asked: Annotated[requests.TextLook, example("A text", TEXT)]
    ) -> Response:
        """Predict the label of a text."""
        return await see("label", request, asked)

    @router.post("/picture", response_model=other_schemas.Picture, responses=REFUSALS)
    async def picture(
        request: Request,
        asked: Annotated[requests.PictureLook, example("One pixel", {"picture": PIXEL})],
    ) -> Response:
        """Classify a picture; return the share of each patch in every head and the rollout."""
        return await see("picture", request, asked)
