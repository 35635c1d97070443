"""Parallel corpora: aligned files, tables, directories and named corpora, checked while read."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig, Paths
from seq2see.text import captions, multi30k
from seq2see.text.headers import is_header, shown
from seq2see.text.hold_out import default_size, hold_out
from seq2see.text.jsonl import ENDINGS, read_jsonl
from seq2see.text.lines import Pair, read_aligned
from seq2see.text.tables import Table, read_table

CAPTIONS = {"train": 50_000, "val": 1000, "test": 1000, "test_structures": 1000}


@dataclass(frozen=True)
class Parallel:
    """Sentence pairs of one split, in the order of the file."""

    name: str  # "train", "val", "test_2016_flickr", …
    pairs: list[Pair]
    digest: str  # SHA-256 of the text of both sides
    dropped: int = 0  # pairs left out because a side was empty


@dataclass(frozen=True)
class Corpus:
    """Training, validation and test sets of a run."""

    train: Parallel
    val: Parallel
    tests: dict[str, Parallel]
    notes: list[str] = field(default_factory=list)  # remarks for the user on how it was read


def load(config: DataConfig, data: Path | None = None) -> Corpus:
    """Read a recipe's corpus; `data` is its directory, or the base of the recipe's paths."""
    load_splits = _load_captions if config.corpus == "captions" else _load_files
    corpus = load_splits(config, data)
    return Corpus(
        joined(corpus.train, config.join),
        joined(corpus.val, config.join),
        {name: joined(test, config.join) for name, test in corpus.tests.items()},
        corpus.notes,
    )


def joined(parallel: Parallel, count: int) -> Parallel:
    """Join every `count` consecutive pairs into one long pair; the last may be shorter."""
    if count == 1:
        return parallel
    pairs = []
    for start in range(0, len(parallel.pairs), count):
        group = parallel.pairs[start : start + count]
        source = " ".join(source for source, _ in group)
        target = " ".join(target for _, target in group)
        pairs.append((source, target))
    return _parallel(parallel.name, pairs, parallel.dropped)


def _load_files(config: DataConfig, data: Path | None) -> Corpus:
    train_paths, val_paths, test_paths = _locate(config, data)
    notes: list[str] = []
    train = _read("train", train_paths, config, data, notes)
    val = None if val_paths is None else _read("val", val_paths, config, data, notes)
    tests = {name: _read(name, paths, config, data, notes) for name, paths in test_paths.items()}
    missing = [name for name, split in (("val", val), ("test", tests)) if not split]
    if missing and config.hold_out != 0:
        kept, *held_out = _hold_out(train.pairs, missing, config, notes)
        train = _parallel("train", kept, train.dropped)
        splits = {
            name: _parallel(name, pairs) for name, pairs in zip(missing, held_out, strict=True)
        }
        val = splits.pop("val", val)
        tests |= splits
    if config.limit is not None:
        train = _parallel("train", train.pairs[: config.limit], train.dropped)
    if val is None:
        raise InputError("data.hold_out = 0, but there is no validation set; give data.val")
    return Corpus(train, val, tests, list(dict.fromkeys(notes)))


def read_pairs(paths: Paths, config: DataConfig, base: Path | None = None) -> Table:
    """Read the pairs of a table (one path) or of two line-aligned files (a list of two)."""
    if isinstance(paths, str):
        path = _resolve(paths, base)
        is_jsonl = path.name.lower().removesuffix(".gz").endswith(ENDINGS)
        return read_jsonl(path, config) if is_jsonl else read_table(path, config)
    if len(paths) != 2:
        raise InputError(
            f"{paths}: lists {len(paths)} files; two aligned files are [source, target]"
        )
    sources, targets = read_aligned(*(_resolve(path, base) for path in paths))
    pairs = list(zip(sources, targets, strict=True))
    if not is_header(pairs[0], config):
        return Table(pairs, [])
    note = f"{' and '.join(paths)}: line 1 is a header ({shown(pairs[0])}); not trained on"
    return Table(pairs[1:], [note])


def _hold_out(
    pairs: list[Pair], names: list[str], config: DataConfig, notes: list[str]
) -> list[list[Pair]]:
    """Split off the sets that the recipe does not give; the training set comes first."""
    wish = config.hold_out
    both = " and ".join(names)
    keys = " and ".join(f"data.{name}" for name in names)
    if wish is not None and wish * len(names) * 2 > len(pairs):
        most = len(pairs) // len(names) // 2
        rule = f"{both} of that size would take more than half of {len(pairs):,} pairs"
        raise InputError(f"data.hold_out = {wish}: {rule}; ask for up to {most:,}, or give {keys}")
    parts = hold_out(pairs, default_size(len(pairs)) if wish is None else wish, len(names))
    if not all(parts):
        raise InputError(
            f"data.train = {config.train!r}: {len(pairs):,} pairs are too few or too much alike "
            f"to hold out {both}; give {keys}"
        )
    sizes = [f"{len(part):,} for {name}" for name, part in zip(names, parts[1:], strict=True)]
    note = f"held out of {len(pairs):,} pairs: {' and '.join(sizes)}"
    if wish is not None and any(len(part) < wish for part in parts[1:]):
        reason = "the others share sentences with too many pairs"
        note = f"data.hold_out = {wish}, but {note}; {reason}"
    notes.append(note)
    return parts


def _load_captions(config: DataConfig, data: Path | None) -> Corpus:
    if data is not None:
        raise InputError(f"--data {data}: data.corpus 'captions' is embedded and reads no files")
    if {config.source, config.target} != {"de", "en"}:
        raise InputError(
            f"data.corpus 'captions' is de and en, not {config.source!r} and {config.target!r}"
        )
    counts = CAPTIONS | {"train": config.limit or CAPTIONS["train"]}
    splits = {}
    for name, count in counts.items():
        pairs = [(caption.source, caption.target) for caption in captions.generate(name, count)]
        if config.source == "en":
            pairs = [(english, german) for german, english in pairs]
        splits[name] = _parallel(name, pairs)
    return Corpus(splits.pop("train"), splits.pop("val"), splits)


def _locate(config: DataConfig, base: Path | None) -> tuple[Paths, Paths | None, dict[str, Paths]]:
    """Locate train, val and tests; the recipe's own paths precede the splits of a directory."""
    origin: Paths | None = str(multi30k.folder(config, base)) if config.corpus else config.train
    assert origin is not None  # a recipe has either a corpus or paths
    splits = _splits(origin, "train", config, base)
    val = splits.get("val")
    if config.val is not None:
        val = _splits(config.val, "val", config, base)["val"]
    if isinstance(config.test, dict):
        return splits["train"], val, config.test
    candidates = splits if config.test is None else _splits(config.test, "test", config, base)
    tests = {name: paths for name, paths in candidates.items() if name.startswith("test")}
    return splits["train"], val, tests


