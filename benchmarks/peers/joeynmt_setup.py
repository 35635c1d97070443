"""Joey NMT's configuration for the given model and data, after its documentation."""

from pathlib import Path
from typing import Any

import worker

Tokens = dict[str, Any]  # configuration of one side: language, vocabulary, tokenizer


def configuration(
    job: worker.Job, source: Tokens, target: Tokens, data: dict[str, str]
) -> dict[str, Any]:
    """Return a pre-norm configuration, like seq2see's; `data` names the splits."""
    size = job["model"]
    folder = Path(job["scratch"]) / "joeynmt"
    folder.mkdir(parents=True, exist_ok=True)
    stack = {
        "type": "transformer",
        "num_layers": size["layers"],
        "num_heads": size["heads"],
        "embeddings": {"embedding_dim": size["width"], "scale": True, "dropout": size["dropout"]},
        "hidden_size": size["width"],
        "ff_size": size["feed_forward"],
        "dropout": size["dropout"],
        "layer_norm": "pre",
    }
    return {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "num_workers": 0,  # data loaders would take a core from training
        "data": {"dataset_type": "plain", "src": source, "trg": target, **data},
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": False,
            "tied_softmax": False,
            "encoder": stack,
            "decoder": dict(stack),
        },
        "training": _training(job),
        "testing": {"batch_size": 64, "batch_type": "sentence"},
    }


def _training(job: worker.Job) -> dict[str, Any]:
    size = job["model"]
    return {
        "optimizer": "adam",
        "adam_betas": list(worker.BETAS),
        "learning_rate": worker.LEARNING_RATE,
        "learning_rate_min": 1e-12,
        "scheduling": "warmupinversesquareroot",
        "learning_rate_warmup": 3000,
        "normalization": "tokens",
        "label_smoothing": size["label_smoothing"],
        "clip_grad_norm": 1.0,
        "loss": "crossentropy",
        "batch_type": "sentence",
        "batch_size": size["batch_sentences"],
        "batch_multiplier": size["accumulate"],
        "shuffle": job.get("batches") == "own",  # the file has the order of the shared batches
        "epochs": 2,
        "logging_freq": 1,
        "validation_freq": 1_000_000,
    }
