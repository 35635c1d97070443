"""Unicode normalisation of texts before they are split."""

import unicodedata
from typing import Literal

Form = Literal["none", "nfc", "nfkc"]


def normalised(text: str, form: Form) -> str:
    """Compose accents (NFC), or also replace variants such as ﬁ, ２ and ， by fi, 2 and , (NFKC)."""
    text = without_surrogates(text)
    if form == "none":
        return text
    return unicodedata.normalize("NFC" if form == "nfc" else "NFKC", text)


def without_surrogates(text: str) -> str:
    """Replace lone surrogates: JSON can carry them, but spaCy and SentencePiece refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8")
