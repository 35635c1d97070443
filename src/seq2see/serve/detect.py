"""Detection of a text's language among those that are loaded."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from seq2see.text.documents.sentences import base

LONGEST = 2000  # characters that detection reads


@dataclass(frozen=True)
class Detected:
    """A language, and the probability that the text is in it."""

    language: str
    confidence: float


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=False)


def load() -> None:
    """Read the model of languages, which takes a second, before the first request needs it."""
    _identifier()


def detect(text: str, languages: Iterable[str]) -> list[Detected]:
    """Rank languages by their probability; those that detection does not know come last."""
    asked = sorted(set(languages))
    log_p = {language: float(score) for language, score in _identifier().rank(text[:LONGEST])}
    known = {language: log_p[base(language)] for language in asked if base(language) in log_p}
    highest = max(known.values(), default=0.0)
    weights = {
        language: math.exp(known[language] - highest) if language in known else 0.0
        for language in asked
    }
    total = sum(weights.values()) or 1.0
    ranked = [Detected(language, weight / total) for language, weight in weights.items()]
    return sorted(ranked, key=lambda detected: -detected.confidence)
