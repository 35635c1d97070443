"""LibreTranslate's interface, for the clients that speak it."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError

from seq2see.serve.answers import answer
from seq2see.serve.detect import Detected, detect
from seq2see.serve.documents import Wish, translate_texts
from seq2see.serve.libre_schemas import DESCRIBED, DetectRequest, TranslateRequest
from seq2see.serve.models import Models, Served
from seq2see.serve.native import check_texts
from seq2see.serve.patience import patience
from seq2see.serve.problems import Problem
from seq2see.serve.token import bearer, equal
from seq2see.serve.translating import Options
from seq2see.text.languages import english_name

Kind = TypeVar("Kind", TranslateRequest, DetectRequest)

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def read(request: Request, model: type[Kind]) -> Kind:
    """Read a request from its JSON or form, and else from its query; numbers there are strings."""
    values: dict[str, Any] = dict(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        async with request.form(max_files=0) as form:
            return parsed(model, values | dict(form))
    body = await request.body()
    if not body:
        return parsed(model, values)
    if kind != "application/json":  # any web page may send other types, without being asked
        raise Problem(400, "Invalid request: the body is neither JSON nor a form, by its type")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "Invalid request: the body is not JSON") from None
    if not isinstance(given, dict):
        raise Problem(400, "Invalid request: the body is not an object")
    return parsed(model, values | given, strict=True)


def parsed(model: type[Kind], values: Any, strict: bool = False) -> Kind:
    """Check the keys of a request, in LibreTranslate's words."""
    try:
        return model.model_validate(values, strict=strict)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        key = str(first["loc"][0])
        if first["type"] == "missing":
            raise Problem(400, f"Invalid request: missing {key} parameter") from None
        raise Problem(400, f"Invalid request: {key}: {first['msg']}") from None


class Interface:
    """LibreTranslate's operations on our models."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.limits = models.settings.limits

    def authorise(self, request: Request, key: str | None) -> None:
        """Refuse a request without the server's token, as its api_key or as a bearer token."""
        token = self.models.settings.token
        if token is None:
            return
        given = key.encode(errors="replace") if key else bearer(request.scope["headers"])
        if not equal(token, given):
            message = "Invalid API key" if given else "The API key is missing"
            raise Problem(403, f"{message}; the operator of the server has it")

    def languages(self) -> dict[str, list[str]]:
        """Return the targets of each language; a language that is only a target has none."""
        targets: dict[str, list[str]] = {}
        for served in self.models:
            targets.setdefault(served.target, [])
            targets.setdefault(served.source, []).append(served.target)
        return {code: sorted(set(targets[code])) for code in sorted(targets)}

    def source(self, asked: TranslateRequest, text: str) -> tuple[str, Detected | None]:
        """Return the source language; detected for auto, if a model translates from it."""
        languages = self.languages()
        for name, code in (("source", asked.source), ("target", asked.target)):
            if code not in languages and (name, code) != ("source", "auto"):
                raise Problem(400, f"{name} language is not supported; /languages lists them")
        if asked.source != "auto":
            return asked.source, None
        for detected in detect(text, languages):
            if asked.target in (*languages[detected.language], detected.language):
                return detected.language, detected
        raise Problem(400, "no model translates to the target language")

    def options(self, asked: TranslateRequest, served: Served) -> Options:
        """Return a search with as many alternatives as are asked for."""
        n_best = asked.alternatives + 1
        if n_best > self.limits.beam:
            rule = f"at most {self.limits.beam - 1} are allowed"
            raise Problem(400, f"Invalid request: alternatives is {asked.alternatives}; {rule}")
        return Options(max(served.engine.recipe.decode.beam, n_best), n_best)

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of them."""
        asked = await read(request, TranslateRequest)
        self.authorise(request, asked.api_key)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        check_texts("q", texts, self.limits)
        source, detected = self.source(asked, " ".join(texts))
        if source == asked.target:
            rows = [[text] for text in texts]
        else:
            served = self.models.choose(None, source, asked.target, status=400)[0]
            options = self.options(asked, served)
            wish = Wish([""] * len(texts), asked.format)
            with patience(request, self.limits.deadline) as waiting:
                results = await translate_texts(served, texts, wish, options, waiting)
            rows = [[one.text for one in result] for result in results]
        return answer(translated(asked, rows, detected))

    async def detect(self, request: Request) -> Response:
        """Detect the language of a text."""
        asked = await read(request, DetectRequest)
        self.authorise(request, asked.api_key)
        check_texts("q", [asked.q], self.limits)
        ranked = detect(asked.q, self.languages())
        return answer([shown(one) for one in ranked if one.confidence >= 0.01])


def shown(detected: Detected) -> dict[str, Any]:
    """A detected language, with its probability in percent."""
    return {"confidence": round(100 * detected.confidence, 1), "language": detected.language}


def translated(
    asked: TranslateRequest, rows: list[list[str]], detected: Detected | None
) -> Mapping[str, Any]:
    """Build the answer: lists for a list, else single values."""
    several = not isinstance(asked.q, str)
    best = [row[0] for row in rows]
    values: dict[str, Any] = {"translatedText": best if several else best[0]}
    if detected is not None:
        values["detectedLanguage"] = [shown(detected)] * len(rows) if several else shown(detected)
    if asked.alternatives:
        others = [row[1:] for row in rows]
        values["alternatives"] = others if several else others[0]
    return values


def routes(models: Models, document: Callable[[], dict[str, Any]]) -> APIRouter:
    """Build LibreTranslate's routes; `document` gives the description of all routes."""
    router = APIRouter(tags=["LibreTranslate"])
    interface = Interface(models)
    translate, detect_language = DESCRIBED["translate"], DESCRIBED["detect"]
    router.post("/translate", **translate)(interface.translate)
    router.post("/detect", **detect_language)(interface.detect)

    @router.get("/languages", **DESCRIBED["languages"])
    async def list_languages() -> Response:
        """List the languages, and those that each can be translated to."""
        rows = interface.languages().items()
        return answer(
            [
                {"code": code, "name": english_name(code), "targets": targets}
                for code, targets in rows
            ]
        )

    @router.get("/frontend/settings", **DESCRIBED["settings"])
    async def settings() -> Response:
        """Return what a client may show: the bounds, and the languages to begin with."""
        first = models.choose(None, None, None, status=400)[0]
        codes = {"source": first.source, "target": first.target}
        language = {
            side: {"code": code, "name": english_name(code)} for side, code in codes.items()
        }
        keys = models.settings.token is not None
        return answer(
            {
                "apiKeys": keys,
                "charLimit": models.settings.limits.characters,
                "filesTranslation": False,
                "frontendTimeout": 500,
                "keyRequired": keys,
                "language": language,
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    @router.get("/spec", include_in_schema=False)
    async def spec() -> Response:
        """Return the description of all routes, where LibreTranslate has it."""
        return answer(document())

    return router
