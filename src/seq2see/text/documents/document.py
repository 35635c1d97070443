"""Translation of a document: plain text or HTML."""

from collections.abc import Mapping
from typing import Literal

from seq2see.errors import InputError
from seq2see.text.documents import html, plain
from seq2see.text.documents.glossary import Glossary
from seq2see.text.documents.marking import Setting
from seq2see.text.documents.names import Lexicon
from seq2see.text.documents.passages import translated
from seq2see.text.documents.steps import Steps, together

Format = Literal["text", "html"]


def translate_document(
    text: str,
    *,
    source: str,
    target: str,
    format: Format = "text",
    glossary: Glossary | Mapping[str, str] | None = None,
    lexicon: Lexicon | None = None,
) -> Steps[str]:
    """Translate a document between languages, given by their codes.

    With a model's lexicon, names outside it are kept, too.
    Yields texts to translate, at most twice, and returns the document; see `run`.
    """
    if format not in ("text", "html"):
        raise InputError(f"format {format!r} must be text or html")
    terms = glossary if isinstance(glossary, Glossary) else Glossary(glossary or {})
    setting = Setting(source, target, terms, html.written if format == "html" else str, lexicon)
    parts = list(html.passages(text) if format == "html" else plain.passages(text))
    texts = yield from together(
        translated(part, setting) for part in parts if not isinstance(part, str)
    )
    results = iter(texts)
    return "".join(part if isinstance(part, str) else next(results) for part in parts)
