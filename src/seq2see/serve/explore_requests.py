"""Bodies of requests of the explorer's routes."""

from typing import Annotated

from pydantic import Field

from seq2see.serve.schemas import INTEGER, Beam, Name, Strict

CHARACTERS = 2000
PICTURE_BYTES = 750_000  # as base64 within the bound of a body
Text = Annotated[str, Field(max_length=CHARACTERS)]
Piece = Annotated[str, Field(max_length=100)]
Layer = Annotated[
    str, Field(max_length=100, description="Name of an attention layer, such as decoder.0.cross.")
]
HeadNumber = Annotated[int, Field(ge=0, le=1000, description="Counted from 0."), INTEGER]
Prefix = Annotated[Text | None, Field(description="Forced beginning of the translation.")]
Forbidden = Annotated[
    list[Piece], Field(max_length=100, description="Tokens that no translation may have.")
]


class Head(Strict):
    """An attention head."""

    layer: Layer
    head: HeadNumber


class Look(Strict):
    """A sentence to look into."""

    text: Text = Field(description="A sentence, of at most 200 tokens or the model's limit.")
    model: Name = Field(None, description="Name of a model; see /v1/explore. By default the first.")
    target: Text | None = Field(
        None, description="Translation to explain; by default the model's own."
    )
    beam: Beam | None = Field(None, description="Beam size; by default the model's.")
    off: list[Head] = Field([], max_length=1024, description="Heads that are switched off.")


class TranslateLook(Look):
    """A translation to explain, and rules for the search."""

    n_best: Beam = Field(1, description="Hypotheses to return, at most the beam.")
    prefix: Prefix = None
    forbidden: Forbidden = Field([])


class HeadLook(Look):
    """A head to look at."""

    layer: Layer
    head: HeadNumber


class ByHandLook(HeadLook):
    """A query position of a head, to compute by hand."""

    query: Annotated[int, INTEGER] = Field(
        ge=0, le=1000, description="Row of the head's weights, counted from 0."
    )


class BeamLook(Look):
    """A search to draw as a tree; the `target` plays no part in it."""

    prefix: Prefix = None
    forbidden: Forbidden = Field([])
    length_penalty: float | None = Field(None, ge=0, le=10, allow_inf_nan=False)


class AttributionLook(Look):
    """A method of attribution."""

    method: str = Field(max_length=100, description="One of the model's methods; see /v1/explore.")


class TextLook(Strict):
    """A text to look into, in a model that does not translate."""

    text: Text = Field(description="A text of at most 200 tokens or the model's limit.")
    model: Name = Field(None, description="Name of a model; see /v1/explore. By default the first.")


class PictureLook(Strict):
    """A picture to look into."""

    picture: str = Field(
        description="Content of a BMP, GIF, JPEG, PNG or WebP file in base64, at most "
        f"{PICTURE_BYTES:,} bytes long."
    )
    model: Name = Field(None, description="Name of a model; see /v1/explore. By default the first.")
