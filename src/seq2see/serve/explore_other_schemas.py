"""Bodies of answers of the explorer's routes for models that do not translate."""

from pydantic import BaseModel, Field

from seq2see.serve.explore_schemas import Likely, Prediction, Tokens


class NextTokens(BaseModel):
    """A text and its likeliest continuation, token by token."""

    tokens: Tokens = Field(description="The text and its continuation, </s> last.")
    given: int = Field(description="Tokens of the text; those after it continue it.")
    text: str = Field(description="The text and at most 40 tokens that continue it.")
    log_probability: float = Field(description="That of the given text.")
    steps: list[Prediction]


class Blank(BaseModel):
    """A blank, and the likeliest tokens in it."""

    place: int = Field(description="Among the tokens, counted from 0.")
    top: list[Likely] = Field(description="The five likeliest tokens.")


class Blanks(BaseModel):
    """A text with blanks."""

    tokens: Tokens = Field(description="As the model reads them, <mask> in each blank, </s> last.")
    text: str = Field(description="The text with the likeliest token in each blank.")
    blanks: list[Blank]


class Label(BaseModel):
    """A label and its probability."""

    label: str
    probability: float


class Labels(BaseModel):
    """The predicted label of a text, and all labels, the likeliest first."""

    label: str
    classes: list[Label]


Shares = list[list[float]]


class PictureLayer(BaseModel):
    """All heads of a layer over a picture."""

    name: str
    heads: list[Shares] = Field(description="For each head, the share of each patch, row by row.")


class Picture(BaseModel):
    """The classes of a picture, and where the model attends in it."""

    pixels: list[list[list[int]]] = Field(description="As the model reads them: row by row.")
    classes: list[Label] = Field(description="The likeliest first.")
    grid: list[int] = Field(description="Rows and columns of patches.")
    class_token: bool = Field(
        description="Whether shares are those of the class token; else the mean over all patches."
    )
    layers: list[PictureLayer]
    rollout: Shares = Field(description="Attention rolled out through all layers.")
