"""Word alignments from cross-attention, scored against gold alignments."""

from bisect import bisect_left, bisect_right
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
from seq2see.text.documents.sentences import spaced

Links = set[tuple[int, int]]  # (source word, target word)
Head = tuple[str, int]  # name in the trace, head
CAPTIONS_PER_BATCH = 100


def words_of_piece(pieces: Sequence[str], words: Sequence[str]) -> list[range]:
    """Find the words that each piece spells, by counting letters without the space marks.

    Without spaces between words, as in Chinese, a piece may spell several.
    """
    ends = list(accumulate(map(len, words)))
    spelled = []
    letters = 0
    for piece in surfaces(pieces):
        size = len(piece.replace("▁", "").strip())
        end = letters + max(size, 1)  # a lone space mark belongs to the word that follows
        first = bisect_right(ends, letters)
        last = min(bisect_left(ends, end), len(words) - 1)
        spelled.append(range(min(first, last), last + 1))
        letters += size
    return spelled


def word_of_piece(pieces: Sequence[str], words: Sequence[str]) -> list[int]:
    """Find the word that each piece is part of, the last one if it spells several."""
    return [spelled[-1] for spelled in words_of_piece(pieces, words)]


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


def between_spelled_words(
    weights: Tensor, rows: Sequence[range], columns: Sequence[range], shape: tuple[int, int]
) -> Tensor:
    """Turn weights between pieces into weights between words, where a piece may spell several.

    The words that a piece of the source spells share its weight equally.
    """
    row_pieces = [piece for piece, words in enumerate(rows) for _ in words]
    column_pieces = [piece for piece, words in enumerate(columns) for _ in words]
    shares = torch.tensor([1 / len(words) for words in columns for _ in words])
    spread = weights[row_pieces][:, column_pieces] * shares
    row_words = [word for words in rows for word in words]
    column_words = [word for words in columns for word in words]
    return between_words(spread, row_words, column_words, shape)


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
            columns = words_of_piece(source.pieces(caption.source), source_words)
            rows = words_of_piece(target.pieces(caption.target), target_words)
            shape = (len(target_words), len(source_words))
            by_name = {}
            for name, heads in weights.items():
                maps = [
                    between_spelled_words(head.cpu(), rows, columns, shape) for head in heads[i]
                ]
                by_name[name] = torch.stack(maps)
            yield caption, by_name


def links(weights: Tensor, by_source: bool = False) -> Links:
    """Link each target word to its most attended source word; weights (target, source words).

    `by_source` links each source word to the target word that attends to it most: one target word
    translates several characters, each of which is a word here.
    """
    if by_source:
        return {(source, int(target)) for source, target in enumerate(weights.argmax(0))}
    return {(int(source), target) for target, source in enumerate(weights.argmax(1))}


def error_rate(predicted: Sequence[Links], gold: Sequence[Links]) -> float:
    """AER = 1 − (|A∩S| + |A∩P|) / (|A| + |S|) (Och and Ney, 2003), with all gold links sure."""
    hits = sum(len(a & g) for a, g in zip(predicted, gold, strict=True))
    total = sum(len(a) + len(g) for a, g in zip(predicted, gold, strict=True))
    return 1 - 2 * hits / total


def head_error_rates(translator: Translator, examples: Sequence[Caption]) -> dict[Head, float]:
    """Compute the alignment error rate of every cross-attention head."""
    predicted: dict[Head, list[Links]] = {}
    by_source = not spaced(translator.recipe.data.source)
    for _, by_name in cross_attention(translator, examples):
        for name, heads in by_name.items():
            for head, weights in enumerate(heads):
                predicted.setdefault((name, head), []).append(links(weights, by_source))
    gold = [set(caption.alignment) for caption in examples]
    return {head: error_rate(alignments, gold) for head, alignments in predicted.items()}
