"""Joey NMT's prediction with seq2see's weights, its own tokenizer, stream data set and beam search.

To fit the weights, two things differ from what Joey NMT builds: the output layer has a bias, and
the norms have our ε. The length penalty is the same; translations are limited to 1.5 times the longest
source of a batch.
"""

from collections.abc import Sequence
from pathlib import Path

import joeynmt_setup
import numpy as np
import torch
import weights
import worker
from joeynmt.config import BaseConfig, parse_global_args
from joeynmt.data import load_data
from joeynmt.datasets import StreamDataset
from joeynmt.model import Model, build_model
from joeynmt.prediction import predict
from torch import nn

BATCHES = (16, 32, 64, 128)
# Joey NMT's special tokens, its ids 0 to 3.
ORDER = [worker.UNKNOWN, worker.PAD, worker.BEGIN, worker.END]


def configure(job: worker.Job) -> BaseConfig:
    folder = Path(job["data"])
    side = {
        "level": "bpe",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "tokenizer.model")},
        "voc_file": str(folder / "pieces.txt"),
    }
    size = job["model"] | {
        "dropout": 0.0,
        "label_smoothing": 0.0,
        "batch_sentences": 32,
        "accumulate": 1,
    }
    sides = [{"lang": language, **side} for language in ("source", "target")]
    configuration = joeynmt_setup.configuration(job | {"model": size}, *sides, {"test": "stream"})
    testing = {"beam_size": job["beam"], "beam_alpha": job["decode"]["length_penalty"], "n_best": 1}
    configuration["testing"] |= testing
    return parse_global_args(configuration, rank=0, mode="translate")


def build(job: worker.Job, args: BaseConfig) -> tuple[Model, StreamDataset]:
    source, target, _, _, data = load_data(cfg=args.data, datasets=["stream"])
    model = build_model(args.model, src_vocab=source, trg_vocab=target)
    output = model.decoder.output_layer
    model.decoder.output_layer = nn.Linear(output.in_features, output.out_features)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = job["model"]["norm_epsilon"]
    ours = weights.load(job["data"])
    for name in (
        "source_embedding.weight",
        "target_embedding.weight",
        "output.weight",
        "output.bias",
    ):
        ours[name] = np.concatenate([ours[name][ORDER], ours[name][len(ORDER) :]])
    theirs = {
        name: torch.from_numpy(value)
        for name, value in weights.renamed(ours, weights.JOEYNMT).items()
    }
    theirs |= {f"{stack}.pe.pe": getattr(model, stack).pe.pe for stack in ("encoder", "decoder")}
    model.load_state_dict(theirs, strict=True)
    return model.eval(), data


@torch.inference_mode()
def parity(job: worker.Job, model: Model) -> float:
    with np.load(f"{job['data']}/parity.npz") as given:
        order = np.array([*ORDER, *range(len(ORDER), given["logits"].shape[-1])])
        source, target = (
            torch.from_numpy(np.argsort(order)[given[side]]) for side in ("source", "target")
        )
        masks = [(ids != model.pad_index).unsqueeze(1) for ids in (source, target)]
        lengths = masks[0].sum(-1).squeeze(1)
        logits, *_ = model._encode_decode(
            src=source, trg_input=target, src_mask=masks[0], src_length=lengths, trg_mask=masks[1]
        )
        return weights.difference(
            logits.numpy(), given["logits"][..., order], given["target"] != worker.PAD
        )


def main() -> None:
    job = worker.job()
    args = configure(job)
    model, data = build(job, args)
    # Only when tuning: in a round it would raise the peak of memory.
    proof = {"parity": parity(job, model)} if job["tune"] else {}

    def translate(texts: Sequence[str], setting: worker.Setting) -> list[str]:
        torch.set_num_threads(setting["threads"])
        # Sorted for little padding, as its documentation advises.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        data.reset_cache()
        for i in order:
            data.set_item(texts[i])
        _, _, hypotheses, *_ = predict(
            model=model,
            data=data,
            compute_loss=False,
            device=args.device,
            rank=0,
            n_gpu=args.n_gpu,
            normalization="none",
            num_workers=args.num_workers,
            args=args.test._replace(batch_size=setting["batch_size"]),
            autocast=args.autocast,
        )
        outputs = dict(zip(order, hypotheses, strict=True))
        return [outputs[i] for i in range(len(texts))]

    settings = [{"threads": job["threads"], "batch_size": size} for size in BATCHES]
    versions = worker.versions("torch", "joeynmt", "sentencepiece")
    worker.translation(job, translate, settings, versions, then={"threads": 1}, **proof)


if __name__ == "__main__":
    main()
