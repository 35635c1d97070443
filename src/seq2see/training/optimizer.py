"""Adam as the paper sets it (section 5.3), and Muon for the matrices inside the network."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn, optim

MOMENTUM = 0.95
# A quintic a·x + b·x³ + c·x⁵ that lifts small singular values fast and keeps all between about 0.7 and 1.2.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
ADAMS_STEP = 0.2  # the root mean square of Adam's update, in units of the learning rate


def optimizer(model: nn.Module, kind: str) -> optim.Optimizer:
    """`adam` or `muon`; the schedule sets the rate."""
    return Muon(model) if kind == "muon" else adam(model.parameters())


def adam(parameters: Iterable[nn.Parameter]) -> optim.Optimizer:
    """β₁ = 0.9, β₂ = 0.98, ε = 1e-9; one fused pass over the weights."""
    return optim.Adam(parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


class Muon(optim.Optimizer):
    """W ← W − rate · 0.2 √max(m, n) · UVᵀ, where UΣVᵀ is the momentum of W's gradient (Jordan et al., 2024).

    Every direction of a hidden matrix moves alike, however small its share of the gradient. The factor gives an update
    the size of Adam's (Liu et al., 2025), so one learning rate serves both: embeddings, output, norms and biases,
    where directions are not alike, stay with Adam.
    """

    def __init__(self, model: nn.Module) -> None:
        named = list(model.named_parameters())
        hidden = [weight for name, weight in named if is_hidden(name, weight)]
        self.adam = adam([weight for name, weight in named if not is_hidden(name, weight)])
        super().__init__([{"params": hidden}], {"lr": 0.0})
        # One list of groups and one state, as the loop and its checkpoints expect of an optimizer.
        self.param_groups += self.adam.param_groups
        self.adam.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all weights."""
        assert closure is None, "the gradient is there already"
        self.adam.step()
        group = self.param_groups[0]
        # One matrix after the other: it stays in the cache, which a stack of all of a shape leaves (half the time).
        for weight in group["params"]:
            if weight.grad is not None:
                direction = orthogonal(_wide(self._momentum(weight)))
                _wide(weight).sub_(
                    direction, alpha=group["lr"] * ADAMS_STEP * max(weight.shape) ** 0.5
                )

    def _momentum(self, weight: Tensor) -> Tensor:
        """Nesterov's: the running mean, looked up one gradient ahead."""
        assert weight.grad is not None
        mean = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
        mean.lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(mean, MOMENTUM)


def is_hidden(name: str, weight: Tensor) -> bool:
    """A matrix from features to features, not one with a row for every word."""
    return weight.dim() == 2 and "embedding" not in name and not name.startswith("output.")


def _wide(matrix: Tensor) -> Tensor:
    return matrix.T if matrix.shape[0] > matrix.shape[1] else matrix


def orthogonal(matrix: Tensor) -> Tensor:
    """UΣVᵀ → about UVᵀ for (m ≤ n), by Newton–Schulz steps: products alone, in the precision given.

    A step is X ← Q X with Q = a + b·G + c·G², where G = X Xᵀ and Q commute. So G ← Q G Q without X, and all steps
    together are one m × m matrix: X itself is needed at both ends only.
    """
    a, b, c = COEFFICIENTS
    x = matrix / (matrix.norm() + 1e-7)  # no singular value above one
    square = x @ x.T  # (m, m)
    steps = torch.eye(len(x), dtype=x.dtype, device=x.device)
    for _ in range(ITERATIONS):
        step = torch.addmm(square, square, square, beta=b, alpha=c)
        step.diagonal().add_(a)
        steps, square = step @ steps, step @ square @ step
    return steps @ x  # type: ignore[no-any-return]
