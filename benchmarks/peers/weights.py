"""seq2see's weights under the names that other libraries give them, and the proof that they compute the same."""

import re
from pathlib import Path

import numpy as np

LIMIT = 1e-4  # of a logit

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
    with np.load(Path(folder) / "weights.npz") as found:
        return dict(found)


def renamed(weights: Weights, names: tuple[tuple[str, str], ...]) -> Weights:
    """The weights under other names."""
    found = {}
    for name, weight in weights.items():
        for pattern, other in names:
            name = re.sub(pattern, other, name)
        found[name] = weight
    return found


def difference(logits: np.ndarray, expected: np.ndarray, real: np.ndarray) -> float:
    """The largest one at a real target token; beyond the limit the copy is wrong and nothing is measured."""
    found = float(np.abs(logits - expected)[real].max())
    if not found <= LIMIT:
        raise ValueError(
            f"the copied weights are not ours: a logit differs by {found:.2g}, more than {LIMIT:g}"
        )
    return found
