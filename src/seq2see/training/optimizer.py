"""Adam as the paper sets it (section 5.3), and Muon for the matrices inside the network."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn, optim

from seq2see.training.workers import share_out

MOMENTUM = 0.95
# The quintic a·x + b·x³ + c·x⁵ raises small singular values fast; all end up in about [0.7, 1.2].
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
ADAMS_STEP = 0.2  # root mean square of Adam's update, in units of the learning rate
ENDS = ("stem.", "output.")  # layers between pixels or vocabulary entries and features


def optimizer(model: nn.Module, kind: str, workers: int = 1) -> optim.Optimizer:
    """The optimizer named `adam` or `muon`; the schedule sets its learning rate."""
    return Muon(model, workers) if kind == "muon" else adam(model.parameters())


def adam(parameters: Iterable[nn.Parameter]) -> optim.Optimizer:
    """Adam with β₁ = 0.9, β₂ = 0.98, ε = 1e-9, fused into one pass over the weights."""
    return optim.Adam(parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


class Muon(optim.Optimizer):
    """W ← W − rate · 0.2 √max(m, n) · UVᵀ, where UΣVᵀ is W's momentum (Jordan et al., 2024).

    All singular directions of a hidden matrix move equally, however small their gradient. The
    factor matches the size of Adam's updates (Liu et al., 2025), so both share one learning rate.
    A convolution is the matrix from all inputs of its window to its output. Embeddings, first and
    last layer, the condition of a painter, norms and biases stay with Adam.
    """

    def __init__(self, model: nn.Module, workers: int = 1) -> None:
        self.workers = workers
        named = list(model.named_parameters())
        hidden = [weight for name, weight in named if is_hidden(name, weight)]
        self.adam = adam([weight for name, weight in named if not is_hidden(name, weight)])
        super().__init__([{"params": hidden}], {"lr": 0.0})
        # The training loop and the checkpoints expect one list of groups and one state.
        self.param_groups += self.adam.param_groups
        self.adam.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all weights."""
        assert closure is None, "gradients must be computed before the step"
        self.adam.step()
        group = self.param_groups[0]
        moved = [weight for weight in group["params"] if weight.grad is not None]
        momenta = [self._momentum(weight).flatten(1) for weight in moved]
        # A single matrix fits in the cache: half the time of a stack of all of the same shape.
        directions = share_out(_orthogonal_either_way, momenta, self.workers)
        for weight, direction in zip(moved, directions, strict=True):
            rate = group["lr"] * ADAMS_STEP * max(direction.shape) ** 0.5
            weight.sub_(direction.view(weight.shape), alpha=rate)

    def _momentum(self, weight: Tensor) -> Tensor:
        """Nesterov momentum: the running mean, one gradient ahead."""
        assert weight.grad is not None
        mean = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
        mean.lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(mean, MOMENTUM)


def is_hidden(name: str, weight: Tensor) -> bool:
    """Whether a weight is a matrix or a convolution between features.

    One with a row per vocabulary entry, or with pixels on one side, is not, nor is one that is
    applied to the condition of a painter: wide, but with one row of input per picture.
    """
    if name.startswith(ENDS) or any(word in name for word in ("embedding", "condition", "gate")):
        return False
    return weight.dim() in (2, 4)


def _orthogonal_either_way(matrix: Tensor) -> Tensor:
    """Make a wide or a tall matrix orthogonal."""
    if matrix.shape[0] <= matrix.shape[1]:
        return orthogonal(matrix)
    return orthogonal(matrix.T).T.contiguous()


def orthogonal(matrix: Tensor) -> Tensor:
    """Approximate UVᵀ of a matrix UΣVᵀ (m, n), m ≤ n, by Newton–Schulz steps.

    A step is X ← Q X with Q = a + b·G + c·G² and G = X Xᵀ. Q and G commute, so G ← Q G Q. The steps
    thus multiply m × m matrices only, and X takes part in the first and the last product.
    """
    a, b, c = COEFFICIENTS
    x = matrix / (matrix.norm() + 1e-7)  # singular values are at most one
    square = x @ x.T  # (m, m)
    steps = torch.eye(len(x), dtype=x.dtype, device=x.device)
    for _ in range(ITERATIONS):
        step = torch.addmm(square, square, square, beta=b, alpha=c)
        step.diagonal().add_(a)
        steps = step @ steps
        square = step @ square @ step
    return steps @ x  # type: ignore[no-any-return]
