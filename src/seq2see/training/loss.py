"""Label smoothing (section 5.4), fused: the smoothed target distribution is never materialised.

Shapes: N real target tokens, D model width, V classes.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.text.specials import PAD

ALIGNED = 16  # numbers: logits whose rows start at full cache lines take two thirds of the time


class Smoothed(NamedTuple):
    """The target distribution q: probability of the target, of padding, of any other class."""

    target: float
    pad: float
    other: float

    @classmethod
    def of(cls, classes: int, epsilon: float, over: str) -> "Smoothed":
        """Either published form; see `smoothed_loss`."""
        if over == "all":
            return cls(1 - epsilon + epsilon / classes, epsilon / classes, epsilon / classes)
        return cls(1 - epsilon, 0.0, epsilon / (classes - 2))

    def entropy(self, classes: int) -> float:
        """−Σ q log q over all classes."""
        counts = (1, 1, classes - 2)
        return -sum(count * q * math.log(q) for q, count in zip(self, counts, strict=True) if q)

    def cross_entropy(
        self, rows: Tensor, classes: int, target: Tensor, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return −Σ q log p, summed over rows of logits, and p; columns from `classes` on are −∞.

        The likeliest class gives log Σ exp(logits) = logit − log p without underflow, so that one
        exponential serves the loss and, as p, its gradient.
        """
        logits = rows[:, :classes]
        at_target = logits.gather(1, target[:, None])[:, 0]
        at_pad = logits[:, PAD]
        others = logits.sum(1) - at_target - at_pad
        mean = self.target * at_target + self.pad * at_pad + self.other * others
        likeliest = rows.amax(1)
        p = torch.softmax(rows, 1, out=out)
        return (likeliest - p.amax(1).log() - mean).sum(), p

    def gradient(self, p_less_other: Tensor, target: Tensor) -> Tensor:
        """p − q, the gradient of the logits, in place of its input p − q(other)."""
        p_less_other[:, PAD] += self.other - self.pad
        at_target = p_less_other.new_full((len(target), 1), self.other - self.target)
        return p_less_other.scatter_add_(1, target[:, None], at_target)


class _LossOfLogits(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Tensor, target: Tensor, q: Smoothed) -> Tensor:
        loss, p = q.cross_entropy(logits, logits.shape[1], target)
        context.save_for_backward(p, target)
        context.q = q
        return loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        p, target = context.saved_tensors
        return context.q.gradient(p.sub(context.q.other), target).mul_(gradients[0]), None, None


class _LossOfStates(torch.autograd.Function):
    """The loss of logits that nothing else uses: p, then the gradient, overwrite them in memory."""

    @staticmethod
    def forward(
        context: Any, x: Tensor, weight: Tensor, bias: Tensor, target: Tensor, q: Smoothed
    ) -> Tensor:
        classes = len(weight)
        rows = x.new_empty(len(x), math.ceil(classes / ALIGNED) * ALIGNED)  # (N, at least V)
        torch.addmm(bias, x, weight.T, out=rows[:, :classes])
        rows[:, classes:] = float("-inf")
        loss, p = q.cross_entropy(rows, classes, target, out=rows)
        context.save_for_backward(p, x, weight, target)
        context.q = q
        return loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # Changes p in place, so PyTorch refuses a second backward pass.
        p, x, weight, target = context.saved_tensors
        gradient = context.q.gradient(p.sub_(context.q.other), target).mul_(gradients[0])
        gradient = gradient[:, : len(weight)]
        return gradient @ weight, gradient.T @ x, gradient.sum(0), None, None


def _precise(x: Tensor) -> Tensor:
    """Leave bfloat16, which has too few digits for sums over a batch."""
    return x.float() if x.dtype == torch.bfloat16 else x


def smoothed_loss(
    logits: Tensor, target: Tensor, epsilon: float = 0.1, over: str = "all"
) -> Tensor:
    """Loss against the smoothed target q, summed over real tokens, in either published form.

    logits (B, T, V), target (B, T). `all` is the cross-entropy with ε/V on every class and another
    1−ε on the target, as in the paper's reference implementation. `others` is the divergence
    Σ q (log q − log p) with 1−ε on the target and ε/(V−2) on all classes but target and padding, as
    in The Annotated Transformer: the cross-entropy minus the constant entropy of q.
    """
    classes = logits.shape[-1]
    q = Smoothed.of(classes, epsilon, over)
    real = (target != PAD).flatten().nonzero()[:, 0]
    rows = _precise(logits.flatten(0, -2))
    target = target.flatten().index_select(0, real)
    if len(real) < len(rows):
        rows = rows.index_select(0, real)
    loss: Tensor = _LossOfLogits.apply(rows, target, q)  # type: ignore[no-untyped-call]
    return loss - len(real) * q.entropy(classes) if over == "others" else loss


def smoothed_loss_of(
    states: Tensor, output: nn.Linear, target: Tensor, epsilon: float = 0.1, over: str = "all"
) -> Tensor:
    """smoothed_loss(output(states), target, …) in less time and memory.

    states (N, D), target (N,) without padding.
    """
    q = Smoothed.of(output.out_features, epsilon, over)
    inputs = (_precise(states), output.weight, output.bias, target, q)
    loss: Tensor = _LossOfStates.apply(*inputs)  # type: ignore[no-untyped-call]
    return loss - len(target) * q.entropy(output.out_features) if over == "others" else loss
