"""Parallel corpora: aligned files, tables, directories and named corpora, split while read."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig, Paths
from seq2see.text import captions, multi30k
from seq2see.text.lines import base_name
from seq2see.text.parallel import Mixture, Splits
from seq2see.text.parallel import Parallel as Parallel
from seq2see.text.progress import Progress, silent
from seq2see.text.reading import RELATIVE, PairStream, is_pattern, resolve
from seq2see.text.reading import read_pairs as read_pairs

if TYPE_CHECKING:  # numpy is slow to import
    from seq2see.text.history import History
    from seq2see.text.separation import Corpus

CAPTIONS = {"train": 50_000, "val": 1000, "test": 1000, "test_structures": 1000}


def load(
    config: DataConfig,
    data: Path | None = None,
    history: "History | None" = None,
    progress: Progress = silent,
    stores: Path | None = None,
) -> "Corpus":
    """Read a recipe's corpus; `data` is its directory, or the base of the recipe's paths.

    A history with held-out sets is that of the run itself, which keeps them. The training set is
    not held in memory: it is known by its fingerprints, and read again where its text is needed.
    The folder of `stores` may have a record that makes reading it unnecessary.
    """
    from seq2see.text.history import History
    from seq2see.text.record import Record, source_of
    from seq2see.text.splitting import Division, corpus_of, without_seen

    history = history or History()
    read = _read_captions if config.corpus == "captions" else _read_files
    splits = without_seen(read(config, data, progress), history)
    record = reading = None
    if stores is not None and splits.files:
        record = Record(stores, source_of(splits.files, config, progress), history)
        reading = record.find()
    if reading is not None:
        return corpus_of(splits, config, history, reading)
    reading = Division.of(splits, config, history, progress).reading(config.join)
    corpus = corpus_of(splits, config, history, reading)
    if record is None:
        return corpus
    return replace(corpus, keep=partial(record.save, reading, corpus.history))


def _read_files(config: DataConfig, data: Path | None, progress: Progress) -> Splits:
    """Locate the files of a recipe, and read all but the training set."""
    train_paths, val_paths, test_paths = _locate(config, data)
    streams = [PairStream(paths, config, data, progress) for paths in train_paths]
    train = Mixture(streams, list(config.mix.values()) if config.mix else [1.0])
    notes: list[str] = []
    val = None if val_paths is None else _read("val", val_paths, config, data, notes)
    tests = {name: _read(name, paths, config, data, notes) for name, paths in test_paths.items()}

    def remarks() -> list[str]:
        return [note for stream in streams for note in stream.notes] + notes

    name = " and ".join(str(paths) for paths in train_paths)
    given = [*train_paths, *([] if val_paths is None else [val_paths]), *test_paths.values()]
    files = [file for paths in given for file in PairStream(paths, config, data).files()]
    return Splits(name, train, val, tests, remarks, files)


def _read_captions(config: DataConfig, data: Path | None, progress: Progress) -> Splits:
    if data is not None:
        raise InputError(f"--data {data}: data.corpus 'captions' is embedded and reads no files")
    languages = (config.source, config.target)
    if config.source == config.target or not {*languages} <= {*captions.LANGUAGES}:
        known = ", ".join(captions.LANGUAGES)
        raise InputError(
            f"data.corpus 'captions' is in two of {known}, not {config.source!r} and "
            f"{config.target!r}"
        )
    counts = CAPTIONS | {"train": config.limit or CAPTIONS["train"]}
    progress(f"generating {counts['train']:,} captions", None)
    splits = {}
    for name, count in counts.items():
        generated = captions.generate(name, count, languages=languages)
        pairs = [(caption.source, caption.target) for caption in generated]
        splits[name] = Parallel.of(name, pairs)
    train = Mixture([splits.pop("train").pairs])
    return Splits("captions", train, splits.pop("val"), splits)


def _locate(
    config: DataConfig, base: Path | None
) -> tuple[list[Paths], Paths | None, dict[str, Paths]]:
    """Locate train, val and tests; the recipe's own paths precede the splits of a directory."""
    origin: Paths | None = str(multi30k.folder(config, base)) if config.corpus else config.train
    splits: dict[str, Paths] = {}
    if origin is not None:
        splits = _splits(origin, "train", config, base)
    mixed = [_splits(path, "train", config, base)["train"] for path in config.mix or ()]
    train = mixed or [splits["train"]]
    val = splits.get("val")
    if config.val is not None:
        val = _splits(config.val, "val", config, base)["val"]
    if isinstance(config.test, dict):
        return train, val, config.test
    candidates = splits if config.test is None else _splits(config.test, "test", config, base)
    tests = {name: paths for name, paths in candidates.items() if name.startswith("test")}
    return train, val, tests


def _splits(paths: Paths, name: str, config: DataConfig, base: Path | None) -> dict[str, Paths]:
    """Return the one split a path names, or all in a directory of {split}.{language}[.gz|.zst]."""
    if not isinstance(paths, str):
        return {name: paths}
    directory = resolve(paths, base)
    if is_pattern(directory):
        return {name: paths}
    if not directory.exists():
        raise InputError(f"{directory}: no such file for data.{name}; {RELATIVE}")
    if not directory.is_dir():
        return {name: paths}
    files: dict[tuple[str, str], str] = {}
    for path in sorted(directory.iterdir()):  # a plain file sorts before a compressed one, and wins
        split, _, language = base_name(path).rpartition(".")
        if split in ("train", "val") or split.startswith("test"):
            files.setdefault((split, language), str(path.absolute()))
    splits: dict[str, Paths] = {}
    for split, language in files:
        if language == config.source and (split, config.target) in files:
            splits[split] = [files[split, config.source], files[split, config.target]]
    given = any(split.startswith("test") for split in splits) if name == "test" else name in splits
    if not given:
        raise InputError(
            f"{directory}: has no {name}.{config.source} with {name}.{config.target} (or .gz, .zst)"
        )
    return splits


def _read(
    name: str, paths: Paths, config: DataConfig, base: Path | None, notes: list[str]
) -> Parallel:
    """Read a held-out set into memory, and append remarks on its files to the notes."""
    table = read_pairs(paths, config, base)
    notes += table.notes
    parallel = Parallel.of(name, table.pairs)
    if not parallel.pairs:
        raise InputError(f"{paths}: no pair has text on both sides")
    return parallel
