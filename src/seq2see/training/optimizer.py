"""Adam as the paper sets it (section 5.3)."""

from torch import nn, optim


def adam(model: nn.Module) -> optim.Optimizer:
    """β₁ = 0.9, β₂ = 0.98, ε = 1e-9; one fused pass over the weights. The schedule sets the rate."""
    return optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
