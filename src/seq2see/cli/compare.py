"""Texts of `seq2see compare`: files of translations, and translations by model directories."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2see.cli.options import check_plain
from seq2see.ct2.engines import load
from seq2see.errors import InputError
from seq2see.scoring.tokenization import bleu_metric, tokenization, tokenization_of
from seq2see.tasks.translation_engine import TranslationEngine
from seq2see.text.lines import read_lines


@dataclass(frozen=True)
class Texts:
    """Arguments of `scoring.compare.compare`, line by line."""

    systems: dict[str, list[str]]
    references: list[str]
    sources: list[str] | None
    train: list[str] | None
    tokenize: str


def read(
    paths: Sequence[Path],
    reference: Path,
    source: Path | None = None,
    train: Path | None = None,
    *,
    beam: int | None = None,
    tokenize: str | None = None,
    device: str = "auto",
) -> Texts:
    """Read files of translations and translate with model directories.

    Everything is read and checked before the first translation.
    """
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    if not (seed.isascii() and seed.isdigit()) and seed.lower() != "none":
        raise InputError(f"SACREBLEU_SEED = {seed!r}: must be a whole number, or none")
    if len(paths) < 2:
        names = " ".join(map(str, paths))
        raise InputError(f"{names}: only one system; compare at least two, the baseline first")
    if train is not None and source is None:
        raise InputError(f"--train {train}: counts the rare words of the source; give --source too")
    files = [path for path in paths if not path.is_dir()]
    check_plain(reference, *files, *filter(None, [source, train]))
    references = read_lines(reference)
    sources = None if source is None else _aligned(source, reference, len(references))
    systems: dict[str, list[str]] = {}
    translators: dict[str, TranslationEngine] = {}
    for name, path in zip(_names(paths), paths, strict=True):
        if not path.is_dir():
            systems[name] = _aligned(path, reference, len(references))
            continue
        if sources is None:
            raise InputError(f"{path}: a model directory; give --source, the text to translate")
        systems[name] = []  # keeps its place in the order
        translators[name] = load(path, device)
    rare_from = None if train is None else read_lines(train)
    if tokenize is None:
        languages = [translator.recipe.data.target for translator in translators.values()]
        tokenize = tokenization(languages[0]) if languages else tokenization_of(references)
    bleu_metric(tokenize)  # refused before the first translation
    for name, translator in translators.items():
        systems[name] = translator.translate(sources or [], beam=beam)
    return Texts(systems, references, sources, rare_from, tokenize)


def _aligned(path: Path, reference: Path, count: int) -> list[str]:
    lines = read_lines(path)
    if len(lines) != count:
        raise InputError(
            f"{path} has {len(lines)} lines and {reference} {count}; they must pair up"
        )
    return lines


def _names(paths: Sequence[Path]) -> list[str]:
    """Name each path by its last part, and by more parts where the last is not unique."""
    absolute = [Path(os.path.abspath(path)).parts for path in paths]
    names = []
    for path, parts in zip(paths, absolute, strict=True):
        if absolute.count(parts) > 1:
            raise InputError(f"{path}: given twice; each system may be given once")
        size = 1
        while [other[-size:] for other in absolute].count(parts[-size:]) > 1:
            size += 1
        # A file name need not be valid UTF-8, but a page is.
        names.append(str(Path(*parts[-size:])).encode(errors="backslashreplace").decode())
    return names
