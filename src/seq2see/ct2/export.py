"""From a model directory to one for CTranslate2: converted, proven equal, calibrated, measured; or nothing at all."""

import itertools
import json
import os
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import seq2see
from seq2see.ct2.convert import describe, refuse
from seq2see.ct2.engine import SHORTLIST, Engine, Setting, cores, library, pieces
from seq2see.ct2.shortlist import vocabulary_map
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.errors import InputError, WorkError
from seq2see.files import sha256, sync, write_text
from seq2see.scoring.bleu import score
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import tokenizers
from seq2see.text.corpora import Pair
from seq2see.text.vocab import UNKNOWN

PRECISIONS = ("int8", "float32")
TOLERANCE = (
    1e-4  # of a token's log p, or of 1 where that is less; what we have trained differs by 5e-6
)
SENTENCES, MADE_UP = 100, 24  # compared on
MANY = 2000  # sentences to calibrate with: the same few over and over would fill a batch with equal ones
LONGEST = 512  # tokens of a made-up sentence
BATCHES = (1024, 512, 2048, 4096, 16384)  # source tokens times the beam
CALIBRATION = 10.0  # seconds, in all
ROUNDS = 2  # of all settings in that time
WARM_UP = 16  # sentences, to learn how many a second there are

Ids = list[int]


@dataclass(frozen=True)
class Parity:
    """How near the converted model comes to ours in float32."""

    tokens: int
    largest_difference: float  # of a token's log p, relative to it where it is beyond 1
    translations: int  # greedy ones
    near_ties: int  # of them differ, each where our two best ids are as near as the tolerance


