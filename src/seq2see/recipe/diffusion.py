"""The table [diffusion] of a recipe: the U-Net, the noise of training, and painting."""

import math
from typing import Annotated, Literal

from pydantic import Field

from seq2see.recipe.network import Count, ModelConfig, Section, Share, Whole

NORM_GROUPS = 8  # of a U-Net's channels


class DiffusionConfig(Section):
    """Shape of a U-Net, prediction of the model, and defaults for painting."""

    # unet: channels at each resolution, which is half of the one before; the resolutions with
    # attention, counted from 0; and convolutional blocks at each, on the way down and up
    channels: list[Count] = Field(default=[48, 96, 96], min_length=1)
    attention_levels: list[Whole] = Field(default=[1, 2])
    blocks: Count = 1
    # Predict the noise, or the velocity of the noisy picture, both on a cosine schedule; or the
    # velocity on the straight path of flow matching.
    predict: Literal["noise", "velocity", "flow"] = "velocity"
    # Distribution of the times of training examples; logit_normal has more at high noise.
    times: Literal["uniform", "logit_normal"] = "uniform"
    # First epochs, with times above 0.97 alone. Noise hides the objects there, of 32 × 32 pixels at
    # least, so the model has to learn from the prompt what goes where.
    noisy_epochs: Whole = 0
    # Share of the training examples that lose their prompt, for classifier-free guidance.
    without_prompt: Share = 0.1
    sampler: Literal["ddim", "ddpm", "euler"] = "ddim"
    steps: Count = 30  # from noise to a picture
    # Above 1: more of the steps at high noise, where the layout is decided.
    shift: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0
    # 0: the prompt is ignored; 1: the model as it is; above: the prompt's influence is exaggerated
    guidance: Annotated[float, Field(ge=0.0, le=100.0)] = 3.0
    test_pictures: Count = 1000  # painted to score each test set

    def check(self, model: ModelConfig) -> None:
        """Raise ValueError for a U-Net that cannot be built, or U-Net keys for another model."""
        if model.kind != "unet":
            for key in ("channels", "attention_levels", "blocks"):
                if key in self.model_fields_set:
                    rule = f"is for model.kind 'unet', not for {model.kind!r}"
                    raise ValueError(f"diffusion.{key} {rule}")
            return
        last = len(self.channels) - 1
        if any(level > last for level in self.attention_levels):
            rule = f"must be levels of diffusion.channels, which are 0 to {last}"
            raise ValueError(f"diffusion.attention_levels ({self.attention_levels}) {rule}")
        multiple = math.lcm(NORM_GROUPS, model.heads)
        if any(count % multiple for count in self.channels):
            groups = f"{NORM_GROUPS}, the groups of their norms"
            rule = f"must be divisible by {groups}, and by model.heads ({model.heads})"
            raise ValueError(f"diffusion.channels ({self.channels}) {rule}")
