"""Label smoothing (section 5.4), fused: the smoothed target distribution is never written out."""

import math
from typing import Any

import torch
from torch import Tensor

from seq2see.text.vocab import PAD


class _SmoothedCrossEntropy(torch.autograd.Function):
    """−Σ_v q(v) log p(v) per row, where q is `confidence` on the target and `share` on every other class but pad.

    Both published forms are of this kind. As q sums to one, the gradient is p − q.
    """

    @staticmethod
    def forward(
        context: Any, logits: Tensor, target: Tensor, confidence: float, share: float, pad_share: float
    ) -> Tensor:
        log_p = logits.log_softmax(-1)  # (N, V)
        context.save_for_backward(log_p, target)
        context.weights = (confidence, share, pad_share)
        at_target, at_pad = log_p.gather(-1, target[:, None])[:, 0], log_p[:, PAD]
        return -confidence * at_target - share * (log_p.sum(-1) - at_target - at_pad) - pad_share * at_pad

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        log_p, target = context.saved_tensors
        confidence, share, pad_share = context.weights
        gradient = log_p.exp().sub_(share)  # (N, V)
        gradient[:, PAD] += share - pad_share
        at_target = gradient.new_full((len(target), 1), share - confidence)
        gradient.scatter_add_(-1, target[:, None], at_target)
        return gradient.mul_(gradients[0][:, None]), None, None, None, None


def smoothed_loss(logits: Tensor, target: Tensor, epsilon: float = 0.1, over: str = "all") -> Tensor:
    """Sum over real tokens of the loss against the smoothed target q, in either published form.

    logits (B, T, V), target (B, T). `all`: cross-entropy, with ε/V on every class and 1−ε more on the target, as in
    the paper's reference. `others`: divergence Σ q (log q − log p), with 1−ε on the target and ε/(V−2) on all but
    target and padding, as in The Annotated Transformer: less than its cross-entropy by the constant entropy of q.
    """
    classes = logits.shape[-1]
    real = (target != PAD).flatten().nonzero()[:, 0]
    rows = logits.flatten(0, -2)
    if len(real) < len(rows):
        rows = rows.index_select(0, real)
    entropy = 0.0
    if over == "all":
        share = pad_share = epsilon / classes
        confidence = 1 - epsilon + share
    else:
        share, pad_share, confidence = epsilon / (classes - 2), 0.0, 1 - epsilon
        entropy = -sum(mass * math.log(each) for mass, each in ((confidence, confidence), (epsilon, share)) if each)
    losses = _SmoothedCrossEntropy.apply(rows, target.flatten().index_select(0, real), confidence, share, pad_share)  # type: ignore[no-untyped-call]
    return losses.sum() - entropy * len(real)  # type: ignore[no-any-return]
