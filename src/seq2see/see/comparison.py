"""Terminal report of a comparison of systems."""

from collections.abc import Sequence

from rich.cells import cell_len

from seq2see.scoring.compare import EQUAL, Bucket, Comparison, Score, Sentence, System
from seq2see.see.tables import pad, table

SCORE_COLUMNS = ["score", "mean ± 95 % interval", "p bootstrap", "p randomisation"]
SENTENCES_SHOWN = 10  # the HTML page shows all of them
METRICS = {"bleu": "BLEU", "chrf": "chrF"}


def report(comparison: Comparison) -> list[str]:
    """List the scores, the verdicts, BLEU by bucket, and the sentences that differ most."""
    base, *others = comparison.systems
    lines = [f"{comparison.sentences} sentences · baseline: {base.name}", ""]
    bleu = [[system.name, *score_cells(system.bleu)] for system in comparison.systems]
    chrf = [[system.name, *score_cells(system.chrf)] for system in comparison.systems]
    lines += [*table([["BLEU", *SCORE_COLUMNS], *bleu]), ""]
    lines += [*table([["chrF", *SCORE_COLUMNS], *chrf]), ""]
    for system in others:
        outcome = f"{verdict(system, base)}; {sentence_counts(system)} by chrF"
        lines.append(f"{system.name} against {base.name}: {outcome}")
    lines += [*comparison.notes(), ""]
    for title, buckets in comparison.charts():
        lines += [title, *_bucket_table(buckets, comparison.systems), ""]
    return [*lines, *_examples(comparison.most_different), "", *signatures(comparison)]


def verdict(system: System, base: System) -> str:
    """State whether a system beats the baseline, and the difference in BLEU."""
    return f"{system.verdict} (BLEU {system.bleu.score - base.bleu.score:+.2f})"


def sentence_counts(system: System) -> str:
    """Count the sentences on which a system is better than, equal to or worse than the baseline."""
    return f"{system.wins} sentences better, {system.ties} equal, {system.losses} worse"


def score_cells(score: Score) -> list[str]:
    """Format one score as the cells under `SCORE_COLUMNS`; the baseline has no p-values."""
    p_values = [score.p_bootstrap, score.p_randomisation]
    p_cells = ["" if p is None else f"{p:.4f}" for p in p_values]
    return [f"{score.score:.2f}", f"{score.mean:.2f} ± {score.ci:.2f}", *p_cells]


def signatures(comparison: Comparison) -> list[str]:
    """List sacreBLEU's signature of each metric and paired test."""
    return [
        f"{METRICS[metric]}, {test}: {signature}"
        for metric, tests in comparison.signatures.items()
        for test, signature in tests.items()
    ]


def _bucket_table(buckets: Sequence[Bucket], systems: Sequence[System]) -> list[str]:
    rows = [
        ["", *(bucket.bucket for bucket in buckets)],
        ["sentences", *(str(bucket.sentences) for bucket in buckets)],
    ]
    for system in systems:
        rows.append([system.name, *(f"{bucket.bleu[system.name]:.2f}" for bucket in buckets)])
    return table(rows)


def _examples(sentences: Sequence[Sentence]) -> list[str]:
    different = [s for s in sentences[:SENTENCES_SHOWN] if s.difference > EQUAL]
    if not different:
        return ["no sentence's chrF differs from the baseline's"]
    lines = ["sentences whose chrF differs most from the baseline's"]
    for sentence in different:
        lines += [f"line {sentence.line}", *_example(sentence)]
    return lines


def _example(sentence: Sentence) -> list[str]:
    rows = [("reference", "", sentence.reference)]
    if sentence.source is not None:
        rows.insert(0, ("source", "", sentence.source))
    for name, text in sentence.outputs.items():
        rows.append((name, f"{sentence.scores[name]:.1f}", text))
    width = max(cell_len(name) for name, _, _ in rows)
    return [f"  {pad(name, width)}  {score:>5}  {text}" for name, score, text in rows]