def export(
    model: str | Path,
    out: str | Path,
    *,
    quantization: str = "int8",
    sources: Sequence[str] = (),
    references: Sequence[str] = (),
    shortlist: int = 0,
    pairs: Sequence[Pair] = (),
) -> dict[str, Any]:
    """Write the model for `translate --engine ct2` to a new directory `out`; what was found on the way comes back.

    The texts are for comparing and calibrating; with their translations it is measured what being fast costs. With a
    shortlist only so many pieces are weighed for each source piece, by what the training pairs say.
    """
    out = Path(os.path.abspath(out))
    if quantization not in PRECISIONS:
        raise InputError(f"--quantization {quantization!r} is not one of {', '.join(PRECISIONS)}")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out {out}: there already; an export goes into a new folder")
    if shortlist and not pairs:
        raise InputError(
            f"a shortlist of {shortlist} pieces is learned from pairs; none were given"
        )
    library()
    translator = load(model, "cpu")
    refuse(translator.recipe, translator.tokenizers)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
    except OSError as error:
        raise InputError(f"--out {out}: cannot write: {error.strerror}") from None
    try:
        found = _fill(
            temporary, translator, Path(model), quantization, sources, references, shortlist, pairs
        )
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        os.replace(temporary, out)
        sync(out.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return {"out": str(out)} | found


def _fill(
    folder: Path,
    translator: Translator,
    model: Path,
    quantization: str,
    texts: Sequence[str],
    references: Sequence[str],
    shortlist: int,
    pairs: Sequence[Pair],
) -> dict[str, Any]:
    recipe, pair = translator.recipe, translator.tokenizers
    exact = folder / "float32"
    convert(translator, exact, "float32")
    real, made_up = sentences(
        translator, texts or [source for source, _ in pairs] or logged(model / "log.jsonl")
    )
    compared = [*real[:SENTENCES], *made_up]
    parity = compare(
        translator, Engine(exact, recipe, pair, Setting(cores(), 1, BATCHES[0])), compared
    )
    shutil.rmtree(exact)

    convert(translator, folder, quantization)
    if shortlist:
        mixed = random.Random("shortlist").sample(
            pairs, len(pairs)
        )  # if not all can be read, a fair sample is
        encoded = (
            (pair.source.encode(source), pair.target.encode(target)) for source, target in mixed
        )
        found = vocabulary_map(encoded, pieces(pair.source), pieces(pair.target), shortlist)
        write_text(folder / SHORTLIST, "".join(f"{line}\n" for line in found))
    recipe.save(folder / "recipe.toml")
    files = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    setting = calibrate(folder, translator, real or made_up)
    about: dict[str, Any] = {
        "precision": quantization,
        "shortlist": shortlist,
        "parity": asdict(parity),
    }
    if references:
        # A batch has the shortlists of all its sentences together; what one costs at most is seen one by one.
        measured = Setting(cores(), 1, 1) if shortlist else setting
        about |= _cost(translator, Engine(folder, recipe, pair, measured), texts, references)
    card = _card(model / "scorecard.json") | {"export": about}
    write_text(folder / "scorecard.json", json.dumps(card, indent=2) + "\n")
    tokenizers.save(pair, folder, recipe.tokenizer, pair.fingerprint)
    versions = {"seq2see": seq2see.__version__, "ctranslate2": library().__version__}
    shared = {"precision": quantization, "setting": asdict(setting), "cores": cores()}
    write_text(
        folder / "engine.json",
        json.dumps(shared | {"versions": versions, "files": files}, indent=2) + "\n",
    )
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return about | {"setting": asdict(setting), "megabytes": megabytes}


def lines(found: dict[str, Any]) -> list[str]:
    """What `export` found, for a reader."""
    parity, setting = found["parity"], found["setting"]
    rows = [
        f"{found['out']}: {found['precision']}, {found['megabytes']:.1f} MB",
        f"in float32 the same: log p of {parity['tokens']} tokens to {parity['largest_difference']:.1g}, "
        f"{parity['translations']} greedy translations but for {parity['near_ties']} near ties",
        f"fastest here: {', '.join(f'{key} = {value}' for key, value in setting.items())}",
    ]
    if "bleu" in found:
        rows.append(
            f"BLEU {found['bleu']:.2f} instead of {found['bleu_float32']:.2f} ({found['difference']:+.2f})  "
            f"{found['signature']}"
        )
    return rows


def convert(translator: Translator, folder: Path, quantization: str) -> None:
    """Write the weights and vocabularies as CTranslate2 reads them."""
    folder.mkdir(exist_ok=True)
    spec = describe(translator.recipe, translator.tokenizers, translator.model)  # type: ignore[arg-type]
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _card(path: Path) -> dict[str, Any]:
    try:
        card = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(card, dict):
        raise InputError(f"{path}: not a score card")
    return card


def logged(log: Path) -> list[str]:
    """The sources of the last translations that a run's log shows, if there is one."""
    shown: list[str] = []
    # A killed process may have left half a line, or half a letter.
    for line in (
        log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    ):
        if line.startswith('{"event": "validation"') and line.endswith("}"):
            shown = [source for source, *_ in json.loads(line).get("samples", [])] or shown
    return shown


def sentences(translator: Translator, texts: Sequence[str]) -> tuple[list[Ids], list[Ids]]:
    """Some of the texts as ids; and sentences drawn from the vocabulary, always the same."""
    tokenizer, limit = translator.tokenizers.source, translator.recipe.data.max_length
    encoded = [tokenizer.encode(text) for text in texts[:MANY] if text.strip()]
    draw = random.Random("export")
    longest = min(limit, 40)
    made_up = [
        [draw.randrange(UNKNOWN, len(tokenizer)) for _ in range(1 + longest * each // MADE_UP)]
        for each in range(MADE_UP)
    ]
    return [ids for ids in encoded if 0 < len(ids) <= limit], made_up


def compare(translator: Translator, engine: Engine, sources: Sequence[Ids]) -> Parity:
    """Both models on the same sentences: every token's log p, and greedy translations; fails where they differ."""
    how = Search.of(translator.recipe, beam=1)
    ours = [
        found[0].ids for found in search(translator.model, sources, how, device=translator.device)
    ]  # type: ignore[arg-type]
    theirs = [found[0].ids for found in engine.hypotheses(sources, how)]
    # Likely translations, and unlikely ones up to the longest, which need every position.
    draw = random.Random("export")
    sizes = len(translator.tokenizers.source), len(translator.tokenizers.target)
    longest = min(translator.recipe.data.max_length, LONGEST)
    unlikely = [
        (
            [draw.randrange(UNKNOWN, sizes[0]) for _ in range(n)],
            [draw.randrange(UNKNOWN, sizes[1]) for _ in range(n)],
        )
        for n in (0, longest // 2, longest)
    ]
    pairs = [*zip(sources, ours, strict=True), *unlikely]
    tokens, worst = 0, 0.0
    for scored, log_p in zip(translator.force(pairs), engine.force(pairs), strict=True):
        tokens += len(log_p)
        worst = max(worst, *map(_difference, scored.log_probabilities, log_p))
    if not worst <= TOLERANCE:
        raise WorkError(
            f"the converted model is not ours: log p of a token differs by {worst:.2g}, more than {TOLERANCE:g}; "
            "nothing was written"
        )
    different = [both for both in zip(sources, ours, theirs, strict=True) if both[1] != both[2]]
    for source, mine, other in different:
        _near(translator, source, mine, other)
    return Parity(tokens, worst, len(ours), len(different))


def _difference(mine: float, other: float) -> float:
    return abs(mine - other) / max(1.0, abs(mine))


def _near(translator: Translator, source: Ids, mine: Ids, other: Ids) -> None:
    """Two greedy translations may part only where ours finds both ids about equally likely."""
    place = next(t for t in itertools.count() if mine[: t + 1] != other[: t + 1])
    scored = translator.force([(source, mine[: place + 1]), (source, other[: place + 1])])
    ours, theirs = (each.log_probabilities[place] for each in scored)
    if not _difference(ours, theirs) <= 2 * TOLERANCE:
        raise WorkError(
            f"the converted model is not ours: token {place + 1} of a greedy translation is "
            f"{scored[1].tokens[place]!r} instead of {scored[0].tokens[place]!r}, with log p {theirs:.4f} and "
            f"{ours:.4f}; nothing was written"
        )


def calibrate(folder: Path, translator: Translator, sources: Sequence[Ids]) -> Setting:
    """The setting that translates the most sentences a second here, by the best that each does in a few tries.

    They are tried in turn: what disturbs the machine for a while then slows down one try of each.
    """
    how, threads = Search.of(translator.recipe), torch.get_num_threads()
    engines: dict[tuple[int, int], Engine] = {}
    rates: dict[Setting, float] = {}

    def rate(setting: Setting, count: int) -> float:
        shared = setting.workers, setting.threads
        if shared not in engines:
            engines[shared] = Engine(folder, translator.recipe, translator.tokenizers, setting)
        engines[shared].setting = setting  # batches are made by us, not by CTranslate2
        some = list(itertools.islice(itertools.cycle(sources), count))
        begun = time.perf_counter()
        engines[shared].hypotheses(some, how)
        return count / (time.perf_counter() - begun)

    begun, settings = time.perf_counter(), [Setting(cores(), 1, tokens) for tokens in BATCHES]
    count = max(
        WARM_UP, int(rate(settings[0], WARM_UP) * CALIBRATION / (ROUNDS * len(settings) + 2))
    )
    for setting in settings * ROUNDS:
        if not rates or time.perf_counter() - begun < CALIBRATION:
            rates[setting] = max(rates.get(setting, 0.0), rate(setting, count))
    together = Setting(1, cores(), max(rates, key=rates.__getitem__).batch_tokens)
    if together not in rates and time.perf_counter() - begun < CALIBRATION:
        rates[together] = rate(
            together, count
        )  # all cores at one batch is seldom faster, so it is tried once
    torch.set_num_threads(
        threads
    )  # CTranslate2 sets its own number for the whole thread, and so for torch
    return max(rates, key=rates.__getitem__)


def _cost(
    translator: Translator, engine: Engine, sources: Sequence[str], references: Sequence[str]
) -> dict[str, float | str | int]:
    """BLEU of our model and of the exported one."""
    # One line each, whatever line ends a vocabulary of words may hold, as `evaluate` scores them.
    ours, theirs = (
        score([" ".join(text.splitlines()) for text in each.translate(sources)], references)
        for each in (translator, engine)
    )
    return {
        "bleu": theirs.bleu,
        "bleu_float32": ours.bleu,
        "difference": theirs.bleu - ours.bleu,
        "signature": theirs.signature,
        "sentences": theirs.sentences,
    }
