"""Parity of the Transformer with a whole model of Hugging Face, MarianMT."""

from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.batches import Batch
from seq2see.layers.positions import sinusoidal
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import PAD

types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def close(left: Tensor, right: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=tolerance)


WIDTH, HEADS, INNER, ENCODER, DECODER = 12, 3, 10, 2, 3


def marian(source_size: int, target_size: int, shared: bool) -> Any:
    transformers = pytest.importorskip(
        "transformers", reason="needs transformers: pip install transformers"
    )
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=source_size,
        decoder_vocab_size=target_size,
        share_encoder_decoder_embeddings=shared,
        d_model=WIDTH,
        encoder_layers=ENCODER,
        decoder_layers=DECODER,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        max_position_embeddings=32,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=1,
        forced_eos_token_id=1,
        decoder_start_token_id=0,
    )
    model = transformers.MarianMTModel(config).eval()
    positions = {
        id(stack.embed_positions.weight) for stack in (model.model.encoder, model.model.decoder)
    }
    with torch.no_grad():
        for parameter in model.parameters():
            if id(parameter) not in positions:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        model.final_logits_bias.normal_()
    return model


def interleaved(width: int) -> Tensor:
    """Their feature for each of ours: they have all sines first, we a sine beside its cosine."""
    return torch.arange(width).view(2, -1).T.flatten()


def from_marian(theirs: Any) -> Transformer:
    """Copy their weights into our model, with the features of every residual in our order."""
    config, order, state = theirs.config, interleaved(theirs.config.d_model), theirs.state_dict()
    model = ModelConfig(
        width=config.d_model,
        heads=config.encoder_attention_heads,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        feed_forward=config.encoder_ffn_dim,
        norm="post",
    )
    tie = "none"
    if config.share_encoder_decoder_embeddings:
        tie = "all"
    elif theirs.lm_head.weight is theirs.model.decoder.embed_tokens.weight:
        tie = "target"  # with two vocabularies, in some versions
    ours = Transformer(model, config.vocab_size, config.decoder_vocab_size, tie)
    ours = ours.to(theirs.dtype).eval()
    attention = {"q_proj": "query", "k_proj": "key", "v_proj": "value"}
    parts = {"self_attn": "self", "encoder_attn": "cross"}
    taken = {
        "output.weight": state["lm_head.weight"][:, order],
        "output.bias": state["final_logits_bias"][0],
    }
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        taken[f"{side}_embedding.weight"] = state[f"model.{stack}.embed_tokens.weight"][:, order]
        for name, tensor in state.items():
            if not name.startswith(f"model.{stack}.layers."):
                continue
            _, _, _, layer, *path = name.split(".")
            place, end = f"{stack}.{layer}", path[-1]
            if path[1] in attention:  # reads from the residual
                part = f"{parts[path[0]]}_attention.{attention[path[1]]}"
                tensor = tensor[:, order] if end == "weight" else tensor
            elif path[1] == "out_proj":  # writes to it
                part, tensor = f"{parts[path[0]]}_attention.output", tensor[order]
            elif path[0] == "fc1":
                part, tensor = (
                    "feed_forward.expand",
                    tensor[:, order] if end == "weight" else tensor,
                )
            elif path[0] == "fc2":
                part, tensor = "feed_forward.contract", tensor[order]
            else:
                residual = parts.get(path[0].removesuffix("_layer_norm"), "feed_forward")
                part, tensor = f"{residual}_residual.norm", tensor[order]
            taken[f"{place}.{part}.{end}"] = tensor
    ours.load_state_dict(taken)
    return ours


@types
@pytest.mark.parametrize("shared", [True, False], ids=["one vocabulary", "two vocabularies"])
def test_a_whole_model_of_hugging_face_gives_the_same_logits(
    dtype: torch.dtype, shared: bool
) -> None:
    source_size, target_size = (19, 19) if shared else (17, 19)
    theirs = marian(source_size, target_size, shared).to(dtype)
    if dtype == torch.float64:  # their table of positions was rounded to float32
        exact = sinusoidal(32, WIDTH)[:, interleaved(WIDTH).argsort()]
        for stack in (theirs.model.encoder, theirs.model.decoder):
            close(stack.embed_positions.weight.double(), exact, 1e-7)
            stack.embed_positions.weight.data.copy_(exact)
    ours = from_marian(theirs)
    source, target = torch.randint(4, source_size, (5, 11)), torch.randint(4, target_size, (5, 9))
    for row, (ends, stops) in enumerate([(11, 9), (4, 9), (7, 2), (1, 1), (10, 6)]):
        source[row, ends:], target[row, stops:] = PAD, PAD
    with torch.no_grad():
        expected = theirs(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target
        ).logits
        output = ours(Batch(source, target, target, list(range(5))))
    assert output.shape == (5, 9, target_size)
    # Large enough for errors to show.
    assert expected.std() > 0.5 and (expected[0] - expected[1]).abs().max() > 0.5
    close(output, expected, {torch.float32: 1e-4, torch.float64: 1e-10}[dtype])
