"""Gold alignments of sentences that the grammar of the embedded captions has made."""

from functools import cache
from typing import Any

from seq2see.recipe.schema import Recipe
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.captions import Caption
from seq2see.text.corpora import CAPTIONS

HELD_OUT = {split: count for split, count in CAPTIONS.items() if split != "train"}


def has_gold(recipe: Recipe) -> bool:
    """Whether a model translates the embedded captions, in either direction."""
    return recipe.data.corpus == "captions"


def gold(translator: Translator, text: str, translation: str) -> dict[str, Any]:
    """The gold links of a pair and its words; None if the grammar is not known to make it."""
    nothing = {"gold": None, "gold_words": None}
    if not has_gold(translator.recipe):
        return nothing
    turned = translator.recipe.data.source == "en"
    german, english = (translation, text) if turned else (text, translation)
    caption = _known().get((german, english))
    if caption is None:
        return nothing
    source, target = captions.words(text), captions.words(translation)
    links = [link[::-1] if turned else link for link in caption.alignment]
    return {
        "gold": [list(link) for link in sorted(links)],
        "gold_words": {"source": source, "target": target},
    }


@cache
def _known() -> dict[tuple[str, str], Caption]:
    """Captions of the held-out sets, by their texts; made within a second or two, once."""
    return {
        (caption.source, caption.target): caption
        for split, count in HELD_OUT.items()
        for caption in captions.generate(split, count)
    }
