"""Label smoothing (section 5.4), fused: the smoothed target distribution is never written out.

Shapes: N real target tokens, D model width, V classes.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2see.text.vocab import PAD

ALIGNED = 16  # numbers: rows of logits that begin at full cache lines are computed in two thirds of the time


class Smoothed(NamedTuple):
    """The target distribution q: so much on the target, on padding, and on every other class; 1 in all."""

    target: float
    pad: float
    other: float

    @classmethod
    def of(cls, classes: int, epsilon: float, over: str) -> "Smoothed":
        """Either published form, see `smoothed_loss`."""
        if over == "all":
            return cls(1 - epsilon + epsilon / classes, epsilon / classes, epsilon / classes)
        return cls(1 - epsilon, 0.0, epsilon / (classes - 2))

    def entropy(self, classes: int) -> float:
        counted = zip(self, (1, 1, classes - 2), strict=True)
        return -sum(count * each * math.log(each) for each, count in counted if each)

    def cross_entropy(
        self, rows: Tensor, classes: int, target: Tensor, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """−Σ q log p summed over all rows of logits, and p; beyond `classes` a row is closed (−∞).

        log p = logits − log Σ exp(logits), and the sum is known from the likeliest class, whose p is never too small:
        so one exponential serves the loss and, as p, its gradient.
        """
        logits = rows[:, :classes]
        at_target, at_pad = logits.gather(1, target[:, None])[:, 0], logits[:, PAD]
        mean = (
            self.target * at_target
            + self.pad * at_pad
            + self.other * (logits.sum(1) - at_target - at_pad)
        )
        likeliest = rows.amax(1)
        p = torch.softmax(rows, 1, out=out)
        return (likeliest - p.amax(1).log() - mean).sum(), p

    def slope(self, p_less_other: Tensor, target: Tensor) -> Tensor:
        """p − q, the gradient of the logits, as q sums to one; in the place of p less the share of other classes."""
        p_less_other[:, PAD] += self.other - self.pad
        at_target = p_less_other.new_full((len(target), 1), self.other - self.target)
        return p_less_other.scatter_add_(1, target[:, None], at_target)


class _OfLogits(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Tensor, target: Tensor, q: Smoothed) -> Tensor:
        loss, p = q.cross_entropy(logits, logits.shape[1], target)
        context.save_for_backward(p, target)
        context.q = q
        return loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        p, target = context.saved_tensors
        return context.q.slope(p.sub(context.q.other), target).mul_(gradients[0]), None, None


class _OfStates(torch.autograd.Function):
    """The logits are made here and nobody else sees them: p and then the gradient take their place in memory."""

    @staticmethod
    def forward(
        context: Any, x: Tensor, weight: Tensor, bias: Tensor, target: Tensor, q: Smoothed
    ) -> Tensor:
        classes = len(weight)
        rows = x.new_empty(
            len(x), math.ceil(classes / ALIGNED) * ALIGNED
        )  # (N, V and a little more)
        torch.addmm(bias, x, weight.T, out=rows[:, :classes])
        rows[:, classes:] = float("-inf")
        loss, p = q.cross_entropy(rows, classes, target, out=rows)
        context.save_for_backward(p, x, weight, target)
        context.q = q
        return loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        p, x, weight, target = (
            context.saved_tensors
        )  # once: PyTorch refuses a second time, since p is changed now
        slope = context.q.slope(p.sub_(context.q.other), target).mul_(gradients[0])[
            :, : len(weight)
        ]
        return slope @ weight, slope.T @ x, slope.sum(0), None, None


def smoothed_loss(
    logits: Tensor, target: Tensor, epsilon: float = 0.1, over: str = "all"
) -> Tensor:
    """Sum over real tokens of the loss against the smoothed target q, in either published form.

    logits (B, T, V), target (B, T). `all`: cross-entropy, with ε/V on every class and 1−ε more on the target, as in
    the paper's reference. `others`: divergence Σ q (log q − log p), with 1−ε on the target and ε/(V−2) on all but
    target and padding, as in The Annotated Transformer: less than its cross-entropy by the constant entropy of q.
    """
    classes = logits.shape[-1]
    q = Smoothed.of(classes, epsilon, over)
    real = (target != PAD).flatten().nonzero()[:, 0]
    rows, target = logits.flatten(0, -2), target.flatten().index_select(0, real)
    if len(real) < len(rows):
        rows = rows.index_select(0, real)
    loss: Tensor = _OfLogits.apply(rows, target, q)  # type: ignore[no-untyped-call]
    return loss - len(real) * q.entropy(classes) if over == "others" else loss


def smoothed_loss_of(
    states: Tensor, output: nn.Linear, target: Tensor, epsilon: float = 0.1, over: str = "all"
) -> Tensor:
    """smoothed_loss(output(states), target, …) for states (N, D) and real targets (N,), in less time and memory."""
    q = Smoothed.of(output.out_features, epsilon, over)
    loss: Tensor = _OfStates.apply(states, output.weight, output.bias, target, q)  # type: ignore[no-untyped-call]
    return loss - len(target) * q.entropy(output.out_features) if over == "others" else loss
