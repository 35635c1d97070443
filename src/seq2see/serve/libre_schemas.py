"""Bodies of requests and answers of LibreTranslate's interface."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from seq2see.serve.schemas import INTEGER, Refused, Texts
from seq2see.serve.settings import Limits

Text = str | Texts
MOST = {"maximum": Limits.beam - 1}


class TranslateRequest(BaseModel):
    """A text or a list of texts to translate."""

    q: Text
    source: str = Field(max_length=100, description="Language code, or auto.")
    target: str = Field(max_length=100, description="Language code.")
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0, json_schema_extra=MOST), INTEGER] = Field(
        0, description="Further translations of each text."
    )
    api_key: str | None = None


class DetectRequest(BaseModel):
    """A text whose language is asked for."""

    q: str
    api_key: str | None = None


class Detection(BaseModel):
    """A language, and how sure its detection is, in percent."""

    confidence: float
    language: str


class TranslateResponse(BaseModel):
    """Translations: lists if q is a list."""

    translatedText: Text
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class Language(BaseModel):
    """A language, and the languages that it can be translated to."""

    code: str
    name: str
    targets: list[str]


REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Refused, "description": "A parameter is missing or wrong."},
    403: {"model": Refused, "description": "The API key is missing or wrong."},
    408: {"model": Refused, "description": "The body came too slowly."},
    413: {"model": Refused, "description": "The text is too long."},
    421: {"model": Refused, "description": "The server does not have this host name."},
    422: {"model": Refused, "description": "The model cannot take the text."},
    503: {"model": Refused, "description": "The queue is full."},
    504: {"model": Refused, "description": "The deadline has passed."},
}

NO_LANGUAGES = {"model": Refused, "description": "The server has no model that translates."}


def _body(kind: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    """Describe a body in JSON, or a form, which has one text."""
    schema = kind.model_json_schema()
    form = schema | {"properties": schema["properties"] | {"q": {"type": "string"}}}
    content = {
        "application/json": {"schema": schema, "example": example},
        "application/x-www-form-urlencoded": {"schema": form, "example": example},
    }
    return {"requestBody": {"required": True, "content": content}}


TRANSLATE = {"q": "Ein Hund läuft durch den Schnee.", "source": "auto", "target": "en"}
DESCRIBED: dict[str, dict[str, Any]] = {
    "translate": {
        "response_model": TranslateResponse,
        "responses": REFUSED,
        "openapi_extra": _body(TranslateRequest, TRANSLATE),
    },
    "detect": {
        "response_model": list[Detection],
        "responses": REFUSED,
        "openapi_extra": _body(DetectRequest, {"q": "Zwei Kinder spielen."}),
    },
    "languages": {"response_model": list[Language]},
    "settings": {"response_model": dict[str, Any], "responses": {400: NO_LANGUAGES}},
}
