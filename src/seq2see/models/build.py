"""The only table from a name to a class."""

from seq2see.layers.reduction.encoder import Reducible
from seq2see.layers.reduction.plans import plan_of
from seq2see.models.convolutional import Convolutional
from seq2see.models.language import CausalModel, Classifier, MaskedModel, PrefixModel
from seq2see.models.recurrent import Recurrent
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import Recipe
from seq2see.text import labels

Model = Transformer | Recurrent | Convolutional | PrefixModel
OneSided = CausalModel | MaskedModel | Classifier

KINDS: dict[str, type[Transformer] | type[Recurrent] | type[Convolutional] | type[PrefixModel]] = {
    "transformer": Transformer,
    "rnn": Recurrent,
    "lstm": Recurrent,
    "gru": Recurrent,
    "conv": Convolutional,
    "prefix": PrefixModel,
}


def build(recipe: Recipe, source_size: int, target_size: int) -> Model | OneSided:
    """The model a recipe names, with fresh weights drawn from torch's generator."""
    model = _network(recipe, source_size, target_size)
    if isinstance(model, Reducible):
        model.plan = plan_of(recipe.reduce, recipe.model.encoder_layers)
    return model


def _network(recipe: Recipe, source_size: int, target_size: int) -> Model | OneSided:
    if recipe.task == "language":
        return CausalModel(recipe.model, target_size, recipe.tie != "none")
    if recipe.task == "masked":
        return MaskedModel(recipe.model, target_size, recipe.tie != "none")
    if recipe.task == "classify":
        return Classifier(recipe.model, target_size, len(labels.vocabulary(recipe.data)))
    return KINDS[recipe.model.kind](recipe.model, source_size, target_size, recipe.tie)
