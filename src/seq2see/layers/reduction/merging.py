"""Fewer tokens for the layers that follow: token merging (ToMe; Bolya et al., 2023) and the way back.

Shapes: B batch, S tokens before, P places after, D model width, K head size. A matching takes the keys of a layer,
averaged over its heads, and gives a Reduction: where each token went. Its masks are bool (B, S): `real` is False at
padding, `protected` True at tokens that stay as they are (class, begin, end). Neither is ever merged, merged into or
counted, so a sentence is matched as if it were alone. One with fewer than r pairs merges those it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Maybe = Tensor | None  # (B, S), where there is one
Extent = tuple[int, int]  # height, width


@dataclass(frozen=True)
class Reduction:
    """Where S tokens went: into P places, packed to the left in their old order, or nowhere."""

    source: Tensor  # (B, S) the place of each token; −1 for padding and for what was pruned
    share: Tensor  # (B, S) its part of that place's mean; those of one place add up to 1
    sizes: Tensor  # (B, P) how many original tokens a place stands for; 0 at padding
    real: Tensor  # (B, P) bool, False at padding
    unchanged: bool = False  # in no sentence did anything go: tensors pass as they are, padding too

    def merge(self, x: Tensor) -> Tensor:
        """Σ size_i x_i / Σ size_i over the tokens i of each place (section 3): x (B, S, …) → (B, P, …)."""
        _check_leads("x", x, self.source)
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}; a mean needs floating point")
        if self.unchanged:
            return x
        if bool(
            (self.share == (self.source >= 0)).all()
        ):  # each place has one token: nothing to weigh
            return self.sum(x)
        return self.sum(x * self.share.to(x.dtype).view(*self.share.shape, *(1,) * (x.dim() - 2)))

    def sum(self, x: Tensor) -> Tensor:
        """Σ x_i over the tokens i of each place: x (B, S, …) → (B, P, …), with zeros at padding."""
        _check_leads("x", x, self.source)
        if self.unchanged:
            return x
        batch, places = self.real.shape
        # What went nowhere meets in one row more, so that even NaN in the padding stays there.
        row = torch.where(self.source < 0, batch * places, self._rows()).flatten()[
            :, None
        ]  # (B S, 1)
        flat = x.reshape(len(row), -1)
        added = flat.new_zeros(batch * places + 1, flat.shape[1]).scatter_add_(
            0, row.expand_as(flat), flat
        )
        return added[:-1].view(batch, places, *x.shape[2:])

    def any(self, mask: Tensor) -> Tensor:
        """Which places hold a token of `mask` (B, S): how `protected` is carried on to the next layer."""
        check_mask("mask", mask, self.source)
        return mask if self.unchanged else self.sum(mask.int()) > 0  # (B, P)

    def unmerge(self, y: Tensor) -> Tensor:
        """Each token gets a copy of its place's vector, zeros if it has none: y (B, P, …) → (B, S, …)."""
        _check_leads("y", y, self.real)
        if self.unchanged:
            return y
        # A row of an embedding is the fastest way to fetch rows, forwards and backwards.
        copies = functional.embedding(self._rows(), y.reshape(self.real.numel(), -1))  # (B, S, …)
        return copies.masked_fill((self.source < 0)[..., None], 0).view(
            *self.source.shape, *y.shape[2:]
        )

    def spread(self, weights: Tensor) -> Tensor:
        """Attention to places (B, …, P), drawn back on their tokens (B, …, S) by share: rows keep their sum."""
        if weights.dim() < 2 or (len(weights), weights.shape[-1]) != tuple(self.real.shape):
            batch, places = self.real.shape
            raise ValueError(
                f"weights has shape {tuple(weights.shape)}; it must be ({batch}, ..., {places})"
            )
        if self.unchanged:
            return weights
        between = (1,) * (weights.dim() - 2)
        source, share = (
            x.view(len(x), *between, x.shape[1]) for x in (self.source.clamp(min=0), self.share)
        )
        picked = weights.gather(-1, source.expand(*weights.shape[:-1], -1))
        return (picked * share.to(weights.dtype)).masked_fill(share == 0, 0.0)

    def then(self, later: "Reduction") -> "Reduction":
        """This reduction followed by that of a later layer: one map from the first tokens to the last places."""
        if later.source.shape != self.real.shape:
            left, taken = tuple(self.real.shape), tuple(later.source.shape)
            raise ValueError(f"the later reduction takes {taken} tokens; the first leaves {left}")
        behind, gone = self.source.clamp(min=0), self.source < 0
        source = later.source.gather(1, behind).masked_fill(gone, -1)
        share = self.share * later.share.gather(1, behind).to(self.share.dtype)
        return Reduction(source, share, later.sizes, later.real, self.unchanged and later.unchanged)

    def _rows(self) -> Tensor:
        """The place of each token, counted through the batch; the first one for what went nowhere."""
        batch, places = self.real.shape
        first = torch.arange(0, batch * places, max(1, places), device=self.source.device)[:, None]
        return self.source.clamp(min=0) + first  # (B, S)


