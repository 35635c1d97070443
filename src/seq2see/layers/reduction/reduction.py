"""Map from the tokens before a merging or pruning step to the places after it, and its inverse.

Shapes: B batch, S tokens before, P places after. Masks are bool (B, S): `real` is False at padding,
`protected` is True at tokens that must stay as they are (class, begin, end).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Maybe = Tensor | None


@dataclass(frozen=True)
class Reduction:
    """Assignment of S tokens to P places, which keep the tokens' order and leave no gaps."""

    source: Tensor  # (B, S) the place of each token; −1 for padding and for pruned tokens
    share: Tensor  # (B, S) the token's weight in the mean of its place; sums to 1 per place
    sizes: Tensor  # (B, P) the number of original tokens that a place stands for; 0 at padding
    real: Tensor  # (B, P) bool, False at padding
    unchanged: bool = False  # no sentence lost a token: tensors pass through, padding included

    def merge(self, x: Tensor) -> Tensor:
        """Size-weighted mean Σ s_i x_i / Σ s_i of each place (section 3): (B, S, …) → (B, P, …)."""
        _check_leading_axes("x", x, self.source)
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}; a mean needs floating point")
        if self.unchanged:
            return x
        if bool((self.share == (self.source >= 0)).all()):  # one token per place: no mean to take
            return self.sum(x)
        share = self.share.to(x.dtype).view(*self.share.shape, *(1,) * (x.dim() - 2))
        return self.sum(x * share)

    def sum(self, x: Tensor) -> Tensor:
        """Σ x_i over the tokens i of each place: (B, S, …) → (B, P, …), zeros at padding."""
        _check_leading_axes("x", x, self.source)
        if self.unchanged:
            return x
        batch, places = self.real.shape
        # One extra row collects the tokens without a place, so that NaN in the padding stays there.
        row = torch.where(self.source < 0, batch * places, self._rows()).flatten()  # (B S)
        flat = x.reshape(len(row), -1)
        total = flat.new_zeros(batch * places + 1, flat.shape[1])
        total.scatter_add_(0, row[:, None].expand_as(flat), flat)
        return total[:-1].view(batch, places, *x.shape[2:])

    def any(self, mask: Tensor) -> Tensor:
        """Places that hold a token of `mask` (B, S) → (B, P), e.g. to pass on `protected`."""
        check_mask("mask", mask, self.source)
        return mask if self.unchanged else self.sum(mask.int()) > 0

    def unmerge(self, y: Tensor) -> Tensor:
        """Copy each place to its tokens: (B, P, …) → (B, S, …), zeros for tokens without one."""
        _check_leading_axes("y", y, self.real)
        if self.unchanged:
            return y
        # An embedding lookup is the fastest gather of rows, forward and backward.
        copies = functional.embedding(self._rows(), y.reshape(self.real.numel(), -1))
        copies = copies.masked_fill((self.source < 0)[..., None], 0)
        return copies.view(*self.source.shape, *y.shape[2:])

    def spread(self, weights: Tensor) -> Tensor:
        """Divide attention to places (B, …, P) among their tokens (B, …, S) by share.

        The sum of each row stays the same.
        """
        batch, places = self.real.shape
        if weights.dim() < 2 or (len(weights), weights.shape[-1]) != (batch, places):
            shape = tuple(weights.shape)
            raise ValueError(f"weights has shape {shape}; it must be ({batch}, ..., {places})")
        if self.unchanged:
            return weights
        aligned = (batch, *(1,) * (weights.dim() - 2), self.source.shape[1])  # (B, …, S)
        source = self.source.clamp(min=0).view(aligned)
        share = self.share.view(aligned)
        picked = weights.gather(-1, source.expand(*weights.shape[:-1], -1))
        return (picked * share.to(weights.dtype)).masked_fill(share == 0, 0.0)

    def on_tokens(self, weights: Tensor, queries: bool) -> Tensor:
        """Spread attention weights (B, H, T, P) over the tokens of the keys and, if asked, queries.

        Queries that were merged share a row.
        """
        weights = self.spread(weights)  # (B, H, T, S)
        if not queries:
            return weights
        return self.unmerge(weights.transpose(1, 2).contiguous()).transpose(1, 2)

    def then(self, later: "Reduction") -> "Reduction":
        """Compose with the reduction of a later layer: one map from first tokens to last places."""
        if later.source.shape != self.real.shape:
            left, taken = tuple(self.real.shape), tuple(later.source.shape)
            raise ValueError(f"the later reduction takes {taken} tokens; the first leaves {left}")
        place = self.source.clamp(min=0)
        source = later.source.gather(1, place).masked_fill(self.source < 0, -1)
        share = self.share * later.share.gather(1, place).to(self.share.dtype)
        return Reduction(source, share, later.sizes, later.real, self.unchanged and later.unchanged)

    def _rows(self) -> Tensor:
        """Each token's place (B, S) as a row of (B · P, …); the sentence's first if it has none."""
        batch, places = self.real.shape
        first = torch.arange(0, batch * places, max(1, places), device=self.source.device)[:, None]
        return self.source.clamp(min=0) + first


