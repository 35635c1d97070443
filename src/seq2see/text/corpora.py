"""Parallel corpora: aligned files, tables, directories and named corpora, checked while read."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig, Paths
from seq2see.text import captions, multi30k
from seq2see.text.headers import is_header, shown
from seq2see.text.hold_out import default_size, hold_out
from seq2see.text.jsonl import ENDINGS, read_jsonl
from seq2see.text.lines import Pair, read_aligned
from seq2see.text.parallel import Parallel as Parallel
from seq2see.text.parallel import Splits
from seq2see.text.progress import Progress, silent
from seq2see.text.tables import Table, read_table

if TYPE_CHECKING:  # numpy is slow to import
    from seq2see.text.history import History
    from seq2see.text.separation import Corpus

CAPTIONS = {"train": 50_000, "val": 1000, "test": 1000, "test_structures": 1000}


def load(
    config: DataConfig,
    data: Path | None = None,
    history: "History | None" = None,
    progress: Progress = silent,
) -> "Corpus":
    """Read a recipe's corpus; `data` is its directory, or the base of the recipe's paths.

    A history with held-out sets is that of the run itself, which keeps them.
    """
    from seq2see.text.history import History
    from seq2see.text.separation import repetitions, separated

    history = history or History()
    load_splits = _load_captions if config.corpus == "captions" else _load_files
    corpus = separated(load_splits(config, data, history, progress), history, config.overlap)
    return replace(
        corpus,
        notes=[*corpus.notes, *repetitions(corpus.history.train)],
        train=joined(corpus.train, config.join),
        val=joined(corpus.val, config.join),
        tests={name: joined(test, config.join) for name, test in corpus.tests.items()},
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
    return Parallel.of(parallel.name, pairs, parallel.dropped, parallel.seen)


def _load_files(
    config: DataConfig, data: Path | None, history: "History", progress: Progress
) -> Splits:
    train_paths, val_paths, test_paths = _locate(config, data)
    first = train_paths if isinstance(train_paths, str) else train_paths[0]
    progress(f"reading {Path(first).name}", None)
    notes: list[str] = []
    train = _read("train", train_paths, config, data, notes)
    val = None if val_paths is None else _read("val", val_paths, config, data, notes)
    tests = {name: _read(name, paths, config, data, notes) for name, paths in test_paths.items()}
    missing = [name for name, split in (("val", val), ("test", tests)) if not split]
    if missing and config.hold_out != 0:
        progress(f"holding out {' and '.join(missing)} from {len(train.pairs):,} pairs", None)
        kept, *held_out = _hold_out(train.pairs, missing, config, history, notes)
        train = Parallel.of("train", kept, train.dropped)
        splits = {
            name: Parallel.of(name, pairs) for name, pairs in zip(missing, held_out, strict=True)
        }
        val = splits.pop("val", val)
        tests |= splits
    if config.limit is not None:
        train = Parallel.of("train", train.pairs[: config.limit], train.dropped)
    if val is None:
        raise InputError("data.hold_out = 0, but there is no validation set; give data.val")
    return Splits(train, val, tests, list(dict.fromkeys(notes)))


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
    pairs: list[Pair],
    names: list[str],
    config: DataConfig,
    history: "History",
    notes: list[str],
) -> list[list[Pair]]:
    """Split off the sets that the recipe does not give; the training set comes first."""
    from seq2see.text.separation import known, split_again

    if history.held_out:
        return split_again(pairs, history, names)
    wish = config.hold_out
    both = " and ".join(names)
    keys = " and ".join(f"data.{name}" for name in names)
    if wish is not None and wish * len(names) * 2 > len(pairs):
        most = len(pairs) // len(names) // 2
        rule = f"{both} of that size would take more than half of {len(pairs):,} pairs"
        smaller = f"ask for up to {most:,}, or " if most else ""
        raise InputError(f"data.hold_out = {wish}: {rule}; {smaller}give {keys}")
    seen = known(pairs, history)
    size = default_size(len(pairs)) if wish is None else wish
    parts = hold_out(pairs, size, len(names), seen)
    if not all(parts):
        learned = f" ({sum(seen):,} of them known to {history.path})" if any(seen) else ""
        raise InputError(
            f"data.train = {config.train!r}: {len(pairs):,} pairs{learned} are too few or too much "
            f"alike to hold out {both}; give {keys}"
        )
    sizes = [f"{len(part):,} for {name}" for name, part in zip(names, parts[1:], strict=True)]
    note = f"held out of {len(pairs):,} pairs: {' and '.join(sizes)}"
    if wish is not None and any(len(part) < wish for part in parts[1:]):
        reason = "the others share sentences with too many pairs"
        if any(seen):
            reason += f", or are known to {history.path}"
        note = f"data.hold_out = {wish}, but {note}; {reason}"
    notes.append(note)
    return parts


def _load_captions(
    config: DataConfig, data: Path | None, history: "History", progress: Progress
) -> Splits:
    if data is not None:
        raise InputError(f"--data {data}: data.corpus 'captions' is embedded and reads no files")
    if {config.source, config.target} != {"de", "en"}:
        raise InputError(
            f"data.corpus 'captions' is de and en, not {config.source!r} and {config.target!r}"
        )
    counts = CAPTIONS | {"train": config.limit or CAPTIONS["train"]}
    progress(f"generating {counts['train']:,} captions", None)
    splits = {}
    for name, count in counts.items():
        pairs = [(caption.source, caption.target) for caption in captions.generate(name, count)]
        if config.source == "en":
            pairs = [(english, german) for german, english in pairs]
        splits[name] = Parallel.of(name, pairs)
    return Splits(splits.pop("train"), splits.pop("val"), splits)


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
    parallel = Parallel.of(name, table.pairs)
    if not parallel.pairs:
        raise InputError(f"{paths}: no pair has text on both sides")
    return parallel


def _resolve(path: str, base: Path | None) -> Path:
    return (base or Path()) / Path(path).expanduser()
