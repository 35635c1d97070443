"""Hugging Face's MarianMTModel in a native PyTorch loop, with less overhead than their Trainer.

Marian is post-norm and has no output bias; everything else has the same size.
"""

import torch
import torch_loop
import worker
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

MOST_POSITIONS = 256


def build(size: worker.Job) -> MarianMTModel:
    dropout = size["dropout"]
    config = MarianConfig(
        vocab_size=size["source_size"],
        decoder_vocab_size=size["target_size"],
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        d_model=size["width"],
        encoder_layers=size["layers"],
        decoder_layers=size["layers"],
        encoder_attention_heads=size["heads"],
        decoder_attention_heads=size["heads"],
        encoder_ffn_dim=size["feed_forward"],
        decoder_ffn_dim=size["feed_forward"],
        activation_function="relu",
        dropout=dropout,
        attention_dropout=dropout,
        activation_dropout=dropout,
        scale_embedding=True,
        max_position_embeddings=MOST_POSITIONS,
        pad_token_id=worker.PAD,
        eos_token_id=worker.END,
        decoder_start_token_id=worker.BEGIN,
        attn_implementation="sdpa",
    )
    return MarianMTModel(config)


def main() -> None:
    job = worker.job()
    torch.set_num_threads(job["threads"])
    torch.manual_seed(1)
    model = build(job["model"])

    def logits(source: Tensor, target: Tensor) -> Tensor:
        mask = (source != worker.PAD).long()
        return model(
            input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False
        ).logits

    torch_loop.train(job, model, logits, worker.versions("torch", "transformers"))


if __name__ == "__main__":
    main()
