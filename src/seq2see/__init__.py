"""Sequence to sequence you can see.

Train a model, open it, and use it:

    seq2see.train("captions", out="runs/captions")    a recipe's file or name → a run directory
    translator = seq2see.load("runs/captions")        a Translator, or an Engine by CTranslate2
    translator.translate(["Ein Hund bellt."])         the best translation of each text
    translator.score(sources, targets)                log-probabilities of given translations
    translator.explain("Ein Hund bellt.").weights     every attention map, by layer
    translator.explain("Ein Hund bellt.").save("a.html")    all of them drawn; or plot() them
    seq2see.load_language("runs/captions-language")   a LanguageModel: generate, fill, classify
    seq2see.load_pictures("runs/vit-digits")          a PictureModel: classify, explain
    seq2see.load_painter("runs/scenes")               a Painter: paint pictures from prompts
    seq2see.merge_in(pipeline, ratio=0.5)             token merging in a diffusers pipeline

The layers and models work on their own: attend, MultiHeadAttention, EncoderLayer, Transformer,
CausalModel, VisionTransformer and others. Masks are boolean, and True means "may attend".
"""

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
    "Engine",
    "Explanation",
    "FeedForward",
    "Hypothesis",
    "InputError",
    "LanguageModel",
    "MaskedModel",
    "MultiHeadAttention",
    "Painter",
    "PictureModel",
    "PrefixModel",
    "Projected",
    "PromptEncoder",
    "Recipe",
    "Sampling",
    "Scored",
    "Search",
    "TokenMerging",
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
    "load_painter",
    "load_pictures",
    "mask_from_torch",
    "merge_in",
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
    "with_merged_tokens",
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

    def __dir__() -> list[str]:
        """List the public names, imported or not."""
        return ["__version__", *__all__]
