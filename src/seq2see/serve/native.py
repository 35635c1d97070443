"""Our own interface: /v1/translate, /v1/score, /v1/models."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response

from seq2see.decoding.long_text import Translation
from seq2see.recipe.schema import Recipe
from seq2see.scoring.likelihood import Scored
from seq2see.serve.answers import REFUSALS, answer
from seq2see.serve.detect import detect
from seq2see.serve.documents import Wish, translate_texts
from seq2see.serve.models import Models, Served
from seq2see.serve.patience import patience
from seq2see.serve.problems import Problem
from seq2see.serve.schemas import (
    ModelList,
    ScoreRequest,
    ScoreResponse,
    TranslateRequest,
    TranslateResponse,
)
from seq2see.serve.settings import Limits
from seq2see.serve.token import described
from seq2see.serve.translating import Options, score_texts
from seq2see.text.documents import Glossary

TRANSLATE_EXAMPLES = {
    "one": {"summary": "One text", "value": {"text": "Ein Hund läuft durch den Schnee."}},
    "several": {
        "summary": "Several texts, two translations of each",
        "value": {"text": ["Zwei Kinder spielen.", "Guten Tag!"], "beam": 4, "n_best": 2},
    },
    "html": {
        "summary": "HTML, with a term whose translation is given",
        "value": {
            "text": "<p>Ein <b>Hund</b> schläft.</p>",
            "format": "html",
            "glossary": {"Hund": "hound"},
        },
    },
    "prefix": {
        "summary": "A translation whose beginning is given",
        "value": {"text": "Ein Hund schläft.", "prefix": "There is"},
    },
}
SCORE_EXAMPLES = {
    "pair": {
        "summary": "One pair",
        "value": {"source": ["Zwei Kinder spielen."], "target": ["Two children are playing."]},
    }
}


def check_texts(name: str, texts: Sequence[str], limits: Limits) -> None:
    """Refuse more texts or characters than a request may have, and what is no text."""
    if len(texts) > limits.texts:
        raise Problem(422, f"{name} has {len(texts)} texts; at most {limits.texts} are allowed")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise Problem(422, f"{name} has half a surrogate pair, which is no character") from None
    characters = sum(map(len, texts))
    if characters > limits.characters:
        rule = f"at most {limits.characters} are allowed"
        raise Problem(413, f"{name} has {characters} characters; {rule}")


def options(beam: int | None, n_best: int, recipe: Recipe, limits: Limits) -> Options:
    """Complete a request's search settings, within the bounds."""
    beam = beam or max(recipe.decode.beam, 1)
    if beam > limits.beam:
        raise Problem(422, f"beam is {beam}; at most {limits.beam} is allowed")
    if n_best > beam:
        raise Problem(422, f"n_best is {n_best}; it must be at most the beam, {beam}")
    return Options(beam, n_best)


def wish_of(asked: TranslateRequest, count: int, limits: Limits) -> Wish:
    """Return a request's format, glossary and forced beginnings, within the bounds."""
    prefixes = [asked.prefix or ""] * count if not isinstance(asked.prefix, list) else asked.prefix
    if len(prefixes) != count:
        raise Problem(422, f"prefix has {len(prefixes)} texts for {count}; they must pair up")
    check_texts("prefix", prefixes, limits)
    terms = asked.glossary or {}
    check_texts("glossary", [*terms, *terms.values()], limits)
    return Wish(prefixes, asked.format, Glossary(terms) if terms else None)


def chosen(models: Models, asked: TranslateRequest, texts: Sequence[str]) -> Served:
    """Return the model of a request; its source language is detected if that decides."""
    source = None if asked.source == "auto" else asked.source
    choice = models.choose(asked.model, source, asked.target)
    sources = list(dict.fromkeys(served.source for served in choice))
    if len(sources) > 1:
        best = detect(" ".join(texts), sources)[0].language
        choice = [served for served in choice if served.source == best]
    return choice[0]


def translation(translations: Sequence[Translation], n_best: int) -> dict[str, Any]:
    """One text's part of the answer."""
    rows = [vars(one) for one in translations]  # `asdict` would copy every value deeply
    return rows[0] | {"alternatives": rows} if n_best > 1 else rows[0]


def score_values(scored: Scored) -> dict[str, Any]:
    """One pair's part of the answer."""
    tokens = zip(scored.tokens, scored.log_probabilities, strict=True)
    return {
        "log_probability": scored.log_probability,
        "tokens": [{"token": token, "log_probability": p} for token, p in tokens],
    }


def model_values(served: Served) -> dict[str, Any]:
    """One model's part of the answer."""
    recipe = served.engine.recipe
    return {
        "name": served.name,
        "source": served.source,
        "target": served.target,
        "engine": served.kind,
        "beam": recipe.decode.beam,
        "max_length": recipe.data.max_length,
    }


def add_translate(router: APIRouter, models: Models) -> None:
    """Add the route that translates."""
    limits = models.settings.limits

    @router.post("/translate", response_model=TranslateResponse, responses=REFUSALS)
    async def translate(
        request: Request,
        asked: Annotated[TranslateRequest, Body(openapi_examples=TRANSLATE_EXAMPLES)],
    ) -> Response:
        """Translate one text or several."""
        texts = [asked.text] if isinstance(asked.text, str) else asked.text
        check_texts("text", texts, limits)
        wish = wish_of(asked, len(texts), limits)
        served = chosen(models, asked, texts)
        how = options(asked.beam, asked.n_best, served.engine.recipe, limits)
        with patience(request, limits.deadline) as waiting:
            results = await translate_texts(served, texts, wish, how, waiting)
        return answer(
            {
                "model": served.name,
                "source": served.source,
                "target": served.target,
                "translations": [translation(result, how.n_best) for result in results],
            }
        )


def add_score(router: APIRouter, models: Models) -> None:
    """Add the route that scores given translations."""
    limits = models.settings.limits

    @router.post("/score", response_model=ScoreResponse, responses=REFUSALS)
    async def score(
        request: Request,
        asked: Annotated[ScoreRequest, Body(openapi_examples=SCORE_EXAMPLES)],
    ) -> Response:
        """Compute the log-probability of given translations."""
        if len(asked.source) != len(asked.target):
            counts = f"{len(asked.source)} source and {len(asked.target)} target texts"
            raise Problem(422, f"{counts}; they must pair up")
        check_texts("source", asked.source, limits)
        check_texts("target", asked.target, limits)
        served = models.choose(asked.model, None, None)[0]
        with patience(request, limits.deadline) as waiting:
            scores = await score_texts(served, asked.source, asked.target, waiting)
        return answer({"model": served.name, "scores": [score_values(one) for one in scores]})


def add_models(router: APIRouter, models: Models) -> None:
    """Add the route that lists the models."""

    @router.get("/models", response_model=ModelList, responses=REFUSALS)
    async def list_models() -> Response:
        """List the loaded models; the first is the default."""
        return answer({"models": [model_values(served) for served in models]})


def routes(models: Models) -> APIRouter:
    """Build the routes under /v1."""
    dependencies = described(models.settings.token)
    router = APIRouter(prefix="/v1", tags=["translation"], dependencies=dependencies)
    add_translate(router, models)
    add_score(router, models)
    add_models(router, models)
    return router
