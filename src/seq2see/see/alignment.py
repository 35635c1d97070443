"""Word alignments from cross-attention, scored against gold alignments."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from seq2see.batches import collate
from seq2see.layers.trace import Trace
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.byte_pieces import surfaces
from seq2see.text.captions import Caption

Links = set[tuple[int, int]]  # (source word, target word)
Head = tuple[str, int]  # name in the trace, head
CAPTIONS_PER_BATCH = 100


def word_of_piece(pieces: Sequence[str], words: Sequence[str]) -> list[int]:
    """Find the word that each piece is part of, by counting letters without the space marks."""
    ends = list(accumulate(map(len, words)))
    indices = []
    letters = 0
    for piece in surfaces(pieces):
        size = len(piece.replace("▁", "").strip())
        end = letters + max(size, 1)  # a lone space mark belongs to the word that follows
        indices.append(
            next((i for i, word_end in enumerate(ends) if end <= word_end), len(words) - 1)
        )
        letters += size
    return indices


def between_words(
    weights: Tensor, rows: Sequence[int], columns: Sequence[int], shape: tuple[int, int]
) -> Tensor:
    """Turn weights between pieces (T, S) into weights between words.

    Weights are summed over the pieces of a source word (the keys) and averaged over those of a
    target word (the queries). `rows` and `columns` give the word of each piece.
    """
    query_word = torch.tensor(rows)
    key_word = torch.tensor(columns)
    pieces = weights[: len(rows), : len(columns)]
    summed = weights.new_zeros(shape[0], len(columns)).index_add(0, query_word, pieces)
    mean = summed / query_word.bincount(minlength=shape[0]).clamp(min=1)[:, None]
    return mean.new_zeros(shape).index_add(1, key_word, mean)  # (target words, source words)


def cross_attention(
    translator: Translator, examples: Sequence[Caption]
) -> Iterator[tuple[Caption, dict[str, Tensor]]]:
    """Yield each caption with its cross-attention: name → (H, target words, source words)."""
    source = translator.tokenizers.source
    target = translator.tokenizers.target
    translator.model.eval()
    for start in range(0, len(examples), CAPTIONS_PER_BATCH):
        batch = examples[start : start + CAPTIONS_PER_BATCH]
        pairs = [
            (source.encode(caption.source), target.encode(caption.target)) for caption in batch
        ]
        trace = Trace()
        with torch.inference_mode():
            translator.model(collate(pairs, range(len(pairs))).to(translator.device), trace)
        weights = {
            name: heads for name, heads in trace.on_tokens().items() if name.endswith(".cross")
        }
        for i, caption in enumerate(batch):
            source_words = captions.words(caption.source)
            target_words = captions.words(caption.target)
            columns = word_of_piece(source.pieces(caption.source), source_words)
            rows = word_of_piece(target.pieces(caption.target), target_words)
            shape = (len(target_words), len(source_words))
            by_name = {}
            for name, heads in weights.items():
                maps = [between_words(head.cpu(), rows, columns, shape) for head in heads[i]]
                by_name[name] = torch.stack(maps)
            yield caption, by_name


def links(weights: Tensor) -> Links:
    """Link each target word to its most attended source word; weights (target, source words)."""
    return {(int(source), target) for target, source in enumerate(weights.argmax(1))}


def error_rate(predicted: Sequence[Links], gold: Sequence[Links]) -> float:
    """AER = 1 − (|A∩S| + |A∩P|) / (|A| + |S|) (Och and Ney, 2003), with all gold links sure."""
    hits = sum(len(a & g) for a, g in zip(predicted, gold, strict=True))
    total = sum(len(a) + len(g) for a, g in zip(predicted, gold, strict=True))
    return 1 - 2 * hits / total


def head_error_rates(translator: Translator, examples: Sequence[Caption]) -> dict[Head, float]:
    """Compute the alignment error rate of every cross-attention head."""
    predicted: dict[Head, list[Links]] = {}
    for _, by_name in cross_attention(translator, examples):
        for name, heads in by_name.items():
            for head, weights in enumerate(heads):
                predicted.setdefault((name, head), []).append(links(weights))
    gold = [set(caption.alignment) for caption in examples]
    return {head: error_rate(alignments, gold) for head, alignments in predicted.items()}
