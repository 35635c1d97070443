"""The public names; `seq2see` imports them on demand, as torch is slow to import."""

from seq2see.batches import Batch, collate
from seq2see.decoding.denoising import Denoising, denoise
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.long_text import Translation
from seq2see.decoding.sampling import Sampling
from seq2see.decoding.search import beam_search, greedy, search
from seq2see.errors import InputError, WorkError
from seq2see.layers.attention import MultiHeadAttention, attend
from seq2see.layers.blocks import DecoderLayer, EncoderLayer, FeedForward
from seq2see.layers.interop import (
    attention_from_torch,
    attention_to_torch,
    decoder_layer_from_torch,
    decoder_layer_to_torch,
    encoder_layer_from_torch,
    encoder_layer_to_torch,
    mask_from_torch,
)
from seq2see.layers.mask_patterns import order_mask, packed_mask, prefix_mask, window_mask
from seq2see.layers.masks import causal_mask, combine, padding_mask
from seq2see.layers.positions import rotate, sinusoidal
from seq2see.layers.scores import Additive, Bilinear, Projected, dot, scaled_dot
from seq2see.layers.trace import Trace
from seq2see.models.diffusion import PromptEncoder
from seq2see.models.dit import DiffusionTransformer
from seq2see.models.language import CausalModel, Classifier, MaskedModel, PrefixModel
from seq2see.models.noise import noise_process
from seq2see.models.reduced import with_merging, with_pruning, with_top
from seq2see.models.transformer import Transformer
from seq2see.models.unet import UNet
from seq2see.models.vit import VisionTransformer
from seq2see.recipe.schema import Recipe
from seq2see.scoring.likelihood import Scored
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.picture_model import PictureModel
from seq2see.tasks.run import train
from seq2see.tasks.table import load, load_language, load_pictures
from seq2see.tasks.translator import Explanation, Translator
from seq2see.training.denoising import denoising_loss, draw_noise
from seq2see.training.loss import smoothed_loss