def _splits(paths: Paths, name: str, config: DataConfig, base: Path | None) -> dict[str, Paths]:
    """Return the one split a path names, or all in a directory of {split}.{language}[.gz]."""
    if not isinstance(paths, str):
        return {name: paths}
    directory = _resolve(paths, base)
    if not directory.exists():
        raise InputError(
            f"{directory}: no such file for data.{name}; "
            "paths are relative to --data, else to the working directory"
        )
    if not directory.is_dir():
        return {name: paths}
    files: dict[tuple[str, str], str] = {}
    for path in sorted(directory.iterdir()):  # a plain file sorts before its .gz and is preferred
        split, _, language = path.name.removesuffix(".gz").rpartition(".")
        if split in ("train", "val") or split.startswith("test"):
            files.setdefault((split, language), str(path.absolute()))
    splits: dict[str, Paths] = {}
    for split, language in files:
        if language == config.source and (split, config.target) in files:
            splits[split] = [files[split, config.source], files[split, config.target]]
    given = any(split.startswith("test") for split in splits) if name == "test" else name in splits
    if not given:
        raise InputError(
            f"{directory}: has no {name}.{config.source} with {name}.{config.target} (or .gz)"
        )
    return splits


def _read(
    name: str, paths: Paths, config: DataConfig, base: Path | None, notes: list[str]
) -> Parallel:
    """Read a split, and append remarks on its files to the notes."""
    table = read_pairs(paths, config, base)
    notes += table.notes
    parallel = _parallel(name, table.pairs)
    if not parallel.pairs:
        raise InputError(f"{paths}: no pair has text on both sides")
    return parallel


def _parallel(name: str, pairs: Sequence[Pair], dropped: int = 0) -> Parallel:
    """Drop pairs with an empty side, and hash the others."""
    kept = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    digest = hashlib.sha256()
    for source, target in kept:
        digest.update(f"{source}\n{target}\n".encode())  # unambiguous: no line holds a line feed
    return Parallel(name, kept, digest.hexdigest(), dropped + len(pairs) - len(kept))


def _resolve(path: str, base: Path | None) -> Path:
    return (base or Path()) / Path(path).expanduser()
