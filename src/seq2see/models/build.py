"""The table of translation models by name, and what a recipe adds to a fresh model."""

import math

from torch import nn

from seq2see.layers.reduction import plans
from seq2see.models.convolutional import Convolutional
from seq2see.models.language import PrefixModel
from seq2see.models.recurrent import Recurrent
from seq2see.models.reduced import Network, with_plan
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import Recipe

Seq2SeqModel = Transformer | Recurrent | Convolutional | PrefixModel

KINDS: dict[str, type[Transformer] | type[Recurrent] | type[Convolutional] | type[PrefixModel]] = {
    "transformer": Transformer,
    "rnn": Recurrent,
    "lstm": Recurrent,
    "gru": Recurrent,
    "conv": Convolutional,
    "prefix": PrefixModel,
}

# Longer passes of a Transformer on a CPU are hardly faster, and all activations of one are held.
PASS_TOKENS = 384  # padding included; narrow models take more:
PASS_NUMBERS = 160_000  # tokens times the width


def build(recipe: Recipe, source_size: int, target_size: int) -> Seq2SeqModel:
    """Build the encoder–decoder that a recipe names, with weights drawn from torch's generator."""
    model = KINDS[recipe.model.kind](recipe.model, source_size, target_size, recipe.tie)
    return reduced(model, recipe)


def reduced(model: Network, recipe: Recipe) -> Network:
    """Let the model's encoder follow the [reduce] of a recipe."""
    plan = plans.plan_of(recipe.reduce, recipe.model.encoder_layers)
    return model if plan is None else with_plan(model, plan)


def pass_tokens(model: nn.Module) -> float:
    """The most tokens of one training pass on a CPU."""
    if isinstance(model, Transformer):
        return max(PASS_TOKENS, PASS_NUMBERS / model.width)
    return math.inf
