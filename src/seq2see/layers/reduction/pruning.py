"""Token pruning (LTP; Kim et al., 2022): tokens that receive little attention are removed.

Shapes: B batch, H heads, T queries, S tokens. `real` and `protected` are bool (B, S), as in
token merging.
"""

import torch
from torch import Tensor

from seq2see.layers.reduction.reduction import (
    Maybe,
    Reduction,
    check_mask,
    check_tokens,
    compact,
    own_places,
)

FLOOR = 1e-6  # the minimum size of a softly pruned token


def importance(weights: Tensor, real: Maybe = None, queries: Maybe = None) -> Tensor:
    """Mean attention that token j receives: s_j = mean of A_hij over h and real i (section 3.2).

    weights (B, H, T, S) → (B, S), zeros at padding. `queries` (B, T) is a mask of the queries that
    count, or their weights; in self-attention it defaults to `real`.
    """
    if weights.dim() != 4:
        rule = "it must be (batch, heads, queries, tokens)"
        raise ValueError(f"weights has shape {tuple(weights.shape)}; {rule}")
    if real is not None:
        _, _, targets, length = weights.shape
        check_mask("real", real, weights[:, 0].transpose(1, 2))
        if queries is None and targets != length:
            counts = f"there are {targets} queries for {length} tokens"
            raise ValueError(f"{counts}; queries must be given")
        queries = real if queries is None else queries
    if queries is None:
        return weights.mean((1, 2))
    check_mask("queries", queries > 0, weights[:, 0])
    if bool((queries == 0).any()):  # 0 times NaN is NaN
        weights = weights.masked_fill((queries == 0)[:, None, :, None], 0.0)
    total = queries.sum(1, keepdim=True).to(weights.dtype)
    scores = received(weights, queries) / total.clamp(min=FLOOR)  # 0 in a sentence of padding
    return scores if real is None else scores.masked_fill(~real, 0.0)


def received(weights: Tensor, queries: Tensor) -> Tensor:
    """Attention that token j receives: Σ_i n_i A_hij, averaged over heads h; query i counts n_i.

    weights (B, H, T, S), queries (B, T) → (B, S). In self-attention an even share is 1 at any
    length, so one threshold suits short and long sentences.
    """
    heads = weights.shape[1]
    if bool((queries == 1).all()):
        return weights.sum((1, 2)) / heads
    counts = queries.to(weights.dtype).repeat(1, heads)[:, None]  # (B, 1, H T)
    return (counts @ weights.flatten(1, 2)).squeeze(1) / heads


def soft_mask(
    scores: Tensor,
    threshold: Tensor | float,
    temperature: float,
    *,
    real: Maybe = None,
    protected: Maybe = None,
) -> Tensor:
    """σ((s − θ) / T), the weight of each token while θ is learned (section 3.3).

    It is 1 at protected tokens and 0 at padding, whatever their scores.
    """
    _check_scores(scores, threshold)
    if not temperature > 0:
        raise ValueError(f"temperature ({temperature}) must be above 0")
    real, free, _ = check_tokens(scores, real, protected)
    # The scores are masked too, or a NaN in the padding would reach the gradient of θ.
    mask = ((scores.masked_fill(~free, 0.0) - threshold) / temperature).sigmoid()
    return mask.masked_fill(real & ~free, 1.0).masked_fill(~real, 0.0)  # (B, S)


def prune_softly(
    scores: Tensor,
    threshold: Tensor | float,
    temperature: float,
    *,
    real: Maybe = None,
    protected: Maybe = None,
    sizes: Maybe = None,
) -> Reduction:
    """Multiply token sizes by σ((s − θ) / T) and remove none; `prune_below` in the limit T → 0."""
    mask = soft_mask(scores, threshold, temperature, real=real, protected=protected)
    real, _, sizes = check_tokens(scores, real, protected, sizes)
    # Attention adds log size, so no size may be 0.
    return _keep(real, real, (sizes * mask).clamp(min=FLOOR).masked_fill(~real, 0.0))


def kept_share(mask: Tensor, real: Maybe = None) -> Tensor:
    """Σ mask / number of real tokens: the penalty while thresholds are learned (section 3.3)."""
    real, _, _ = check_tokens(mask, real, None)
    return mask.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)  # ()


@torch.no_grad()
def prune_below(
    scores: Tensor,
    threshold: Tensor | float,
    *,
    real: Maybe = None,
    protected: Maybe = None,
    sizes: Maybe = None,
) -> Reduction:
    """Remove the tokens with s < θ (section 3.2), but never the last one of a sentence."""
    _check_scores(scores, threshold)
    real, free, sizes = check_tokens(scores, real, protected, sizes)
    best = _priority(scores, real, free).argmax(1, keepdim=True)  # (B, 1)
    stays = (~free | (scores >= threshold)).scatter(1, best, True) & real
    return _keep(stays, real, sizes)


@torch.no_grad()
def prune_to(
    scores: Tensor,
    top: Tensor | int,
    *,
    real: Maybe = None,
    protected: Maybe = None,
    sizes: Maybe = None,
) -> Reduction:
    """Keep the `top` tokens of each sentence, one number or one per sentence (B).

    Protected tokens come first, and stay even if there are more of them.
    """
    _check_scores(scores, 0.0)
    count = torch.as_tensor(top, device=scores.device)
    shaped = count.shape in ((), scores.shape[:1])
    if count.is_floating_point() or not shaped or bool((count < 1).any()):
        rule = f"must be a whole number of at least 1, or one for each of {len(scores)} sentences"
        raise ValueError(f"top ({count.tolist()}) {rule}")
    real, free, sizes = check_tokens(scores, real, protected, sizes)
    stays = real & (~free | (_ranks(scores, real, free) < count.view(-1, 1)))
    return _keep(stays, real, sizes)


def _ranks(scores: Tensor, real: Tensor, free: Tensor) -> Tensor:
    """Rank of each token in its sentence (B, S), from 0 for the most important."""
    order = _priority(scores, real, free).argsort(dim=1, descending=True, stable=True)
    return order.argsort(dim=1)


def _priority(scores: Tensor, real: Tensor, free: Tensor) -> Tensor:
    """The scores (B, S) with protected tokens before all others, and padding last."""
    return scores.masked_fill(~free, float("inf")).masked_fill(~real, float("-inf"))


def _keep(stays: Tensor, real: Tensor, sizes: Tensor) -> Reduction:
    return compact(own_places(real), stays, real, sizes)


def _check_scores(scores: Tensor, threshold: Tensor | float) -> None:
    if scores.dim() != 2:
        raise ValueError(f"scores has shape {tuple(scores.shape)}; it must be (batch, length)")
    if isinstance(threshold, Tensor) and threshold.numel() != 1:
        raise ValueError(f"threshold has shape {tuple(threshold.shape)}; it must be one number")
