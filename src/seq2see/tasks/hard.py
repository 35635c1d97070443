"""Evaluation of a translation model on hard sentences, which a generator makes."""

from seq2see.scoring.hard import Kind, by_kind
from seq2see.scoring.tokenization import tokenization
from seq2see.tasks.translation_engine import TranslationEngine
from seq2see.text.hard import generate


def evaluate_hard(translator: TranslationEngine, beam: int | None = None) -> dict[str, Kind]:
    """Translate the hard sentences of the model's languages, and count what came through."""
    languages = translator.tokenizers.languages
    sentences = generate(*languages)
    twins = [one.twin for one in sentences if one.twin]
    outputs = translator.translate([*(one.source for one in sentences), *twins], beam=beam)
    count = len(sentences)
    return by_kind(sentences, outputs[:count], outputs[count:], tokenization(languages[1]))
