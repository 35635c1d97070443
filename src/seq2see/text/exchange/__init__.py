"""Exchange: pairs of a corpus with other numbers, names, copies and cases, to learn from."""

from seq2see.text.exchange.pairs import Exchange

__all__ = ["Exchange"]
