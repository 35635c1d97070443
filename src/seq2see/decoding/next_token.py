"""The next token of a search: those that are allowed, likeliest first.

Shapes: B sentences, N hypotheses, V vocabulary.
"""

from torch import Tensor

from seq2see.decoding.hypotheses import Search
from seq2see.text.specials import BEGIN, END, PAD


def forced_at(prefix: Tensor | None, position: int) -> Tensor | None:
    """Return the ids (B,) that must come at a position, PAD where any may; None if all may."""
    if prefix is None or position > prefix.shape[1]:
        return None
    return prefix[:, position - 1]


def _force(logits: Tensor, ids: Tensor) -> None:
    """Forbid all tokens but the given one, in the rows (N, V) that have one."""
    kept = logits.gather(1, ids[:, None])
    logits.masked_fill_((ids != PAD)[:, None], float("-inf"))
    logits.scatter_(1, ids[:, None], kept)


def likeliest(
    logits: Tensor,
    position: int,
    at_limit: Tensor,
    config: Search,
    count: int,
    forced: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and ids (N, count) of the likeliest next tokens that are allowed.

    <s>, padding and forbidden tokens never are, </s> is not before the minimum length, and only
    </s> is at the limit.
    """
    logits = logits[:, -1]
    normaliser = logits.logsumexp(-1, keepdim=True)
    logits[:, [BEGIN, PAD, *config.forbidden]] = float("-inf")
    if position <= config.min_length:
        logits[:, END] = float("-inf")
    if at_limit.any():
        end = logits[:, END].clone()
        logits[at_limit] = float("-inf")
        logits[:, END] = end
    if forced is not None:
        _force(logits, forced)
    best, ids = logits.topk(min(count, logits.shape[-1]))
    return best - normaliser, ids
