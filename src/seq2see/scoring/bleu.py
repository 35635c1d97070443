"""BLEU and chrF by sacreBLEU on raw, detokenised, cased text, always with the signature."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.chrf import CHRF

from seq2see.scoring.tokenization import DEFAULT, bleu_metric

CHRF_WORDS = 2  # the longest word n-grams of chrF++


@dataclass(frozen=True)
class Scores:
    """BLEU with its factors, chrF, chrF++ and exact matches."""

    bleu: float
    signature: str
    precisions: list[float]  # of 1- to 4-grams, in percent
    brevity_penalty: float
    length_ratio: float  # output words / reference words
    bleu_lowercased: float
    chrf: float
    chrf_signature: str
    chrf_plus_plus: float  # chrF with words, too
    chrf_plus_plus_signature: str
    accuracy: float  # share of outputs equal to their reference
    sentences: int

    def report(self) -> list[str]:
        """Show the scores, with BLEU as the product of its factors."""
        precisions = " · ".join(
            f"{n}-grams {precision:.1f}" for n, precision in enumerate(self.precisions, start=1)
        )
        return [
            f"BLEU {self.bleu:.2f}  =  {self.brevity_penalty:.3f} (brevity penalty; "
            f"length ratio {self.length_ratio:.3f}) × geometric mean of {precisions}",
            f"     {self.signature}",
            f"chrF {self.chrf:.2f}  ({self.chrf_signature})",
            f"chrF++ {self.chrf_plus_plus:.2f}  ({self.chrf_plus_plus_signature})",
            f"exact matches {self.accuracy:.1%} of {self.sentences} sentences · "
            f"lowercased BLEU {self.bleu_lowercased:.2f}",
        ]


def score(outputs: Sequence[str], references: Sequence[str], tokenize: str = DEFAULT) -> Scores:
    """Score outputs against one reference each; `tokenization` gives that of a language."""
    if len(outputs) != len(references) or not outputs:
        raise ValueError(
            f"{len(outputs)} outputs and {len(references)} references; they must pair up"
        )
    expected = [list(references)]
    metric = bleu_metric(tokenize)
    bleu = metric.corpus_score(list(outputs), expected)
    lowercased = bleu_metric(tokenize, lowercase=True)
    characters, with_words = CHRF(), CHRF(word_order=CHRF_WORDS)
    matches = sum(
        output == reference for output, reference in zip(outputs, references, strict=True)
    )
    return Scores(
        bleu=bleu.score,
        signature=str(metric.get_signature()),
        precisions=list(bleu.precisions),
        brevity_penalty=bleu.bp,
        length_ratio=bleu.sys_len / bleu.ref_len if bleu.ref_len else 0.0,
        bleu_lowercased=lowercased.corpus_score(list(outputs), expected).score,
        chrf=characters.corpus_score(list(outputs), expected).score,
        chrf_signature=str(characters.get_signature()),
        chrf_plus_plus=with_words.corpus_score(list(outputs), expected).score,
        chrf_plus_plus_signature=str(with_words.get_signature()),
        accuracy=matches / len(outputs),
        sentences=len(outputs),
    )
