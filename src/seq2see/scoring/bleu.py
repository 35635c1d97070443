"""Scores: sacreBLEU on raw, detokenised, cased text, always with the signature; likelihood; and the score card."""

import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import seq2see
from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.scoring.errors import Analysis, analyse
from seq2see.tasks.translate import Scored, Translator

LIBRARIES = ("numpy", "sacrebleu", "sentencepiece", "torch")


@dataclass(frozen=True)
class Scores:
    """BLEU with the parts it is made of, chrF, and exact matches."""

    bleu: float
    signature: str
    precisions: list[float]  # of 1- to 4-grams, in percent
    brevity_penalty: float
    length_ratio: float  # output words / reference words
    bleu_lowercased: float
    chrf: float
    chrf_signature: str
    accuracy: float  # share of outputs equal to their reference
    sentences: int

    def lines(self) -> list[str]:
        """How the score comes about, for a reader."""
        parts = " · ".join(f"{n}-grams {p:.1f}" for n, p in enumerate(self.precisions, start=1))
        return [
            f"BLEU {self.bleu:.2f}  =  {self.brevity_penalty:.3f} (brevity penalty; "
            f"length ratio {self.length_ratio:.3f}) × geometric mean of {parts}",
            f"     {self.signature}",
            f"chrF {self.chrf:.2f}  ({self.chrf_signature})",
            f"exact matches {self.accuracy:.1%} of {self.sentences} sentences · "
            f"lowercased BLEU {self.bleu_lowercased:.2f}",
        ]


def check(out: Path, *inputs: Path) -> None:
    """Refuse, before the work is done, a file that cannot be or must not be written."""
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and not out.is_file():
        raise InputError(f"--out {out}: there already, and not a file")
    if out.resolve() in [path.resolve() for path in inputs]:
        raise InputError(f"--out {out}: is an input; it is not written over")


def write(outputs: Sequence[str], out: Path) -> None:
    """Write translations line by line, for `sacrebleu REFERENCE -i OUT`."""
    try:
        write_text(out, "".join(f"{output}\n" for output in outputs))
    except OSError as error:
        raise InputError(f"--out {out}: cannot write: {error.strerror}") from None


def score(outputs: Sequence[str], references: Sequence[str]) -> Scores:
    """Compare each output with its one reference."""
    if len(outputs) != len(references) or not outputs:
        raise ValueError(
            f"{len(outputs)} outputs and {len(references)} references; they must pair up"
        )
    metric, character_metric = BLEU(), CHRF()
    bleu = metric.corpus_score(list(outputs), [list(references)])
    chrf = character_metric.corpus_score(list(outputs), [list(references)])
    same = sum(output == reference for output, reference in zip(outputs, references, strict=True))
    return Scores(
        bleu=bleu.score,
        signature=str(metric.get_signature()),
        precisions=list(bleu.precisions),
        brevity_penalty=bleu.bp,
        length_ratio=bleu.sys_len / bleu.ref_len if bleu.ref_len else 0.0,
        bleu_lowercased=BLEU(lowercase=True).corpus_score(list(outputs), [list(references)]).score,
        chrf=chrf.score,
        chrf_signature=str(character_metric.get_signature()),
        accuracy=same / len(outputs),
        sentences=len(outputs),
    )


@dataclass(frozen=True)
class Likelihood:
    """How well a model expects given translations, and which of two a sentence it expects more."""

    perplexity: float  # exp(− mean log p of a token), </s> included
    log_probability: float
    tokens: int
    pairs: list[Scored]
    accuracy: float | None = None  # share of the pairs likelier than their rival; a tie is not
    pairs2: list[Scored] | None = None  # the rivals

    def rows(self, texts: Sequence[str]) -> list[str]:
        """A row per pair: log p, tokens and text; or log p of both and whether the first is the likelier."""
        ours = [each.log_probability for each in self.pairs]
        if self.pairs2 is None:
            rows = zip(ours, self.pairs, texts, strict=True)
            return [f"{log_p:.6f}\t{len(each.tokens)}\t{text}" for log_p, each, text in rows]
        rivals = [each.log_probability for each in self.pairs2]
        return [
            f"{one:.6f}\t{two:.6f}\t{one > two:d}" for one, two in zip(ours, rivals, strict=True)
        ]

    def summary(self) -> str:
        """One line for a reader."""
        won = (
            "" if self.accuracy is None else f" · the first is the likelier in {self.accuracy:.1%}"
        )
        return (
            f"{len(self.pairs)} pairs · {self.tokens} tokens with </s> · perplexity {self.perplexity:.3f} a token · "
            f"log-probability {self.log_probability / len(self.pairs):.3f} a pair{won}"
        )


def likelihood(scored: Sequence[Scored], rivals: Sequence[Scored] = ()) -> Likelihood:
    """Sum up forced decoding, and compare each translation with its rival."""
    total = sum(each.log_probability for each in scored)
    tokens = sum(len(each.tokens) for each in scored)
    perplexity = math.exp(min(-total / tokens, 700))
    if not rivals:
        return Likelihood(perplexity, total, tokens, list(scored))
    wins = sum(
        one.log_probability > two.log_probability for one, two in zip(scored, rivals, strict=True)
    )
    return Likelihood(perplexity, total, tokens, list(scored), wins / len(scored), list(rivals))


@dataclass(frozen=True)
class Examination:
    """A test set translated, scored and searched for errors."""

    outputs: list[str]
    scores: Scores
    errors: Analysis

    def values(self) -> dict[str, Any]:
        """What `evaluate --json` prints, and a score card holds of a test set."""
        return {**asdict(self.scores), "errors": asdict(self.errors)}


def examine(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    beam: int | None = None,
) -> Examination:
    """Translate a test set and look at the outputs."""
    # One line each, whatever line ends a vocabulary of words may hold: the scores are those of a written file.
    outputs = [" ".join(text.splitlines()) for text in translator.translate(sources, beam=beam)]
    pair = translator.tokenizers
    errors = analyse(sources, outputs, references, pair.source, pair.languages[1])
    return Examination(outputs, score(outputs, references), errors)


def card(tests: dict[str, dict[str, Any]], **about: Any) -> dict[str, Any]:
    """All that a reader needs to trust or repeat the scores: per test set, and of the machine."""
    return {
        "tests": tests,
        **about,
        "versions": {"seq2see": seq2see.__version__, "python": platform.python_version()}
        | {name: metadata.version(name) for name in LIBRARIES},
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """The computer, as far as it explains speed."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.partition(":")[2].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
