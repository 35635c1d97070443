"""Documents: long texts and HTML in, the same with their sentences translated out.

Nothing in here translates: see `steps`.
"""

from seq2see.text.documents.document import Format, translate_document
from seq2see.text.documents.glossary import Glossary
from seq2see.text.documents.steps import Steps, run, together

__all__ = ["Format", "Glossary", "Steps", "run", "together", "translate_document"]
