"""Parallel corpora: aligned files, TSV, directories and named corpora, checked while read."""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig, Paths
from seq2see.text import captions, multi30k
from seq2see.text.parallel import Pair as Pair
from seq2see.text.parallel import Parallel as Parallel
from seq2see.text.parallel import Splits, normalised
from seq2see.text.progress import Progress, silent

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
    from seq2see.text.separation import separated

    history = history or History()
    load_splits = _load_captions if config.corpus == "captions" else _load_files
    corpus = separated(load_splits(config, data, history, progress), history)
    return replace(
        corpus,
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
    train = _read("train", train_paths, config, data)
    val = None if val_paths is None else _read("val", val_paths, config, data)
    tests = {name: _read(name, paths, config, data) for name, paths in test_paths.items()}
    missing = [name for name, split in (("val", val), ("test", tests)) if not split]
    if missing and config.hold_out:
        progress(f"holding out {' and '.join(missing)} from {len(train.pairs):,} pairs", None)
        from seq2see.text.separation import known, split_again

        seen = known(train.pairs, history)
        if history.held_out:
            kept, *held_out = split_again(train.pairs, history, missing)
        else:
            kept, *held_out = hold_out(train.pairs, config.hold_out, len(missing), seen)
        if not kept or not all(held_out):
            learned = f" ({sum(seen):,} of them known to {history.path})" if any(seen) else ""
            raise InputError(
                f"data.train = {config.train!r}: {len(train.pairs)} pairs{learned} are too few or "
                f"too much alike to hold out {' and '.join(missing)}; "
                f"give data.{' and data.'.join(missing)}"
            )
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
    return train, val, tests


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 text file, plain or gzip, ended by LF or CR LF alone."""
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise InputError(
            f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; a corpus is UTF-8 text"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: a truncated or corrupt gzip file: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    if (nul := text.find("\0")) >= 0:
        raise InputError(f"{path}:{text.count(chr(10), 0, nul) + 1}: a NUL byte; a corpus is text")
    if not text:
        raise InputError(f"{path}: an empty file; a corpus has one sentence a line")
    if not text.strip("\ufeff\r\n\t "):
        raise InputError(f"{path}: nothing but empty lines; a corpus has one sentence a line")
    # splitlines() would also break at U+2028, U+0085 and form feeds, and misalign the two sides.
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines]


def read_aligned(*paths: Path) -> list[list[str]]:
    """Read text files that must have equally many lines."""
    texts = [read_lines(path) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise InputError(
                f"{paths[0]} has {len(texts[0])} lines and {path} {len(lines)}; they must pair up"
            )
    return texts


def read_pairs(
    paths: Paths, columns: tuple[int, int] = (0, 1), base: Path | None = None
) -> list[Pair]:
    """Read the pairs of a TSV (one path) or of two line-aligned files (a list of two)."""
    if isinstance(paths, str):
        return _read_table(_resolve(paths, base), columns)
    if len(paths) != 2:
        raise InputError(
            f"{paths}: lists {len(paths)} files; two aligned files are [source, target]"
        )
    sources, targets = read_aligned(*(_resolve(path, base) for path in paths))
    return list(zip(sources, targets, strict=True))


def hold_out(
    pairs: Sequence[Pair], count: int, parts: int, seen: Sequence[bool] = ()
) -> list[list[Pair]]:
    """Split off `parts` sets of up to `count` pairs that share no sentence with any other pair.

    A set holds at most 5 % of the pairs, but may always hold one. The rest comes first, with all
    that share a sentence with a pair marked in `seen`.
    """
    # Pairs that share a side move as one group, in an order that depends on their text alone:
    # neither the order of the file nor a sentence with two translations can leak a test sentence
    # into training.
    groups: dict[int, list[int]] = {}
    for index, root in enumerate(_group_roots(pairs)):
        groups.setdefault(root, []).append(index)
    known = {index for index, flag in enumerate(seen) if flag}
    unseen = [group for group in groups.values() if known.isdisjoint(group)]
    count = min(count, max(1, len(pairs) // 20))
    # Small groups first: a large one would fill a test set with a few similar sentences.
    large = max(1, count // 100)
    keys = [hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest() for pair in pairs]

    def order(group: list[int]) -> tuple[int, bytes]:
        size = len(group) if len(group) > large else 0
        return size, min(keys[index] for index in group)

    sizes = [0] * parts
    split_of = [0] * len(pairs)
    for group in sorted(unseen, key=order):
        part = next((part for part in range(parts) if sizes[part] + len(group) <= count), None)
        if part is not None:
            sizes[part] += len(group)
            for index in group:
                split_of[index] = part + 1
    splits: list[list[Pair]] = [[] for _ in range(parts + 1)]
    for pair, split in zip(pairs, split_of, strict=True):
        splits[split].append(pair)
    return splits


def _group_roots(pairs: Sequence[Pair]) -> list[int]:
    """Find the first pair of each pair's group, by union–find over the texts of both sides."""
    parent = list(range(len(pairs)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for side in (0, 1):
        first: dict[str, int] = {}
        for index, pair in enumerate(pairs):
            one = root(index)
            other = root(first.setdefault(normalised(pair[side]), index))
            parent[max(one, other)] = min(one, other)
    return [root(index) for index in range(len(pairs))]


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
    return splits.pop("train"), splits.pop("val"), splits


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


def _read(name: str, paths: Paths, config: DataConfig, base: Path | None) -> Parallel:
    parallel = Parallel.of(name, read_pairs(paths, config.columns, base))
    if not parallel.pairs:
        raise InputError(f"{paths}: no pair has text on both sides")
    return parallel


def _read_table(path: Path, columns: tuple[int, int]) -> list[Pair]:
    needed = max(columns) + 1
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t") if line.strip() else [""] * needed
        if len(cells) < needed:
            raise InputError(
                f"{path}:{number}: {len(cells)} tab-separated columns, "
                f"but data.columns = {list(columns)} needs {needed}"
            )
        pairs.append((cells[columns[0]], cells[columns[1]]))
    return pairs


def _resolve(path: str, base: Path | None) -> Path:
    return (base or Path()) / Path(path).expanduser()
