"""Translation of a line as one sentence: one line out for one line in."""

from seq2see.text.documents.capitals import in_capitals
from seq2see.text.documents.glossary import Glossary
from seq2see.text.documents.marking import Setting, marked
from seq2see.text.documents.names import Lexicon
from seq2see.text.documents.pieces import Kind, Piece, translatable
from seq2see.text.documents.rendering import rendered
from seq2see.text.documents.steps import Steps


def translate_line(text: str, source: str, target: str, lexicon: Lexicon | None) -> Steps[str]:
    """Translate a line, and keep what its translation may not change.

    Yields one text in the first round, the line itself unless it is in capitals.
    """
    setting = Setting(source, target, Glossary({}), str, lexicon)
    pieces = marked([Piece.plain(text)], setting)
    plain = all(piece.kind is Kind.TEXT for piece in pieces)
    if plain and not in_capitals(text):
        (translation,) = yield [text]
        return translation
    if not translatable(pieces):
        yield [text]
        return " ".join(text.splitlines()).strip()
    return " ".join((yield from rendered(pieces, setting)).splitlines())
