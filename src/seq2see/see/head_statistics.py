"""Statistics of attention heads: how sharp they are, how far they reach, and where they look."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seq2see.batches import Batch, IdPair, collate
from seq2see.layers.trace import Trace
from seq2see.see.alignment import Head, head_error_rates
from seq2see.tasks.translator import Translator
from seq2see.text.captions import Caption
from seq2see.text.specials import PAD

PAIRS_PER_BATCH = 50


@dataclass(frozen=True)
class HeadStatistics:
    """Means over all query positions of one head."""

    layer: str  # decoder.0.cross
    head: int
    entropy: float  # nats
    distance: float  # |query position − key position|
    previous: float  # share of the weight on the key one position before the query
    same: float
    next: float
    end: float | None  # on the source's </s>; None in the decoder's self-attention, which has none
    error_rate: float | None = None  # of the alignment, for cross-attention with gold links


def entropy(weights: Tensor) -> Tensor:
    """−Σ w ln w over the keys: (..., T, S) → (..., T) in nats."""
    products: Tensor = torch.special.xlogy(weights, weights)
    return -products.sum(-1)


def head_statistics(translator: Translator, pairs: Sequence[IdPair]) -> list[HeadStatistics]:
    """Measure every head on pairs of ids, by forced decoding."""
    sums: dict[str, Tensor] = {}  # layer → (figures, H)
    rows: dict[str, int] = defaultdict(int)
    translator.model.eval()
    for start in range(0, len(pairs), PAIRS_PER_BATCH):
        batch = collate(pairs, range(len(pairs))[start : start + PAIRS_PER_BATCH])
        trace = Trace()
        with torch.inference_mode():
            translator.model(batch.to(translator.device), trace)
        for layer, weights in trace.on_tokens().items():
            real, ends = _real(batch, layer)
            figures = _figures(weights.double().cpu(), real, ends)
            sums[layer] = sums[layer] + figures if layer in sums else figures
            rows[layer] += int(real.sum())
    return [
        _statistics(layer, head, (figures[:, head] / rows[layer]).tolist())
        for layer, figures in sums.items()
        for head in range(figures.shape[1])
    ]


def caption_statistics(translator: Translator, examples: Sequence[Caption]) -> list[HeadStatistics]:
    """Measure every head on captions, with its alignment error rate against their gold links."""
    sides = translator.tokenizers
    pairs = [(sides.source.encode(one.source), sides.target.encode(one.target)) for one in examples]
    rates: dict[Head, float] = head_error_rates(translator, examples)
    return [
        replace(one, error_rate=rates.get((one.layer, one.head)))
        for one in head_statistics(translator, pairs)
    ]


def _real(batch: Batch, layer: str) -> tuple[Tensor, Tensor | None]:
    """Query positions (B, T) that are no padding, and the key position (B,) of each </s>."""
    source = batch.source != PAD
    ends = source.sum(1) - 1
    if layer.startswith("encoder"):
        return source, ends
    return batch.target_in != PAD, ends if layer.endswith("cross") else None


def _figures(weights: Tensor, real: Tensor, ends: Tensor | None) -> Tensor:
    """Sum the figures of weights (B, H, T, S) over the real query positions: (figures, H)."""
    queries = torch.arange(weights.shape[2])[:, None]
    offset = torch.arange(weights.shape[3]) - queries  # (T, S)
    figures = [entropy(weights), (weights * offset.abs()).sum(-1)]
    figures += [(weights * (offset == step)).sum(-1) for step in (-1, 0, 1)]
    if ends is not None:
        at_end = ends[:, None, None, None].expand(*weights.shape[:3], 1)
        figures.append(weights.gather(3, at_end)[..., 0])
    return torch.stack([(figure * real[:, None]).sum((0, 2)) for figure in figures])


def _statistics(layer: str, head: int, means: list[float]) -> HeadStatistics:
    entropy, distance, previous, same, after, *ends = means
    end = ends[0] if ends else None
    return HeadStatistics(layer, head, entropy, distance, previous, same, after, end)
