"""Padded training loop of torch.nn.Transformer and Hugging Face's model, after their docs."""

from collections.abc import Callable

import torch
import worker
from torch import Tensor, nn

Logits = Callable[[Tensor, Tensor], Tensor]  # source (B, S), target so far (B, T) → (B, T, V)


def pad(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [worker.PAD] * (longest - len(row)) for row in rows])


def train(job: worker.Job, model: nn.Module, logits: Logits, versions: dict[str, str]) -> None:
    """Train with fused Adam and loss, label smoothing, accumulated and clipped gradients."""
    criterion = nn.CrossEntropyLoss(
        ignore_index=worker.PAD, label_smoothing=job["model"]["label_smoothing"], reduction="sum"
    )
    optimizer = torch.optim.Adam(
        model.parameters(),
        lr=worker.LEARNING_RATE,
        betas=worker.BETAS,
        eps=worker.EPSILON,
        fused=True,
    )
    meter = worker.Meter(job)
    model.train()
    for update in worker.updates(job["data"]):
        tokens = 0
        expected = worker.target_tokens(update)
        for pairs in update:
            source = pad([[*source, worker.END] for source, _ in pairs])
            target_in = pad([[worker.BEGIN, *target] for _, target in pairs])
            target_out = pad([[*target, worker.END] for _, target in pairs])
            tokens += int((target_out != worker.PAD).sum())
            loss = criterion(logits(source, target_in).flatten(0, 1), target_out.flatten())
            (loss / expected).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if meter.update(tokens):
            break
    meter.report(
        sum(p.numel() for p in model.parameters()),
        versions,
        last_loss=float(loss.detach()) / tokens,
    )
