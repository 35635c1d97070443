"""The table of translation models by name, and what a recipe adds to a fresh model."""

import math

from torch import nn

from seq2see.layers.reduction import plans
from seq2see.models.convolutional import Convolutional
from seq2see.models.diffusion import DiffusionModel, PromptEncoder, Shape
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.language import PrefixModel
from seq2see.models.recurrent import Recurrent
from seq2see.models.reduced import Network, with_plan
from seq2see.models.transformer import Transformer
from seq2see.models.unet import UNet
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
PAINTER_PASS = 16 * 32**2  # pixels of one training pass of a diffusion model

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


def diffusion_model(recipe: Recipe, shape: Shape, words: int) -> DiffusionModel:
    """Build the U-Net or diffusion Transformer of a recipe, with an encoder of its prompts."""
    config = recipe.model
    prompts = PromptEncoder(config, words)
    if config.kind == "dit":
        return DiffusionTransformer(
            prompts,
            shape,
            width=config.width,
            heads=config.heads,
            layers=config.decoder_layers,
            patch=config.patch,
            dropout=config.dropout,
        )
    return UNet(
        prompts,
        shape,
        channels=recipe.diffusion.channels,
        attention=recipe.diffusion.attention_levels,
        blocks=recipe.diffusion.blocks,
        heads=config.heads,
        patch=config.patch,
        dropout=config.dropout,
    )


def pass_tokens(model: nn.Module) -> float:
    """The most tokens of one training pass on a CPU."""
    if isinstance(model, Transformer):
        return max(PASS_TOKENS, PASS_NUMBERS / model.width)
    if isinstance(model, DiffusionModel):
        return PAINTER_PASS
    return math.inf