def bipartite(
    key: Tensor, r: int, *, real: Maybe = None, protected: Maybe = None, sizes: Maybe = None
) -> Reduction:
    """Bipartite soft matching (section 3): every second token may join the token of the others it is most like.

    The r with the highest cosine similarity of their keys (B, S, K) do. Behind one class token this is the paper's
    split: the first free token, the third, … are those to be joined.
    """
    _check_key(key, r)
    real, free, sizes = check_tokens(key, real, protected, sizes)
    joined = free & (free.cumsum(1) % 2 == 1)
    length = key.shape[1]
    target = _join(key, r, free & ~joined, joined, (length // 2, length - length // 2))
    return _merged(target, real, sizes)


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
    """One token of each cell of a picture may be joined, by all others: for generation (Bolya and Hoffman, 2023).

    It is the cell's top left one or, with a generator, one drawn for the whole batch. The tokens of key
    (B, height × width, K) stand row by row; those in no whole cell can join, but not be joined.
    """
    _check_key(key, r)
    real, free, sizes = check_tokens(key, real, protected, sizes)
    (height, width), (tall, wide), length = shape, cell, key.shape[1]
    if height * width != length:
        raise ValueError(
            f"a grid of {height} × {width} has {height * width} tokens; key has {length}"
        )
    if not (1 <= tall <= height and 1 <= wide <= width):
        raise ValueError(f"cell {cell} must be between (1, 1) and the grid's {shape}")
    down, across = height // tall, width // wide
    drawn = torch.zeros(down, across, dtype=torch.long)
    if generator is not None:
        drawn = torch.randint(
            tall * wide, (down, across), generator=generator, device=generator.device
        )
    drawn = drawn.to(key.device)
    row = torch.arange(0, down * tall, tall, device=key.device)[:, None] + drawn // wide
    column = torch.arange(0, across * wide, wide, device=key.device) + drawn % wide
    joined = torch.zeros(length, dtype=torch.bool, device=key.device)
    joined[(row * width + column).flatten()] = True
    target = _join(key, r, free & ~joined, free & joined, (length - drawn.numel(), drawn.numel()))
    return _merged(target, real, sizes)


@torch.no_grad()
def neighbours(
    key: Tensor, r: int, *, real: Maybe = None, protected: Maybe = None, sizes: Maybe = None
) -> Reduction:
    """A token may join its left neighbour, in pairs that do not overlap: for text, where order carries meaning.

    Pairs are taken from the most similar down, passing over those with a token already taken, until there are r.
    """
    _check_key(key, r)
    real, free, sizes = check_tokens(key, real, protected, sizes)
    own = own_places(real)
    if r == 0 or key.shape[1] < 2:
        return _merged(own, real, sizes)
    order = _positions(real, key.shape[1])  # (B, S) without gaps: padding stands at the end
    unit, free = _take(functional.normalize(key, dim=-1), order), free.gather(1, order)
    pair = free[:, :-1] & free[:, 1:]  # (B, S − 1)
    similarity = (unit[:, :-1] * unit[:, 1:]).sum(-1).masked_fill(~pair, float("-inf"))
    # A pair is passed over if a better one beside it is taken, which in turn depends on what is beside that. So pairs
    # are taken, passed over, taken, … on the way down from each peak: taken if the way is even from both sides.
    falls = similarity[:, 1:] <= similarity[:, :-1]  # of equal ones the left comes first
    taken = pair & (_run(falls) % 2 == 0) & (_run(~falls.flip(1)) % 2 == 0).flip(1)
    best = similarity.masked_fill(~taken, float("-inf"))
    chosen = best.argsort(dim=1, descending=True, stable=True)[:, :r]  # (B, r)
    left, right = order.gather(1, chosen), order.gather(1, chosen + 1)
    # Passed over or not, each pair has a right token of its own, so that no two write to one place.
    target = own.scatter(1, right, torch.where(taken.gather(1, chosen), left, right))
    return _merged(target, real, sizes)


def schedule(r: int | Sequence[int], layers: int, kind: str = "constant") -> list[int]:
    """How many tokens each layer merges: r everywhere, or from 2 r down to 0 with the same sum, or a list as given."""
    if layers < 1:
        raise ValueError(f"layers ({layers}) must be at least 1")
    if kind not in ("constant", "decreasing"):
        raise ValueError(f"kind is {kind!r}; it must be 'constant' or 'decreasing'")
    if not isinstance(r, int):
        if kind != "constant" or len(r) != layers or min(r) < 0:
            raise ValueError(
                f"r {list(r)} must be 'constant': a number of at least 0 for each of {layers} layers"
            )
        return list(r)
    _check_number(r)
    if kind == "constant" or layers == 1:
        return [r] * layers
    parts = [divmod(2 * r * (layers - 1 - layer), layers - 1) for layer in range(layers)]
    missing = r * layers - sum(whole for whole, _ in parts)
    rounded_up = set(sorted(range(layers), key=lambda layer: -parts[layer][1])[:missing])
    return [whole + (layer in rounded_up) for layer, (whole, _) in enumerate(parts)]


def size_bias(sizes: Tensor, real: Maybe = None) -> Tensor:
    """log size, for `attend`: softmax(Q Kᵀ/√d + log s) V counts a place as the s tokens it stands for (equation 1).

    It is −∞ at padding, which so needs no other mask. sizes (B, S) → (B, 1, 1, S).
    """
    if sizes.dim() != 2:
        raise ValueError(f"sizes has shape {tuple(sizes.shape)}; it must be (batch, length)")
    if real is not None:
        check_mask("real", real, sizes)
        sizes = sizes.masked_fill(~real, 0.0)
    return sizes.log()[:, None, None, :]


@torch.no_grad()
def _join(key: Tensor, r: int, sources: Tensor, joined: Tensor, most: tuple[int, int]) -> Tensor:
    """The position each token goes to: its own, or for r of the `sources` (B, S) that of the most similar of `joined`.

    `most` says how many there can be of either in any sentence: shapes that depend on the companions in a batch would
    let them decide between two that are equally similar.
    """
    own = own_places(sources)
    if r == 0 or most[0] == 0:
        return own
    here, there = _positions(sources, most[0]), _positions(joined, most[1])
    unit = functional.normalize(key, dim=-1)
    similarity = _take(unit, here) @ _take(unit, there).transpose(1, 2)  # (B, sources, joined)
    similarity.masked_fill_(~joined.gather(1, there)[:, None], float("-inf"))
    best = similarity.amax(-1).masked_fill(~sources.gather(1, here), float("-inf"))  # (B, sources)
    best, chosen = (x[:, :r] for x in best.sort(dim=1, descending=True, stable=True))
    nearest = _take(similarity, chosen).argmax(-1)  # (B, r), much cheaper for these than for all
    away, here = there.gather(1, nearest), here.gather(1, chosen)
    return own.scatter(1, here, torch.where(best > float("-inf"), away, here))  # (B, S)


def _merged(target: Tensor, real: Tensor, sizes: Tensor) -> Reduction:
    return pack(target, real & (target == own_places(real)), real, sizes)


@torch.no_grad()
def pack(target: Tensor, stays: Tensor, real: Tensor, sizes: Tensor) -> Reduction:
    """Only what `stays` (B, S) keeps a place, without gaps; each token goes with the one at `target` (B, S)."""
    if torch.equal(stays, real):
        return Reduction(
            own_places(real).masked_fill(~real, -1),
            real.to(sizes.dtype),
            sizes,
            real,
            unchanged=True,
        )
    left = stays.sum(1, keepdim=True)
    places = int(left.max())
    source = (
        (stays.cumsum(1) - 1).gather(1, target).masked_fill(~(real & stays.gather(1, target)), -1)
    )
    held = torch.where(source < 0, places, source)
    total = sizes.new_zeros(len(sizes), places + 1).scatter_add(1, held, sizes)  # (B, P + 1)
    share = (sizes / total.gather(1, held)).masked_fill(source < 0, 0.0)
    return Reduction(
        source, share, total[:, :places], torch.arange(places, device=real.device) < left
    )


def own_places(tokens: Tensor) -> Tensor:
    """Each token's own place."""
    return torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)  # (B, S)


def _positions(mask: Tensor, count: int) -> Tensor:
    """Where `mask` (B, S) is True, from left to right, then where it is False: the first `count`."""
    return (~mask).byte().argsort(dim=1, stable=True)[:, :count]


def _take(x: Tensor, positions: Tensor) -> Tensor:
    """The vectors of x (B, S, K) at positions (B, n)."""
    rows = (
        positions + torch.arange(0, x.shape[0] * x.shape[1], x.shape[1], device=x.device)[:, None]
    )
    return (
        x.flatten(0, 1).index_select(0, rows.flatten()).view(*rows.shape, x.shape[2])
    )  # (B, n, K)


def _run(steps: Tensor) -> Tensor:
    """How many steps in a row, of those between n places, are True up to each place: (B, n − 1) → (B, n)."""
    number = torch.arange(1, steps.shape[1] + 1, device=steps.device).expand_as(steps)
    return functional.pad(number - number.masked_fill(steps, 0).cummax(1).values, (1, 0))


def check_tokens(
    x: Tensor, real: Maybe, protected: Maybe, sizes: Maybe = None
) -> tuple[Tensor, Tensor, Tensor]:
    """For x (B, S, …): which tokens are real, which of them may go, and their sizes, each (B, S)."""
    if not x.is_floating_point():
        raise TypeError(f"keys or scores have dtype {x.dtype}; they must be floating point")
    for name, mask in (("real", real), ("protected", protected)):
        if mask is not None:
            check_mask(name, mask, x)
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if real is None else real
    if sizes is None:
        sizes = real.to(x.dtype)
    elif sizes.shape != real.shape or not bool(((sizes > 0) | ~real).all()):
        rule = f"it must be {tuple(real.shape)} with numbers above 0 where real"
        raise ValueError(
            f"sizes has shape {tuple(sizes.shape)} and {float(sizes.min()):g} as its least; {rule}"
        )
    return real, real if protected is None else real & ~protected, sizes.masked_fill(~real, 0)


def check_mask(name: str, mask: Tensor, tokens: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"{name} has dtype {mask.dtype}; it must be bool")
    if mask.shape != tokens.shape[:2]:
        raise ValueError(
            f"{name} has shape {tuple(mask.shape)}; it must be {tuple(tokens.shape[:2])}"
        )


def _check_key(key: Tensor, r: int) -> None:
    if key.dim() != 3:
        raise ValueError(
            f"key has shape {tuple(key.shape)}; it must be (batch, length, size), the mean over heads"
        )
    _check_number(r)


def _check_number(r: int) -> None:
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"r ({r}) must be a whole number of at least 0")


def _check_leads(name: str, x: Tensor, tokens: Tensor) -> None:
    if x.shape[:2] != tokens.shape:
        batch, length = tokens.shape
        raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be ({batch}, {length}, ...)")
