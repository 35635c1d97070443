"""The only table from a name to a class."""

from seq2see.config import Recipe
from seq2see.models.transformer import Transformer


def build(recipe: Recipe, source_size: int, target_size: int) -> Transformer:
    """The model a recipe names, with fresh weights drawn from torch's generator."""
    kinds = {"transformer": Transformer}
    return kinds[recipe.model.kind](recipe.model, source_size, target_size, recipe.tie)
