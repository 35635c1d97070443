"""Fewer tokens for the layers that follow: token pruning (LTP; Kim et al., 2022) removes those nobody looks at.

Shapes: B batch, H heads, T queries, S tokens. `real` and `protected` are bool (B, S), as in token merging.
"""

import torch
from torch import Tensor

from seq2see.layers.reduction.merging import (
    Maybe,
    Reduction,
    check_mask,
    check_tokens,
    own_places,
    pack,
)

FLOOR = 1e-6  # the least that a softly pruned token counts for


def importance(weights: Tensor, real: Maybe = None, queries: Maybe = None) -> Tensor:
    """s_j = mean of A_hij over the heads h and the real queries i: the attention that token j receives (section 3.2).

    weights (B, H, T, S) → (B, S), zeros at padding. `queries` (B, T) says which count, or how much each does; of a
    sequence that looks at itself they are `real`.
    """
    if weights.dim() != 4:
        raise ValueError(
            f"weights has shape {tuple(weights.shape)}; it must be (batch, heads, queries, tokens)"
        )
    if real is not None:
        _, _, targets, length = weights.shape
        check_mask("real", real, weights[:, 0].transpose(1, 2))
        if queries is None and targets != length:
            raise ValueError(
                f"there are {targets} queries for {length} tokens; queries must be given"
            )
        queries = real if queries is None else queries
    if queries is None:
        return weights.mean((1, 2))
    check_mask("queries", queries > 0, weights[:, 0])
    if bool((queries == 0).any()):  # 0 times NaN is NaN
        weights = weights.masked_fill((queries == 0)[:, None, :, None], 0.0)
    total = queries.sum(1, keepdim=True).to(weights.dtype)
    scores = received(weights, queries) / total.clamp(
        min=FLOOR
    )  # a sentence of padding alone has none
    return scores if real is None else scores.masked_fill(~real, 0.0)


def received(weights: Tensor, queries: Tensor) -> Tensor:
    """Σ n_i A_hij over the queries i, of which each counts for n_i, in the mean of the heads h.

    weights (B, H, T, S), queries (B, T) → (B, S). Of a sequence that looks at itself, 1 is an even share, however long
    it is: so that those of any length compare.
    """
    heads = weights.shape[1]
    if bool((queries == 1).all()):
        return weights.sum((1, 2)) / heads
    counted = queries.to(weights.dtype).repeat(1, heads)[:, None]  # (B, 1, H T)
    return (counted @ weights.flatten(1, 2)).squeeze(1) / heads


def soft_mask(
    scores: Tensor,
    threshold: Tensor | float,
    temperature: float,
    *,
    real: Maybe = None,
    protected: Maybe = None,
) -> Tensor:
    """σ((s − θ) / T), for how much a token counts while θ is learned (section 3.3).

    It is 1 at protected tokens and 0 at padding, whatever their scores.
    """
    _check_scores(scores, threshold)
    if not temperature > 0:
        raise ValueError(f"temperature ({temperature}) must be above 0")
    real, free, _ = check_tokens(scores, real, protected)
    # Scores are masked too: a NaN in the padding would reach θ on the way back.
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
    """Nothing goes, but each token counts for σ((s − θ) / T) of what it did: with T → 0 that is `prune_below`."""
    mask = soft_mask(scores, threshold, temperature, real=real, protected=protected)
    real, _, sizes = check_tokens(scores, real, protected, sizes)
    # Their logarithms are added to scores, so that none may become 0.
    return _kept(real, real, (sizes * mask).clamp(min=FLOOR).masked_fill(~real, 0.0))


def kept_share(mask: Tensor, real: Maybe = None) -> Tensor:
    """Σ mask / number of real tokens: what training pays for when thresholds are learned (section 3.3)."""
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
    """Remove the tokens with s < θ (section 3.2), fixed or learned, but never the last of a sentence."""
    _check_scores(scores, threshold)
    real, free, sizes = check_tokens(scores, real, protected, sizes)
    best = _ordered(scores, real, free).argmax(1, keepdim=True)  # (B, 1)
    stays = (~free | (scores >= threshold)).scatter(1, best, True) & real
    return _kept(stays, real, sizes)


@torch.no_grad()
def prune_to(
    scores: Tensor,
    top: Tensor | int,
    *,
    real: Maybe = None,
    protected: Maybe = None,
    sizes: Maybe = None,
) -> Reduction:
    """Keep the `top` tokens of each sentence, one number or one for each (B), protected ones first and always."""
    _check_scores(scores, 0.0)
    count = torch.as_tensor(top, device=scores.device)
    if (
        count.is_floating_point()
        or count.shape not in ((), scores.shape[:1])
        or bool((count < 1).any())
    ):
        raise ValueError(
            f"top ({count.tolist()}) must be a whole number of at least 1, or {len(scores)} of them"
        )
    real, free, sizes = check_tokens(scores, real, protected, sizes)
    stays = real & (~free | (_ranks(scores, real, free) < count.view(-1, 1)))
    return _kept(stays, real, sizes)


def _ranks(scores: Tensor, real: Tensor, free: Tensor) -> Tensor:
    """0 for the most important token of a sentence, and so on: protected before free, and padding last."""
    return (
        _ordered(scores, real, free).argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    )  # (B, S)


def _ordered(scores: Tensor, real: Tensor, free: Tensor) -> Tensor:
    return scores.masked_fill(~free, float("inf")).masked_fill(~real, float("-inf"))


def _kept(stays: Tensor, real: Tensor, sizes: Tensor) -> Reduction:
    return pack(own_places(real), stays, real, sizes)


def _check_scores(scores: Tensor, threshold: Tensor | float) -> None:
    if scores.dim() != 2:
        raise ValueError(f"scores has shape {tuple(scores.shape)}; it must be (batch, length)")
    if isinstance(threshold, Tensor) and threshold.numel() != 1:
        raise ValueError(f"threshold has shape {tuple(threshold.shape)}; it must be one number")
