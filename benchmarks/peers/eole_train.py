"""Eole, the successor of OpenNMT-py, with its own data iterator, model and trainer.

A bucket is one batch, so that its batches are the shared ones, and duplicate sources in a batch are
kept. That and the clock depend on private names: if one is missing, nothing is measured.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eole.trainer
import torch
import worker
from eole.config.run import TrainConfig
from eole.inputters.dynamic_iterator import DynamicDatasetIter
from eole.train_single import main as train

HOOKS = ((eole.trainer.Trainer, "_accum_batches"), (DynamicDatasetIter, "_should_deduplicate"))


class Enough(Exception):
    """Raised when the meter has measured enough."""


class Measured(eole.trainer.Trainer):
    """Reads the clock when the trainer requests the next batches: the update is then complete."""

    meter: worker.Meter
    parameters = 0

    def _accum_batches(self, *given: Any, **named: Any) -> Iterator[Any]:
        Measured.parameters = sum(p.numel() for p in self.model.parameters())
        for accumulated in super()._accum_batches(*given, **named):
            yield accumulated
            batches, *_ = accumulated
            tokens = sum(
                int((batch["tgt"][:, 1:] != self.train_loss.padding_idx).sum()) for batch in batches
            )
            if self.meter.update(tokens):
                raise Enough


def configuration(job: worker.Job) -> dict[str, Any]:
    size = job["model"]
    data = Path(job["data"])
    dropout = [size["dropout"]]
    return {
        "src_vocab": str(data / "vocabulary.source"),
        "tgt_vocab": str(data / "vocabulary.target"),
        "vocab_size_multiple": 1,
        "data": {
            "corpus_1": {
                "path_src": str(data / "train.source"),
                "path_tgt": str(data / "train.target"),
            }
        },
        "report_every": 1_000_000,
        "seed": 1,
        "model": _model(size),
        "training": {
            "world_size": 0,
            "gpu_ranks": [],
            "compute_dtype": "fp32",
            "num_workers": 0,
            "bucket_size": size["batch_sentences"],
            "batch_type": "sents",
            "batch_size": size["batch_sentences"],
            "accum_count": [size["accumulate"]],
            "normalization": "tokens",
            "optim": "adam",
            "adam_beta2": worker.BETAS[1],
            "learning_rate": worker.LEARNING_RATE,
            "max_grad_norm": 1.0,
            "dropout": dropout,
            "attention_dropout": dropout,
            "label_smoothing": size["label_smoothing"],
            "log_attention_entropy": False,
            "param_init_method": "xavier_uniform",
            "train_steps": 1_000_000,
            "save_checkpoint_steps": 0,
            "model_path": str(Path(job["scratch"]) / "eole"),
        },
    }


def _model(size: dict[str, Any]) -> dict[str, Any]:
    return {
        "architecture": "transformer",
        "hidden_size": size["width"],
        "layers": size["layers"],
        "heads": size["heads"],
        "transformer_ff": size["feed_forward"],
        "add_qkvbias": True,
        "add_ffnbias": True,
        "embeddings": {
            "word_vec_size": size["width"],
            "position_encoding": True,
            "position_encoding_type": "SinusoidalInterleaved",
        },
    }


def main() -> None:
    job = worker.job()
    versions = worker.versions("torch", "eole")
    missing = [f"{owner.__name__}.{name}" for owner, name in HOOKS if not hasattr(owner, name)]
    if missing:  # the clock would never be read, or the batches would differ
        names = " and no ".join(missing)
        raise SystemExit(f"Eole {versions['eole']} has no {names}: adapt eole_train.py")
    torch.set_num_threads(job["threads"])
    Measured.meter = worker.Meter(job)
    eole.trainer.Trainer = Measured
    DynamicDatasetIter._should_deduplicate = lambda self, text, seen: True  # True keeps the pair
    with contextlib.suppress(Enough):
        train(TrainConfig(**configuration(job)), device_id=-1)
    Measured.meter.report(Measured.parameters, versions)


if __name__ == "__main__":
    main()
