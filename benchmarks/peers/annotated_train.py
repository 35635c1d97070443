"""The Annotated Transformer's own code, from a checkout given by the user; none of it is included.

Like its collate, this pads every sentence to 72 tokens. Packages that it imports only to draw and
to download are mocked, so that its file can be imported under any version of torch.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import torch
import worker

UNUSED = (
    "altair",
    "GPUtil",
    "pandas",
    "spacy",
    "torchtext",
    "torchtext.data",
    "torchtext.data.functional",
)
PADDED = 72  # `max_padding` of its configuration


def load(path: str) -> ModuleType:
    for name in (*UNUSED, "torchtext.vocab", "torchtext.datasets"):
        # With a spec, since torch looks for some of these by theirs.
        sys.modules[name] = MagicMock(__spec__=ModuleSpec(name, None))
    spec = importlib.util.spec_from_file_location("the_annotated_transformer", path)
    assert spec and spec.loader, f"{path}: not a Python file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def padded(ids: list[int]) -> list[int]:
    ids = [worker.BEGIN, *ids, worker.END]
    return ids + [worker.PAD] * (PADDED - len(ids))


def main() -> None:
    job = worker.job()
    size = job["model"]
    torch.set_num_threads(job["threads"])
    code: Any = load(job["annotated"])
    torch.manual_seed(1)
    model = code.make_model(
        size["source_size"],
        size["target_size"],
        N=size["layers"],
        d_model=size["width"],
        d_ff=size["feed_forward"],
        h=size["heads"],
        dropout=size["dropout"],
    )
    criterion = code.LabelSmoothing(size["target_size"], worker.PAD, size["label_smoothing"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=worker.BETAS, eps=worker.EPSILON)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: code.rate(step, size["width"], 1, 3000)
    )
    loss = code.SimpleLossCompute(model.generator, criterion)
    meter = worker.Meter(job)
    state = code.TrainState()
    model.train()
    for update in worker.updates(job["data"]):
        batches = (
            code.Batch(
                torch.tensor([padded(source) for source, _ in pairs]),
                torch.tensor([padded(target) for _, target in pairs]),
                worker.PAD,
            )
            for pairs in update
        )
        before = int(state.tokens)
        code.run_epoch(
            batches,
            model,
            loss,
            optimizer,
            rate,
            mode="train+log",
            accum_iter=len(update),
            train_state=state,
        )
        if meter.update(int(state.tokens) - before):
            break
    meter.report(sum(p.numel() for p in model.parameters()), worker.versions("torch"))


if __name__ == "__main__":
    main()
