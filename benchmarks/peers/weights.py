"""seq2see's weights under the parameter names of other libraries, and a check of their logits."""

import re
from pathlib import Path

import numpy as np

LIMIT = 1e-4  # largest difference of a logit

Weights = dict[str, np.ndarray]

PEGASUS = (
    (r"^(encoder|decoder)\.(\d+)\.", r"model.\1.layers.\2."),
    (r"\.cross_attention\.", ".encoder_attn."),
    (r"\.self_attention\.", ".self_attn."),
    (r"_attn\.query\.", "_attn.q_proj."),
    (r"_attn\.key\.", "_attn.k_proj."),
    (r"_attn\.value\.", "_attn.v_proj."),
    (r"_attn\.output\.", "_attn.out_proj."),
    (r"\.feed_forward\.expand\.", ".fc1."),
    (r"\.feed_forward\.contract\.", ".fc2."),
    (r"\.self_residual\.norm\.", ".self_attn_layer_norm."),
    (r"\.cross_residual\.norm\.", ".encoder_attn_layer_norm."),
    (r"\.feed_forward_residual\.norm\.", ".final_layer_norm."),
    (r"^(encoder|decoder)_norm\.", r"model.\1.layer_norm."),
    (r"^output\.weight$", "lm_head.weight"),
    (r"^source_embedding\.", "model.encoder.embed_tokens."),
    (r"^target_embedding\.", "model.decoder.embed_tokens."),
)
JOEYNMT = (
    (r"^(encoder|decoder)\.(\d+)\.", r"\1.layers.\2."),
    (r"^(encoder.*)\.self_attention\.", r"\1.src_src_att."),
    (r"^(decoder.*)\.self_attention\.", r"\1.trg_trg_att."),
    (r"\.cross_attention\.", ".src_trg_att."),
    (r"_att\.query\.", "_att.q_layer."),
    (r"_att\.key\.", "_att.k_layer."),
    (r"_att\.value\.", "_att.v_layer."),
    (r"_att\.output\.", "_att.output_layer."),
    (r"\.feed_forward\.expand\.", ".feed_forward.pwff_layer.0."),
    (r"\.feed_forward\.contract\.", ".feed_forward.pwff_layer.3."),
    (r"^(encoder.*)\.self_residual\.norm\.", r"\1.layer_norm."),
    (r"^(decoder.*)\.self_residual\.norm\.", r"\1.x_layer_norm."),
    (r"\.cross_residual\.norm\.", ".dec_layer_norm."),
    (r"\.feed_forward_residual\.norm\.", ".feed_forward.layer_norm."),
    (r"^(encoder|decoder)_norm\.", r"\1.layer_norm."),
    (r"^output\.", "decoder.output_layer."),
    (r"^source_embedding\.", "src_embed.lut."),
    (r"^target_embedding\.", "trg_embed.lut."),
)


def load(folder: str) -> Weights:
    with np.load(Path(folder) / "weights.npz") as file:
        return dict(file)


def renamed(weights: Weights, names: tuple[tuple[str, str], ...]) -> Weights:
    """Rename weights by substituting every pattern in turn."""
    result = {}
    for name, weight in weights.items():
        for pattern, other in names:
            name = re.sub(pattern, other, name)
        result[name] = weight
    return result


def difference(logits: np.ndarray, expected: np.ndarray, real: np.ndarray) -> float:
    """Return the largest difference at a real target token; raise if the copy is wrong."""
    largest = float(np.abs(logits - expected)[real].max())
    if not largest <= LIMIT:
        raise ValueError(
            f"the copied weights are wrong: a logit differs by {largest:.2g}, more than {LIMIT:g}"
        )
    return largest
