"""Bodies of requests and answers of our own interface."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from seq2see.serve.settings import Limits
from seq2see.text.documents.glossary import LINE


def _integer(value: Any) -> Any:
    """Return 1 for 1.0, which is an integer in a JSON schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


INTEGER = BeforeValidator(_integer)
# The upper bounds below are told here, and checked where a message can say more.
LARGEST_BEAM = {"maximum": Limits.beam}
Beam = Annotated[int, Field(ge=1, json_schema_extra=LARGEST_BEAM), INTEGER]
Name = Annotated[str | None, Field(max_length=100)]
Texts = Annotated[list[str], Field(json_schema_extra={"maxItems": Limits.texts})]
ONE_LINE = {"type": "string", "pattern": LINE}
TERMS = {"type": "object", "propertyNames": ONE_LINE, "additionalProperties": ONE_LINE}


class Strict(BaseModel):
    """A body without unknown keys and without conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TranslateRequest(Strict):
    """Texts to translate, and how."""

    text: str | Texts = Field(description="One text or several.")
    source: Name = Field(None, description="Language code; by default detected where it matters.")
    target: Name = Field(None, description="Language code.")
    model: Name = Field(None, description="Name of a model; see /v1/models.")
    beam: Beam | None = Field(None, description="Beam size; by default the model's.")
    n_best: Beam = Field(1, description="Alternatives of each text, at most the beam.")
    prefix: str | Texts | None = Field(
        None,
        description="Forced beginning of the translation, for all texts or for each. "
        "422 if the translation does not keep it.",
    )
    glossary: Annotated[dict[str, str], WithJsonSchema(TERMS)] | None = Field(
        None, description="Terms and their translations, each a line of text."
    )
    format: Literal["text", "html"] = "text"


class Alternative(BaseModel):
    """One of the n best translations."""

    text: str
    log_probability: float
    score: float = Field(description="Log-probability divided by the length penalty.")


class Translated(Alternative):
    """The best translation of one text."""

    alternatives: list[Alternative] | None = Field(None, description="The n best, if n_best > 1.")


class TranslateResponse(BaseModel):
    """Translations of all texts, in order."""

    model: str
    source: str
    target: str
    translations: list[Translated]


class ScoreRequest(Strict):
    """Given translations, pair by pair."""

    source: Texts
    target: Texts = Field(description="Translations, as many as there are sources.")
    model: Name = None


class Token(BaseModel):
    """A token of a given translation."""

    token: str
    log_probability: float


class Score(BaseModel):
    """Probability of one given translation, </s> included."""

    log_probability: float
    tokens: list[Token]


class ScoreResponse(BaseModel):
    """Scores of all pairs, in order."""

    model: str
    scores: list[Score]


class ModelInfo(BaseModel):
    """A loaded model."""

    name: str
    source: str
    target: str
    engine: str = Field(description="ct2 or torch.")
    beam: int = Field(description="Beam size unless a request gives another.")
    max_length: int = Field(description="Tokens of a sentence; longer ones are split.")


class ModelList(BaseModel):
    """All loaded models; the first is the default."""

    models: list[ModelInfo]


class Status(BaseModel):
    """State of the server."""

    status: str


class Refused(BaseModel):
    """An answer other than 200."""

    error: str
