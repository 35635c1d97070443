"""seq2see: sequence to sequence you can see."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "Batch",
    "Bilinear",
    "CausalModel",
    "Classifier",
    "DecoderLayer",
    "Denoising",
    "DiffusionTransformer",
    "EncoderLayer",
    "Explanation",
    "FeedForward",
    "Hypothesis",
    "InputError",
    "LanguageModel",
    "MaskedModel",
    "MultiHeadAttention",
    "PictureModel",
    "PrefixModel",
    "Projected",
    "PromptEncoder",
    "Recipe",
    "Sampling",
    "Scored",
    "Search",
    "Trace",
    "Transformer",
    "Translation",
    "Translator",
    "UNet",
    "VisionTransformer",
    "WorkError",
    "attend",
    "attention_from_torch",
    "attention_to_torch",
    "beam_search",
    "causal_mask",
    "collate",
    "combine",
    "decoder_layer_from_torch",
    "decoder_layer_to_torch",
    "denoise",
    "denoising_loss",
    "dot",
    "draw_noise",
    "encoder_layer_from_torch",
    "encoder_layer_to_torch",
    "greedy",
    "load",
    "load_language",
    "load_pictures",
    "mask_from_torch",
    "noise_process",
    "order_mask",
    "packed_mask",
    "padding_mask",
    "prefix_mask",
    "rotate",
    "scaled_dot",
    "search",
    "sinusoidal",
    "smoothed_loss",
    "train",
    "window_mask",
    "with_merging",
    "with_pruning",
    "with_top",
]

if TYPE_CHECKING:
    from seq2see.api import *
else:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used: torch takes seconds, `--help` should not."""
        if name not in __all__:
            raise AttributeError(f"module 'seq2see' has no attribute {name!r}")
        import seq2see.api

        return getattr(seq2see.api, name)
