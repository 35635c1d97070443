"""Views of models that do not translate, by the kind of the model."""

import base64
import binascii
from collections.abc import Callable
from typing import Any

from seq2see.errors import InputError
from seq2see.pictures.files import decode_picture
from seq2see.see.explorer import one_stack, picture
from seq2see.serve.explore_requests import PICTURE_BYTES, HeadLook, Look, PictureLook, TextLook
from seq2see.serve.problems import Problem
from seq2see.tasks.classify import TextClassifier
from seq2see.tasks.language import Writer
from seq2see.tasks.masked import Filler
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.picture_model import PictureModel

Values = dict[str, Any]
PIXELS = 4_000_000
# Values of what only models that translate have.
NOTHING: Values = {
    "beam": None,
    "length_penalty": None,
    "methods": [],
    "checkpoints": [],
    "gold": False,
}
NAMES = {
    "continuation": "a language model",
    "blanks": "a masked model",
    "label": "a classifier of texts",
    "picture": "a classifier of pictures",
}


def _next(writer: Writer, asked: TextLook) -> Values:
    return one_stack.next_tokens(writer, asked.text)


def _layers(writer: Writer, asked: Look) -> Values:
    return one_stack.next_by_layer(writer, asked.text)


def _blanks(filler: Filler, asked: TextLook) -> Values:
    return one_stack.blanks(filler, asked.text)


def _labels(classifier: TextClassifier, asked: TextLook) -> Values:
    return one_stack.labels(classifier, asked.text)


def _picture(model: PictureModel, asked: PictureLook) -> Values:
    channels, *size = model.format.shape
    pixels = decode_picture(_content(asked.picture), channels, (size[0], size[1]), PIXELS)
    return picture.picture(model, pixels)


def _content(written: str) -> bytes:
    """Decode base64; refuse what is too large before anything is computed."""
    if len(written) > 4 * PICTURE_BYTES // 3:
        raise Problem(413, f"picture: it is larger than {PICTURE_BYTES:,} bytes")
    try:
        return base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("picture: it is not written in base64") from None


def _attention(read: Callable[[Any, str], one_stack.Read]) -> dict[str, Callable[..., Values]]:
    """The views of attention in a text that is read in this way."""

    def all_heads(model: LanguageModel, asked: Look) -> Values:
        return one_stack.attention(read(model, asked.text))

    def one_head(model: LanguageModel, asked: HeadLook) -> Values:
        return one_stack.one_head(read(model, asked.text), asked.layer, asked.head)

    return {"attention": all_heads, "head": one_head}


VIEWS: dict[str, dict[str, Callable[..., Values]]] = {
    "continuation": {"next": _next, "layers": _layers, **_attention(one_stack.read_on)},
    "blanks": {"blanks": _blanks, **_attention(one_stack.read_blanks)},
    "label": {"label": _labels, **_attention(one_stack.read_labelled)},
    "picture": {"picture": _picture},
}


def view(name: str, opened: Any, asked: Any, inside: str) -> Values:
    """Compute a view, or say which ones there are."""
    views = VIEWS[inside]
    if name not in views:
        known = ", ".join(views)
        raise InputError(f"{name}: {NAMES[inside]} has no such view; it has {known}")
    return views[name](opened, asked)


def _describe_text(model: LanguageModel) -> Values:
    language = model.tokenizers.languages[1]
    return {**NOTHING, "target": language, "maps": one_stack.kinds(model.recipe.model)}


def _describe_picture(model: PictureModel) -> Values:
    return {**NOTHING, "maps": one_stack.kinds(model.recipe.model)}


DESCRIPTIONS: dict[str, Callable[[Any], Values]] = {
    "continuation": _describe_text,
    "blanks": _describe_text,
    "label": _describe_text,
    "picture": _describe_picture,
}