@torch.no_grad()
def compact(target: Tensor, stays: Tensor, real: Tensor, sizes: Tensor) -> Reduction:
    """Close the gaps between the tokens that stay; each token joins the one at its `target`.

    All are (B, S). A token whose target does not stay loses its place.
    """
    if torch.equal(stays, real):
        source = own_places(real).masked_fill(~real, -1)
        return Reduction(source, real.to(sizes.dtype), sizes, real, unchanged=True)
    counts = stays.sum(1, keepdim=True)
    places = int(counts.max())
    placed = real & stays.gather(1, target)
    source = (stays.cumsum(1) - 1).gather(1, target).masked_fill(~placed, -1)
    column = torch.where(source < 0, places, source)
    total = sizes.new_zeros(len(sizes), places + 1).scatter_add(1, column, sizes)  # (B, P + 1)
    share = (sizes / total.gather(1, column)).masked_fill(source < 0, 0.0)
    real_places = torch.arange(places, device=real.device) < counts
    return Reduction(source, share, total[:, :places], real_places)


def own_places(tokens: Tensor) -> Tensor:
    """The index of each token within its sentence (B, S)."""
    return torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)


def check_tokens(
    x: Tensor, real: Maybe, protected: Maybe, sizes: Maybe = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Check the masks and sizes of x (B, S, …); return real tokens, free tokens, sizes (B, S).

    A token is free if it is real and not protected.
    """
    if not x.is_floating_point():
        raise TypeError(f"keys or scores have dtype {x.dtype}; they must be floating point")
    for name, mask in (("real", real), ("protected", protected)):
        if mask is not None:
            check_mask(name, mask, x)
    if real is None:
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if sizes is None:
        sizes = real.to(x.dtype)
    elif sizes.shape != real.shape or not bool(((sizes > 0) | ~real).all()):
        value = f"sizes has shape {tuple(sizes.shape)} and minimum {float(sizes.min()):g}"
        raise ValueError(f"{value}; it must be {tuple(real.shape)} and above 0 at real tokens")
    free = real if protected is None else real & ~protected
    return real, free, sizes.masked_fill(~real, 0)


def check_mask(name: str, mask: Tensor, tokens: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"{name} has dtype {mask.dtype}; it must be bool")
    shape = tuple(tokens.shape[:2])
    if mask.shape != shape:
        raise ValueError(f"{name} has shape {tuple(mask.shape)}; it must be {shape}")


def _check_leading_axes(name: str, x: Tensor, tokens: Tensor) -> None:
    if x.shape[:2] != tokens.shape:
        batch, length = tokens.shape
        raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be ({batch}, {length}, ...)")
