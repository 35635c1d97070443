"""Bodies of requests and answers of our own interface."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Beam = Annotated[int | None, Field(ge=1, description="Beam size; by default the model's.")]
Name = Annotated[str | None, Field(max_length=100)]


class Strict(BaseModel):
    """A body without unknown keys and without conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TranslateRequest(Strict):
    """Texts to translate, and how."""

    text: str | list[str] = Field(description="One text or several.")
    source: Name = Field(None, description="Language code; by default detected where it matters.")
    target: Name = Field(None, description="Language code.")
    model: Name = Field(None, description="Name of a model; see /v1/models.")
    beam: Beam = None
    n_best: int = Field(1, ge=1, description="Alternatives of each text, at most the beam.")
    prefix: str | list[str] | None = Field(
        None,
        description="Forced beginning of the translation, for all texts or for each. "
        "422 if the translation does not keep it.",
    )
    glossary: dict[str, str] | None = Field(None, description="Terms and their translations.")
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

    source: list[str]
    target: list[str]
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
