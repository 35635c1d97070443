"""Score functions: how well a query and a key fit, for every pair of them."""

from collections.abc import Callable

from torch import Tensor

Score = Callable[[Tensor, Tensor], Tensor]


def dot(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩; its variance grows with the head size, which is why the paper divides (section 3.2.1)."""
    return query @ key.transpose(-2, -1)  # (..., T, S)


def scaled_dot(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩ / √d_k, with variance one for independent unit-variance queries and keys (section 3.2.1)."""
    # Scaling the query touches T × K numbers instead of the scores' T × S.
    return dot(query * query.shape[-1] ** -0.5, key)


SCORES: dict[str, Score] = {"dot": dot, "scaled_dot": scaled_dot}
