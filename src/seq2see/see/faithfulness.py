"""Checks of attributions: erase what they rank first, and align words by them."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from seq2see.batches import IdPair
from seq2see.see import alignment
from seq2see.see.erasure import falls
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.captions import Caption
from seq2see.text.documents.sentences import spaced

DRAWS = 10  # random sets of source tokens for each sentence


def ids_of(translator: Translator, caption: Caption) -> IdPair:
    """Encode both sides of a caption."""
    tokenizers = translator.tokenizers
    return tokenizers.source.encode(caption.source), tokenizers.target.encode(caption.target)


def fall_when_erased(
    translator: Translator, pairs: Sequence[IdPair], attributions: Sequence[Tensor], count: int
) -> float:
    """Erase, for each target token, the `count` source tokens that its attribution ranks first.

    The fall of its log-probability is averaged over all target tokens. </s> is neither erased nor a
    target here.
    """
    by_pair = []
    for (source, target), attribution in zip(pairs, attributions, strict=True):
        ranked = attribution[:-1, :-1].argsort(dim=1, descending=True)
        erased = [set(row) for row in ranked[:, :count].tolist()]
        fall = falls(translator.model, source, target, erased)
        by_pair.append(fall[:-1].diagonal())
    return torch.cat(by_pair).mean().item()


def fall_at_random(translator: Translator, pairs: Sequence[IdPair], count: int) -> float:
    """Erase `count` source tokens drawn at random; average as `fall_when_erased` does."""
    by_pair = []
    for line, (source, target) in enumerate(pairs):
        draw = random.Random(f"erase {count} of line {line}")
        most = min(count, len(source))
        erased = [set(draw.sample(range(len(source)), most)) for _ in range(DRAWS)]
        by_pair.append(falls(translator.model, source, target, erased)[:-1].mean(1))
    return torch.cat(by_pair).mean().item()


def words_of(translator: Translator, caption: Caption, attribution: Tensor) -> Tensor:
    """Turn an attribution between tokens into one between words: (target, source words)."""
    tokenizers = translator.tokenizers
    source_words = captions.words(caption.source)
    target_words = captions.words(caption.target)
    columns = alignment.words_of_piece(tokenizers.source.pieces(caption.source), source_words)
    rows = alignment.words_of_piece(tokenizers.target.pieces(caption.target), target_words)
    shape = (len(target_words), len(source_words))
    return alignment.between_spelled_words(attribution, rows, columns, shape)


def both_ways(weights: Tensor) -> Tensor:
    """Share of each pair in its row times its share in its column (target, source words).

    A source word that every target word reads from, such as a comma, counts for less, as in
    alignments that agree in both directions (Liang et al., 2006).
    """
    positive = weights.clamp(min=torch.finfo(weights.dtype).tiny)
    return positive / positive.sum(1, keepdim=True) * (positive / positive.sum(0, keepdim=True))


def error_rates(
    translator: Translator, examples: Sequence[Caption], attributions: Sequence[Tensor]
) -> dict[str, float]:
    """Compute the alignment error rate of the largest value of each row, plain and both ways."""
    gold = [set(caption.alignment) for caption in examples]
    by_words = [
        words_of(translator, caption, attribution)
        for caption, attribution in zip(examples, attributions, strict=True)
    ]
    by_source = not spaced(translator.recipe.data.source)
    rates = {}
    for name, change in (("plain", torch.clone), ("both ways", both_ways)):
        predicted = [alignment.links(change(weights), by_source) for weights in by_words]
        rates[name] = alignment.error_rate(predicted, gold)
    return rates
