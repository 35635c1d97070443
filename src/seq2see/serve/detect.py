"""Detection of a text's language among those that are loaded."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 2000  # characters that detection reads


@dataclass(frozen=True)
class Detected:
    """A language, and the probability that the text is in it."""

    language: str
    confidence: float


@functools.cache
def _identifier(languages: tuple[str, ...]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(languages)
    return identifier


def detect(text: str, languages: Sequence[str]) -> list[Detected]:
    """Rank languages by their probability."""
    ranks = _identifier(tuple(sorted(set(languages)))).rank(text[:LONGEST])
    return [Detected(language, float(probability)) for language, probability in ranks]
