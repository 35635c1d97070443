"""Export of a model directory for CTranslate2: converted, verified, calibrated and measured."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import seq2see
from seq2see.batches import Ids
from seq2see.ct2.batches import Setting
from seq2see.ct2.calibration import BATCHES, calibrate
from seq2see.ct2.convert import convert, refuse
from seq2see.ct2.engine import SHORTLIST, Engine, pieces
from seq2see.ct2.library import cores, library
from seq2see.ct2.parity import MANY, Parity, compare, logged, sentences
from seq2see.ct2.shortlist import draw, vocabulary_map
from seq2see.errors import InputError
from seq2see.files import sha256, sync, write_text
from seq2see.scoring.bleu import Scores, score
from seq2see.scoring.tokenization import tokenization
from seq2see.tasks.table import load
from seq2see.tasks.translation_engine import TranslationEngine
from seq2see.tasks.translator import Translator
from seq2see.text import tokenizers
from seq2see.text.history import History, empty
from seq2see.text.parallel import Pairs

PRECISIONS = ("int8", "float32")
COMPARED = 100  # real sentences, beside the random ones


@dataclass(frozen=True)
class _Options:
    """Arguments of `export`."""

    quantization: str
    sources: Sequence[str]
    references: Sequence[str]
    shortlist: int
    pairs: Pairs


def export(
    model: str | Path,
    out: str | Path,
    *,
    quantization: str = "int8",
    sources: Sequence[str] = (),
    references: Sequence[str] = (),
    shortlist: int = 0,
    pairs: Pairs = (),
) -> dict[str, Any]:
    """Convert a model for CTranslate2 into a new directory; return the measurements.

    The sources serve comparison and calibration; given references, the cost in BLEU is measured.
    With a shortlist, the output layer scores only that many target pieces per source piece, as
    learned from the training pairs. If anything fails, nothing is written.
    """
    out = Path(os.path.abspath(out))
    options = _Options(quantization, sources, references, shortlist, pairs)
    _check(out, options)
    library()
    translator = load(model, "cpu")
    refuse(translator.recipe, translator.tokenizers)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
    except OSError as error:
        raise InputError(f"--out {out}: cannot write: {error.strerror}") from None
    try:
        measured = _fill(temporary, translator, Path(model), options)
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        os.replace(temporary, out)
        sync(out.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return {"out": str(out)} | measured


def _check(out: Path, options: _Options) -> None:
    if options.quantization not in PRECISIONS:
        raise InputError(
            f"--quantization {options.quantization!r} is not one of {', '.join(PRECISIONS)}"
        )
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    empty = out.is_dir() and not any(out.iterdir())
    if out.exists() and not empty:
        raise InputError(f"--out {out}: already exists; an export needs a new folder")
    if options.shortlist and not options.pairs:
        raise InputError(
            f"a shortlist of {options.shortlist} pieces is learned from pairs; none were given"
        )


def _fill(folder: Path, translator: Translator, model: Path, options: _Options) -> dict[str, Any]:
    """Write everything into the new directory; return the measurements."""
    recipe, pair = translator.recipe, translator.tokenizers
    pair_sources = [source for source, _ in islice(options.pairs, MANY)]
    texts = options.sources or pair_sources or logged(model / "log.jsonl")
    real, drawn = sentences(translator, texts)
    parity = _verify(translator, folder / "float32", [*real[:COMPARED], *drawn])
    convert(translator, folder, options.quantization)
    if options.shortlist:
        _write_shortlist(folder, translator, options)
    recipe.save(folder / "recipe.toml")
    files = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    setting = calibrate(folder, translator, real or drawn)
    about: dict[str, Any] = {
        "precision": options.quantization,
        "shortlist": options.shortlist,
        "parity": asdict(parity),
    }
    if options.references:
        # A batch uses the shortlists of all its sentences; single sentences show the full cost.
        measured = Setting(cores(), 1, 1) if options.shortlist else setting
        engine = Engine(folder, recipe, pair, measured)
        about |= _cost(translator, engine, options.sources, options.references)
    card = _card(model / "scorecard.json") | {"export": about}
    _write_json(folder / "scorecard.json", card)
    tokenizers.save(pair, folder, recipe.tokenizer, pair.fingerprint)
    if (history := History.load(model)) is not None:
        replace(history, train=empty(0, 2)).save(folder)  # enough to find the test set again
    engine_values = {
        "precision": options.quantization,
        "setting": asdict(setting),
        "cores": cores(),
        "versions": {"seq2see": seq2see.__version__, "ctranslate2": library().__version__},
        "files": files,
    }
    _write_json(folder / "engine.json", engine_values)
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return about | {"setting": asdict(setting), "megabytes": megabytes}


def _verify(translator: Translator, folder: Path, sources: Sequence[Ids]) -> Parity:
    """Convert to float32 in a temporary folder and compare with our model."""
    convert(translator, folder, "float32")
    setting = Setting(cores(), 1, BATCHES[0])
    engine = Engine(folder, translator.recipe, translator.tokenizers, setting)
    parity = compare(translator, engine, sources)
    shutil.rmtree(folder)
    return parity


def _write_shortlist(folder: Path, translator: Translator, options: _Options) -> None:
    source, target = translator.tokenizers.source, translator.tokenizers.target
    drawn = draw(options.pairs)
    encoded = ((source.encode(text), target.encode(other)) for text, other in drawn)
    lines = vocabulary_map(encoded, pieces(source), pieces(target), options.shortlist)
    write_text(folder / SHORTLIST, "".join(f"{line}\n" for line in lines))


def _write_json(path: Path, values: dict[str, Any]) -> None:
    write_text(path, json.dumps(values, indent=2) + "\n")


def _card(path: Path) -> dict[str, Any]:
    try:
        card = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(card, dict):
        raise InputError(f"{path}: not a score card")
    return card


def _cost(
    translator: Translator, engine: Engine, sources: Sequence[str], references: Sequence[str]
) -> dict[str, float | str | int]:
    """BLEU of our model and of the exported one."""
    tokenize = tokenization(translator.recipe.data.target)

    def scores(system: TranslationEngine) -> Scores:
        # One line per output, as `evaluate` scores them: words of a vocabulary may hold line ends.
        outputs = [" ".join(text.splitlines()) for text in system.translate(sources)]
        return score(outputs, references, tokenize)

    ours, theirs = scores(translator), scores(engine)
    return {
        "bleu": theirs.bleu,
        "bleu_float32": ours.bleu,
        "difference": theirs.bleu - ours.bleu,
        "signature": theirs.signature,
        "sentences": theirs.sentences,
    }


def report(values: dict[str, Any]) -> list[str]:
    """Show the measurements of `export`."""
    parity, setting = values["parity"], values["setting"]
    fastest = ", ".join(f"{key} = {value}" for key, value in setting.items())
    lines = [
        f"{values['out']}: {values['precision']}, {values['megabytes']:.1f} MB",
        f"equal in float32: log p of {parity['tokens']} tokens to "
        f"{parity['largest_difference']:.1g}, and {parity['translations']} greedy translations "
        f"except for {parity['near_ties']} near ties",
        f"fastest here: {fastest}",
    ]
    if "bleu" in values:
        lines.append(
            f"BLEU {values['bleu']:.2f} instead of {values['bleu_float32']:.2f} "
            f"({values['difference']:+.2f})  {values['signature']}"
        )
    return lines
