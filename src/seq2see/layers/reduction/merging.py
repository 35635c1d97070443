"""Token merging (ToMe; Bolya et al., 2023): similar tokens become one, so later layers do less.

Shapes: B batch, S tokens, K head size. A matching compares the keys of a layer, averaged over its
heads, and returns a Reduction. Padding and protected tokens neither merge nor count, so a sentence
is matched independently of its batch. One with fewer than r pairs merges those it has.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from seq2see.layers.reduction.reduction import (
    Maybe,
    Reduction,
    check_mask,
    check_tokens,
    compact,
    own_places,
)

Extent = tuple[int, int]  # height, width


def bipartite(
    key: Tensor, r: int, *, real: Maybe = None, protected: Maybe = None, sizes: Maybe = None
) -> Reduction:
    """Bipartite soft matching (section 3): every second free token may join one of the others.

    Each is paired with the other token whose key (B, S, K) has the highest cosine similarity, and
    the r best pairs merge. After one class token this is the paper's split: the destinations are
    the first free token, the third, and so on.
    """
    _check_key(key, r)
    real, free, sizes = check_tokens(key, real, protected, sizes)
    destinations = free & (free.cumsum(1) % 2 == 1)
    length = key.shape[1]
    limits = (length // 2, length - length // 2)
    return _merge(_match(key, r, free & ~destinations, destinations, limits), real, sizes)


def grid(
    key: Tensor,
    r: int,
    shape: Extent,
    *,
    cell: Extent = (2, 2),
    generator: torch.Generator | None = None,
    real: Maybe = None,
    protected: Maybe = None,
    sizes: Maybe = None,
) -> Reduction:
    """Match with one destination per cell of an image, for generation (Bolya and Hoffman, 2023).

    It is the cell's top left token or, with a generator, a random one, the same for the whole
    batch. key (B, height × width, K) is in row-major order. Tokens outside the whole cells can
    join, but are no destinations.
    """
    _check_key(key, r)
    length = key.shape[1]
    if shape[0] * shape[1] != length:
        count = f"a grid of {shape[0]} × {shape[1]} has {shape[0] * shape[1]} tokens"
        raise ValueError(f"{count}; key has {length}")
    if not (1 <= cell[0] <= shape[0] and 1 <= cell[1] <= shape[1]):
        raise ValueError(f"cell {cell} must be between (1, 1) and the grid's {shape}")
    positions = _cell_positions(shape, cell, generator).to(key.device)
    joining = min(r, length - len(positions))
    whole = real is None and protected is None and sizes is None
    if whole and joining > 0 and len(key) and key.is_floating_point():
        return _merge_whole(key, joining, positions)
    real, free, sizes = check_tokens(key, real, protected, sizes)
    destinations = torch.zeros(length, dtype=torch.bool, device=key.device)
    destinations[positions] = True
    limits = (length - len(positions), len(positions))
    return _merge(_match(key, r, free & ~destinations, free & destinations, limits), real, sizes)


@torch.no_grad()
def neighbours(
    key: Tensor, r: int, *, real: Maybe = None, protected: Maybe = None, sizes: Maybe = None
) -> Reduction:
    """Merge tokens with their left neighbours, in disjoint pairs: for text, where order matters.

    Greedily picks the most similar pair that shares no token with an earlier pick, up to r times.
    """
    _check_key(key, r)
    real, free, sizes = check_tokens(key, real, protected, sizes)
    places = own_places(real)
    if r == 0 or key.shape[1] < 2:
        return _merge(places, real, sizes)
    order = _positions(real, key.shape[1])  # (B, S) real tokens first, without gaps
    unit = _take(functional.normalize(key, dim=-1), order)
    free = free.gather(1, order)
    pair = free[:, :-1] & free[:, 1:]  # (B, S − 1)
    similarity = (unit[:, :-1] * unit[:, 1:]).sum(-1).masked_fill(~pair, float("-inf"))
    # A pair loses to a better adjacent pair, unless that one loses in turn. Down from each local
    # maximum, pairs therefore alternate between taken and lost: a pair is taken if its distance
    # from the maxima on both sides is even.
    falls = similarity[:, 1:] <= similarity[:, :-1]  # ties go to the left
    even_from_left = _run_length(falls) % 2 == 0
    even_from_right = (_run_length(~falls.flip(1)) % 2 == 0).flip(1)
    taken = pair & even_from_left & even_from_right
    best = similarity.masked_fill(~taken, float("-inf"))
    chosen = best.argsort(dim=1, descending=True, stable=True)[:, :r]  # (B, r)
    left, right = order.gather(1, chosen), order.gather(1, chosen + 1)
    # `chosen` may include lost pairs; their right tokens, all distinct, keep their own places.
    target = places.scatter(1, right, torch.where(taken.gather(1, chosen), left, right))
    return _merge(target, real, sizes)


def schedule(r: int | Sequence[int], layers: int, kind: str = "constant") -> list[int]:
    """Tokens to merge per layer: r, or from 2 r down to 0 with the same sum, or the list given."""
    if layers < 1:
        raise ValueError(f"layers ({layers}) must be at least 1")
    if kind not in ("constant", "decreasing"):
        raise ValueError(f"kind is {kind!r}; it must be 'constant' or 'decreasing'")
    if not isinstance(r, int):
        if kind != "constant" or len(r) != layers or min(r) < 0:
            rule = f"a number of at least 0 for each of {layers} layers, with kind 'constant'"
            raise ValueError(f"r {list(r)} with kind {kind!r} must be {rule}")
        return list(r)
    _check_r(r)
    if kind == "constant" or layers == 1:
        return [r] * layers
    parts = [divmod(2 * r * (layers - 1 - layer), layers - 1) for layer in range(layers)]
    missing = r * layers - sum(quotient for quotient, _ in parts)
    by_remainder = sorted(range(layers), key=lambda layer: -parts[layer][1])
    rounded_up = set(by_remainder[:missing])
    return [quotient + (layer in rounded_up) for layer, (quotient, _) in enumerate(parts)]


def size_bias(sizes: Tensor, real: Maybe = None) -> Tensor:
    """log s for `attend`: softmax(Q Kᵀ/√d + log s) V counts a place as s tokens (equation 1).

    It is −∞ at padding, which needs no other mask. sizes (B, S) → (B, 1, 1, S).
    """
    if sizes.dim() != 2:
        raise ValueError(f"sizes has shape {tuple(sizes.shape)}; it must be (batch, length)")
    if real is not None:
        check_mask("real", real, sizes)
        sizes = sizes.masked_fill(~real, 0.0)
    return sizes.log()[:, None, None, :]


def _cell_positions(shape: Extent, cell: Extent, generator: torch.Generator | None) -> Tensor:
    """Positions of one token in each whole cell of a grid, in row-major order."""
    width = shape[1]
    tall, wide = cell
    down, across = shape[0] // tall, width // wide
    inside = torch.zeros(down, across, dtype=torch.long)  # position within the cell
    if generator is not None:
        device = generator.device
        inside = torch.randint(tall * wide, (down, across), generator=generator, device=device)
    row = torch.arange(0, down * tall, tall, device=inside.device)[:, None] + inside // wide
    column = torch.arange(0, across * wide, wide, device=inside.device) + inside % wide
    return (row * width + column).flatten()


@torch.no_grad()
def _match(key: Tensor, r: int, sources: Tensor, destinations: Tensor, limits: Extent) -> Tensor:
    """Target position of each token (B, S): r `sources` go to their most similar destinations.

    `limits` bounds the number of sources and destinations in any sentence. Shapes that depended on
    the rest of the batch would let it decide between equally similar tokens.
    """
    places = own_places(sources)
    if r == 0 or limits[0] == 0:
        return places
    source, destination = _positions(sources, limits[0]), _positions(destinations, limits[1])
    unit = functional.normalize(key, dim=-1)
    similarity = _take(unit, source) @ _take(unit, destination).transpose(1, 2)
    similarity.masked_fill_(~destinations.gather(1, destination)[:, None], float("-inf"))
    best = similarity.amax(-1).masked_fill(~sources.gather(1, source), float("-inf"))
    best, chosen = best.sort(dim=1, descending=True, stable=True)
    best, chosen = best[:, :r], chosen[:, :r]
    nearest = _take(similarity, chosen).argmax(-1)  # (B, r), much cheaper than for all sources
    source, target = source.gather(1, chosen), destination.gather(1, nearest)
    return places.scatter(1, source, torch.where(best > float("-inf"), target, source))


@torch.no_grad()
def _merge_whole(key: Tensor, r: int, destination: Tensor) -> Reduction:
    """`grid` for pictures, where all tokens are free and of size 1: faster from 1,024 tokens on.

    Every picture loses r tokens, so that no shape depends on the keys. destination (n,).
    """
    batch, length, _ = key.shape
    free = torch.ones(length, dtype=torch.bool, device=key.device)
    free[destination] = False
    source = free.nonzero().flatten()  # (S − n,)
    unit = functional.normalize(key, dim=-1)
    left, right = unit.index_select(1, source), unit.index_select(1, destination)
    # One picture at a time: the similarities stay in the cache, and no bit depends on the batch.
    pairs = [(a @ b.T).max(-1) for a, b in zip(left, right, strict=True)]
    best, nearest = (torch.stack(parts) for parts in zip(*pairs, strict=True))  # (B, S − n)
    chosen = best.topk(r, sorted=False).indices  # (B, r)
    goes = source[chosen]
    places = own_places(key[..., 0])
    target = places.scatter(1, goes, destination[nearest.gather(1, chosen)])
    stays = torch.ones_like(places).scatter(1, goes, 0)
    place = (stays.cumsum(1) - 1).gather(1, target)
    sizes = key.new_zeros(batch, length - r)
    sizes.scatter_add_(1, place, key.new_ones(batch, length))
    return Reduction(place, 1 / sizes.gather(1, place), sizes, sizes > 0)


def _merge(target: Tensor, real: Tensor, sizes: Tensor) -> Reduction:
    return compact(target, real & (target == own_places(real)), real, sizes)


def _positions(mask: Tensor, count: int) -> Tensor:
    """The first `count` positions (B, count) in the order: `mask` (B, S) True, then False."""
    return (~mask).byte().argsort(dim=1, stable=True)[:, :count]


def _take(x: Tensor, positions: Tensor) -> Tensor:
    """Vectors of x (B, S, K) at positions (B, n)."""
    batch, length, size = x.shape
    first = torch.arange(0, batch * length, length, device=x.device)[:, None]
    rows = (positions + first).flatten()
    return x.flatten(0, 1).index_select(0, rows).view(*positions.shape, size)  # (B, n, K)


def _run_length(steps: Tensor) -> Tensor:
    """Number of consecutive True steps that end at each of n places: (B, n − 1) → (B, n)."""
    number = torch.arange(1, steps.shape[1] + 1, device=steps.device).expand_as(steps)
    return functional.pad(number - number.masked_fill(steps, 0).cummax(1).values, (1, 0))


def _check_key(key: Tensor, r: int) -> None:
    if key.dim() != 3:
        rule = "it must be (batch, length, size), the mean over heads"
        raise ValueError(f"key has shape {tuple(key.shape)}; {rule}")
    _check_r(r)


def _check_r(r: int) -> None:
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"r ({r}) must be a whole number of at least 0")
