"""Who translates whom: word alignments read off cross-attention, measured against gold ones."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from seq2see.batches import collate
from seq2see.layers.trace import Trace
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.captions import Caption

Links = set[tuple[int, int]]  # (source word, target word)
Head = tuple[str, int]  # name in the trace, head
CAPTIONS_PER_BATCH = 100


def word_of_piece(pieces: Sequence[str], words: Sequence[str]) -> list[int]:
    """For each piece the word it is part of, found by counting letters; marks of spaces do not count."""
    ends: list[int] = []
    for word in words:
        ends.append((ends[-1] if ends else 0) + len(word))
    found, letters = [], 0
    for piece in pieces:
        size = len(piece.replace("▁", "").strip())
        at = letters + max(size, 1)  # a lone space mark belongs to the word that follows
        found.append(next((i for i, end in enumerate(ends) if at <= end), len(words) - 1))
        letters += size
    return found


def between_words(
    weights: Tensor, rows: Sequence[int], columns: Sequence[int], shape: tuple[int, int]
) -> Tensor:
    """Piece-to-piece weights (T, S) → word-to-word: summed over what is looked at, averaged over who looks."""
    by, at = torch.tensor(rows), torch.tensor(columns)
    summed = weights.new_zeros(shape[0], len(at)).index_add(0, by, weights[: len(by), : len(at)])
    mean = summed / by.bincount(minlength=shape[0]).clamp(min=1)[:, None]
    return mean.new_zeros(shape).index_add(1, at, mean)  # (target words, source words)


def cross_attention(
    translator: Translator, examples: Sequence[Caption]
) -> Iterator[tuple[Caption, dict[str, Tensor]]]:
    """Each caption with its cross-attention between words: name → (H, target words, source words)."""
    source_tokenizer, target_tokenizer = translator.tokenizers.source, translator.tokenizers.target
    for start in range(0, len(examples), CAPTIONS_PER_BATCH):
        some = examples[start : start + CAPTIONS_PER_BATCH]
        pairs = [
            (source_tokenizer.encode(c.source), target_tokenizer.encode(c.target)) for c in some
        ]
        trace = Trace()
        translator.model.eval()
        with torch.inference_mode():
            translator.model(collate(pairs, range(len(pairs))).to(translator.device), trace)
        for i, caption in enumerate(some):
            source_words, target_words = (
                captions.words(caption.source),
                captions.words(caption.target),
            )
            columns = word_of_piece(source_tokenizer.pieces(caption.source), source_words)
            rows = word_of_piece(target_tokenizer.pieces(caption.target), target_words)
            shape = (len(target_words), len(source_words))
            yield (
                caption,
                {
                    name: torch.stack(
                        [between_words(head.cpu(), rows, columns, shape) for head in weights[i]]
                    )
                    for name, weights in trace.on_tokens().items()
                    if name.endswith(".cross")
                },
            )


def links(weights: Tensor) -> Links:
    """Link each target word with the source word it looks at most; weights (target words, source words)."""
    return {(int(source), target) for target, source in enumerate(weights.argmax(1))}


def error_rate(found: Sequence[Links], gold: Sequence[Links]) -> float:
    """AER = 1 − (|A∩S| + |A∩P|) / (|A| + |S|), after Och and Ney (2003), all gold links being sure ones."""
    hits = sum(len(a & g) for a, g in zip(found, gold, strict=True))
    total = sum(len(a) + len(g) for a, g in zip(found, gold, strict=True))
    return 1 - 2 * hits / total


def head_error_rates(translator: Translator, examples: Sequence[Caption]) -> dict[Head, float]:
    """The alignment error rate of every cross-attention head."""
    found: dict[Head, list[Links]] = {}
    for _, by_name in cross_attention(translator, examples):
        for name, weights in by_name.items():
            for head, each in enumerate(weights):
                found.setdefault((name, head), []).append(links(each))
    gold = [set(caption.alignment) for caption in examples]
    return {head: error_rate(each, gold) for head, each in found.items()}
