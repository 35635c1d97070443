"""Documents: long texts and HTML in, the same with their sentences translated out.

Nothing in here translates: see `steps`.
"""

from seq2see.text.documents.document import Format, translate_document
from seq2see.text.documents.glossary import Glossary
from seq2see.text.documents.line import translate_line
from seq2see.text.documents.names import Lexicon
from seq2see.text.documents.steps import Steps, run, together

__all__ = [
    "Format",
    "Glossary",
    "Lexicon",
    "Steps",
    "run",
    "together",
    "translate_document",
    "translate_line",
]
