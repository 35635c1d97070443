"""Scores: sacreBLEU on raw, detokenised, cased text, always with the signature; and the score card."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import psutil
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import seq2see

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


def score(outputs: Sequence[str], references: Sequence[str]) -> Scores:
    """Compare each output with its one reference."""
    if len(outputs) != len(references) or not outputs:
        raise ValueError(f"{len(outputs)} outputs and {len(references)} references; they must pair up")
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


def card(scores: dict[str, Scores], digests: dict[str, str], **about: Any) -> dict[str, Any]:
    """All that a reader needs to trust or repeat the scores: per test set, and of the machine."""
    return {
        "tests": {name: {**asdict(each), "corpus_sha256": digests[name]} for name, each in scores.items()},
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
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
