"""Hugging Face's `generate` with seq2see's weights, in Pegasus, a pre-norm encoder–decoder.

Its position table receives ours, and its `final_logits_bias` our output bias; the logits must agree
before it is measured. Its length penalty divides by length^α, ours by ((5 + length) / 6)^α.
"""

import math
from collections.abc import Sequence

import numpy as np
import sentencepiece
import torch
import weights
import worker
from torch import Tensor
from transformers import GenerationConfig, PegasusConfig, PegasusForConditionalGeneration

MOST_POSITIONS = 512
BATCHES = (8, 16, 32, 64, 128)
SPECIALS = (worker.BEGIN, worker.END, worker.PAD)


def sinusoidal(width: int) -> Tensor:
    rate = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(MOST_POSITIONS, dtype=torch.float64)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float()


def build(job: worker.Job) -> PegasusForConditionalGeneration:
    size = job["model"]
    config = PegasusConfig(
        vocab_size=size["vocabulary"],
        max_position_embeddings=MOST_POSITIONS,
        d_model=size["width"],
        encoder_layers=size["layers"],
        decoder_layers=size["layers"],
        encoder_attention_heads=size["heads"],
        decoder_attention_heads=size["heads"],
        encoder_ffn_dim=size["feed_forward"],
        decoder_ffn_dim=size["feed_forward"],
        activation_function="relu",
        scale_embedding=True,
        decoder_start_token_id=worker.BEGIN,
        bos_token_id=worker.BEGIN,
        eos_token_id=worker.END,
        pad_token_id=worker.PAD,
        forced_eos_token_id=worker.END,
        attn_implementation="sdpa",
    )
    model = PegasusForConditionalGeneration(config)
    ours = weights.load(job["data"])
    bias = torch.from_numpy(ours.pop("output.bias"))
    table = sinusoidal(size["width"])
    theirs = {
        name: torch.from_numpy(value)
        for name, value in weights.renamed(ours, weights.PEGASUS).items()
    }
    theirs |= {
        "model.shared.weight": theirs["model.decoder.embed_tokens.weight"],
        "final_logits_bias": bias[None],
    }
    theirs |= {f"model.{stack}.embed_positions.weight": table for stack in ("encoder", "decoder")}
    model.load_state_dict(theirs, strict=True)
    return model.eval()


@torch.inference_mode()
def parity(job: worker.Job, model: PegasusForConditionalGeneration) -> float:
    with np.load(f"{job['data']}/parity.npz") as given:
        source, target = torch.from_numpy(given["source"]), torch.from_numpy(given["target"])
        mask = (source != worker.PAD).long()
        logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
        return weights.difference(logits.numpy(), given["logits"], given["target"] != worker.PAD)


def main() -> None:
    job = worker.job()
    model = build(job)
    # Only when tuning: in a round it would raise the peak of memory.
    proof = {"parity": parity(job, model)} if job["tune"] else {}
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{job['data']}/tokenizer.model")
    decode = job["decode"]

    @torch.inference_mode()
    def translate(texts: Sequence[str], setting: worker.Setting) -> list[str]:
        torch.set_num_threads(setting["threads"])
        sources = [[*pieces.encode(text), worker.END] for text in texts]
        outputs = [""] * len(texts)
        for batch in worker.by_length([*map(len, sources)], setting["batch_size"]):
            longest = max(len(sources[i]) for i in batch)
            ids = torch.tensor(
                [sources[i] + [worker.PAD] * (longest - len(sources[i])) for i in batch]
            )
            config = GenerationConfig(
                num_beams=job["beam"],
                do_sample=False,
                length_penalty=decode["length_penalty"],
                early_stopping=setting["early_stopping"],
                max_new_tokens=math.ceil(decode["max_ratio"] * (longest - 1)) + 10,
                decoder_start_token_id=worker.BEGIN,
                bos_token_id=worker.BEGIN,
                eos_token_id=worker.END,
                pad_token_id=worker.PAD,
            )
            rows = model.generate(
                ids, generation_config=config, attention_mask=(ids != worker.PAD).long()
            )
            for i, row in zip(batch, rows.tolist(), strict=True):
                outputs[i] = pieces.decode([id for id in row if id not in SPECIALS])
        return outputs

    settings = [
        {"threads": job["threads"], "batch_size": size, "early_stopping": early}
        for early in (False, True)
        for size in BATCHES
    ]
    versions = worker.versions("torch", "transformers", "sentencepiece")
    worker.translation(job, translate, settings, versions, then={"threads": 1}, **proof)


if __name__ == "__main__":
    main()
