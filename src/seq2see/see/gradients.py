"""Attribution by the gradients of log p with respect to the source embeddings.

Shapes: N rows, S source tokens with </s>, T target tokens with </s>, D model width.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seq2see.batches import Ids
from seq2see.see.erasure import batch_of, log_p, passes
from seq2see.text.specials import END

STEPS = 32  # points of the path of integrated gradients


class Given(nn.Module):
    """Embedding that returns the given vectors (N, S, D), whatever the ids."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = vectors

    def forward(self, ids: Tensor) -> Tensor:
        return self.vectors


def gradient_times_input(model: Any, source: Ids, target: Ids) -> Tensor:
    """Σ_d e · ∂ log p / ∂e for the embedding e of each source token: (T, S)."""
    return _along(model, source, target, [(1.0, 1.0)])


def integrated_gradients(model: Any, source: Ids, target: Ids, steps: int = STEPS) -> Tensor:
    """Σ_d e · ∫ ∂ log p(α e) / ∂e dα, for α from 0 to 1: (T, S) (Sundararajan et al., 2017).

    Each row sums to log p given the source less log p given embeddings of zero (completeness), up
    to the error of Gauss and Legendre's quadrature.
    """
    points, weights = np.polynomial.legendre.leggauss(steps)  # on [−1, 1]
    path = zip(((points + 1) / 2).tolist(), (weights / 2).tolist(), strict=True)
    return _along(model, source, target, list(path))


def log_p_of_scaled(model: Any, source: Ids, target: Ids, scale: float) -> Tensor:
    """Compute log p of each target token (T), with the source embeddings multiplied by `scale`."""
    ids = torch.tensor([[*source, END]])
    batch = batch_of(model, ids, target)
    with torch.no_grad():
        vectors = model.source_embedding(batch.source) * scale
        return log_p(_reading(model, vectors), batch).squeeze(0)


def _along(model: Any, source: Ids, target: Ids, path: list[tuple[float, float]]) -> Tensor:
    """Weight the gradients at scaled embeddings, and multiply them with the embeddings."""
    # Not even a caller's inference mode may keep gradients from being computed.
    with torch.inference_mode(False), torch.enable_grad():
        ids = torch.tensor([[*source, END]])
        targets = len(target) + 1
        batch = batch_of(model, ids.expand(targets, -1), target)  # a row for each target token
        embedded: Tensor = model.source_embedding(batch.source[:1]).detach()  # (1, S, D)
        total = embedded.new_zeros(targets, *embedded.shape[1:])  # (T, S, D)
        for scale, weight in path:
            for rows in passes(targets, ids.shape[1] + targets):
                total[rows] += weight * _gradient(model, batch, rows, embedded * scale)
        return (total * embedded).sum(-1)


def _gradient(model: Any, batch: Any, rows: slice, vectors: Tensor) -> Tensor:
    """Differentiate log p of the t-th target token in the t-th row by vectors (1, S, D)."""
    part = batch_of(model, batch.source[rows], batch.target_out[0, :-1].tolist())
    own = vectors.repeat(len(part.source), 1, 1).requires_grad_()
    log_ps = log_p(_reading(model, own), part)
    chosen = log_ps.diagonal(rows.start).sum()
    (gradient,) = torch.autograd.grad(chosen, own)
    return gradient


def _reading(model: Any, vectors: Tensor) -> Any:
    """Copy a model, sharing its weights, that reads these source embeddings."""
    copied = copy.copy(model)
    copied._modules = {**model._modules, "source_embedding": Given(vectors)}
    return copied
