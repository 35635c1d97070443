"""Share of hard sentences whose translations keep what they must, by kind."""

from collections.abc import Sequence
from dataclasses import dataclass

from seq2see.scoring.bleu import score
from seq2see.text.hard import KINDS, Hard, lost

SHOWN = 2  # examples of a kind


@dataclass(frozen=True)
class Kind:
    """Hard sentences of one kind, and how many of them came through."""

    sentences: int
    kept: float  # share
    examples: list[tuple[str, str]]  # sources and translations that lost something


@dataclass(frozen=True)
class Capitals(Kind):
    """Sentences in capitals: kept if translated like the same in lower case, but for case."""

    bleu: float  # regardless of case, as is the next one
    bleu_lower_case: float  # of the same sentences in lower case


def by_kind(
    sentences: Sequence[Hard], outputs: Sequence[str], twins: Sequence[str], tokenize: str
) -> dict[str, Kind]:
    """Count what came through; `twins` are translations of the twins, in their order."""
    kinds: dict[str, Kind] = {}
    pairs = list(zip(sentences, outputs, strict=True))
    for kind in KINDS[:-1]:
        chosen = [pair for pair in pairs if pair[0].kind == kind]
        examples = [(one.source, text) for one, text in chosen if any(lost(one, text))]
        kinds[kind] = Kind(len(chosen), 1 - len(examples) / len(chosen), examples)
    chosen = [pair for pair in pairs if pair[0].twin]
    kinds[KINDS[-1]] = _capitals(chosen, twins, tokenize)
    return kinds


def _capitals(chosen: Sequence[tuple[Hard, str]], twins: Sequence[str], tokenize: str) -> Capitals:
    references = [one.reference for one, _ in chosen]
    outputs = [text for _, text in chosen]
    examples = [
        (one.source, text)
        for (one, text), twin in zip(chosen, twins, strict=True)
        if text.casefold() != twin.casefold()
    ]
    kept = 1 - len(examples) / len(chosen)
    capitals, lower = (
        score(texts, references, tokenize).bleu_lowercased for texts in (outputs, twins)
    )
    return Capitals(len(chosen), kept, examples, capitals, lower)


def report(kinds: dict[str, Kind]) -> list[str]:
    """Show the shares, and examples of what was lost."""
    lines = []
    for name, kind in kinds.items():
        line = f"{name:<10} {kind.kept:6.1%} of {kind.sentences} kept"
        if isinstance(kind, Capitals):
            line += f" · BLEU {kind.bleu:.1f} in capitals, {kind.bleu_lower_case:.1f} in lower case"
        lines.append(line)
        lines += (f"  {source} → {text}" for source, text in kind.examples[:SHOWN])
    return lines
