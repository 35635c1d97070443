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
    """Whether a model translates the embedded captions, in any direction."""
    return recipe.data.corpus == "captions"


def gold(translator: Translator, text: str, translation: str) -> dict[str, Any]:
    """The gold links of a pair and its words; None if the grammar is not known to make it."""
    nothing = {"gold": None, "gold_words": None}
    if not has_gold(translator.recipe):
        return nothing
    data = translator.recipe.data
    caption = _known(data.source, data.target).get((text, translation))
    if caption is None:
        return nothing
    source, target = captions.words(text), captions.words(translation)
    return {
        "gold": [list(link) for link in caption.alignment],
        "gold_words": {"source": source, "target": target},
    }


@cache
def _known(source: str, target: str) -> dict[tuple[str, str], Caption]:
    """Captions of the held-out sets, by their texts; made within a second or two, once."""
    return {
        (caption.source, caption.target): caption
        for split, count in HELD_OUT.items()
        for caption in captions.generate(split, count, languages=(source, target))
    }
