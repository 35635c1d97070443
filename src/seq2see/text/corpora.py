"""Parallel text: aligned files, TSV, directories and named corpora, checked while they are read."""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig, Paths
from seq2see.text import captions, multi30k

Pair = tuple[str, str]

CAPTIONS = {"train": 50_000, "val": 1000, "test": 1000, "test_structures": 1000}


@dataclass(frozen=True)
class Parallel:
    """Pairs of sentences in the order of their file."""

    name: str  # "train", "val", "test_2016_flickr", …
    pairs: list[Pair]
    digest: str  # SHA-256 of the text of both sides
    dropped: int = 0  # pairs with an empty side, left out


@dataclass(frozen=True)
class Corpus:
    """What a run learns from, chooses by and is scored on."""

    train: Parallel
    val: Parallel
    tests: dict[str, Parallel]


def load(config: DataConfig, data: Path | None = None) -> Corpus:
    """Read the corpus that a recipe names; `data` is its directory, or what its paths are relative to."""
    found = _captions(config, data) if config.corpus == "captions" else _of_files(config, data)
    tests = {name: joined(test, config.join) for name, test in found.tests.items()}
    return Corpus(joined(found.train, config.join), joined(found.val, config.join), tests)


def joined(parallel: Parallel, count: int) -> Parallel:
    """So many consecutive pairs as one long pair; what is left at the end makes a shorter one."""
    if count == 1:
        return parallel
    groups = [
        parallel.pairs[start : start + count] for start in range(0, len(parallel.pairs), count)
    ]
    pairs = [
        (" ".join(source for source, _ in group), " ".join(target for _, target in group))
        for group in groups
    ]
    return _parallel(parallel.name, pairs, parallel.dropped)


def _of_files(config: DataConfig, data: Path | None) -> Corpus:
    where, val_paths, test_paths = _origins(config, data)
    train = _read("train", where, config, data)
    val = None if val_paths is None else _read("val", val_paths, config, data)
    tests = {name: _read(name, paths, config, data) for name, paths in test_paths.items()}
    wanted = [name for name, given in (("val", val), ("test", tests)) if not given]
    if wanted and config.hold_out:
        kept, *held = hold_out(train.pairs, config.hold_out, len(wanted))
        if not kept or not all(held):
            raise InputError(
                f"data.train = {config.train!r}: {len(train.pairs)} pairs are too few or too much alike to "
                f"hold out {' and '.join(wanted)}; give data.{' and data.'.join(wanted)}"
            )
        train = _parallel("train", kept, train.dropped)
        parts = {name: _parallel(name, pairs) for name, pairs in zip(wanted, held, strict=True)}
        val = parts.pop("val", val)
        tests |= parts
    if config.limit is not None:
        train = _parallel("train", train.pairs[: config.limit], train.dropped)
    if val is None:
        raise InputError("data.hold_out = 0, but nothing to validate on; give data.val")
    return Corpus(train, val, tests)


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file, plain or gzip; only a line feed ends a line, with or without CR."""
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
    # Not splitlines(): it also breaks at U+2028, U+0085 and form feeds, and puts the two sides out of step.
    return [
        line.removesuffix("\r")
        for line in text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    ]


def read_aligned(*paths: Path) -> list[list[str]]:
    """The lines of text files that must have as many."""
    first, *others = [(path, read_lines(path)) for path in paths]
    for path, lines in others:
        if len(lines) != len(first[1]):
            raise InputError(
                f"{first[0]} has {len(first[1])} lines and {path} {len(lines)}; they must pair up"
            )
    return [first[1], *(lines for _, lines in others)]


def read_pairs(
    paths: Paths, columns: tuple[int, int] = (0, 1), base: Path | None = None
) -> list[Pair]:
    """The pairs of a TSV (one path), or of two files that are aligned line by line (a list of two)."""
    if isinstance(paths, str):
        return _read_table(_resolve(paths, base), columns)
    if len(paths) != 2:
        raise InputError(
            f"{paths}: lists {len(paths)} files; two aligned files are [source, target]"
        )
    source, target = (_resolve(path, base) for path in paths)
    left, right = read_lines(source), read_lines(target)
    if len(left) != len(right):
        raise InputError(
            f"{source} has {len(left)} lines but {target} has {len(right)}; aligned files have as many lines"
        )
    return list(zip(left, right, strict=True))


def hold_out(pairs: Sequence[Pair], count: int, parts: int) -> list[list[Pair]]:
    """Split off parts of `count` pairs, at most 5 % each (but one), that share no sentence with the rest."""
    # Whole groups of pairs that share either side move together, in an order that hangs on their text alone:
    # neither the order of the file nor a sentence with two translations lets a test sentence into training.
    groups: dict[int, list[int]] = {}
    for index, root in enumerate(_groups(pairs)):
        groups.setdefault(root, []).append(index)
    count = min(count, max(1, len(pairs) // 20))
    large = max(
        1, count // 100
    )  # small groups first: a large one would make a test of few, much alike sentences
    keys = [hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest() for pair in pairs]
    ordered = sorted(
        groups.values(),
        key=lambda group: (
            len(group) if len(group) > large else 0,
            min(keys[index] for index in group),
        ),
    )
    sizes, part_of = [0] * parts, [0] * len(pairs)
    for group in ordered:
        part = next((part for part in range(parts) if sizes[part] + len(group) <= count), None)
        if part is not None:
            sizes[part] += len(group)
            for index in group:
                part_of[index] = part + 1
    split: list[list[Pair]] = [[] for _ in range(parts + 1)]
    for pair, part in zip(pairs, part_of, strict=True):
        split[part].append(pair)
    return split


def _groups(pairs: Sequence[Pair]) -> list[int]:
    """For each pair the first of its group, by union–find over the texts of both sides."""
    parent = list(range(len(pairs)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for side in (0, 1):
        first: dict[str, int] = {}
        for index, pair in enumerate(pairs):
            # Case and spacing do not make another sentence.
            one, other = (
                root(index),
                root(first.setdefault(" ".join(pair[side].split()).casefold(), index)),
            )
            parent[max(one, other)] = min(one, other)
    return [root(index) for index in range(len(pairs))]


def _captions(config: DataConfig, data: Path | None) -> Corpus:
    if data is not None:
        raise InputError(f"--data {data}: data.corpus 'captions' is embedded and reads no files")
    if {config.source, config.target} != {"de", "en"}:
        raise InputError(
            f"data.corpus 'captions' is de and en, not {config.source!r} and {config.target!r}"
        )
    splits = {}
    for name, count in CAPTIONS.items():
        drawn = captions.generate(name, config.limit or count if name == "train" else count)
        pairs = [(caption.source, caption.target) for caption in drawn]
        if config.source == "en":
            pairs = [(english, german) for german, english in pairs]
        splits[name] = _parallel(name, pairs)
    return Corpus(splits.pop("train"), splits.pop("val"), splits)


def _origins(config: DataConfig, base: Path | None) -> tuple[Paths, Paths | None, dict[str, Paths]]:
    """Where train, val and each test stand; what the recipe names goes before what a directory holds."""
    where: Paths | None = str(multi30k.folder(config, base)) if config.corpus else config.train
    assert where is not None  # the recipe holds either a corpus or paths
    splits = _splits(where, "train", config, base)
    val, tests = splits.get("val"), config.test
    if config.val is not None:
        val = _splits(config.val, "val", config, base)["val"]
    if not isinstance(tests, dict):
        found = splits if tests is None else _splits(tests, "test", config, base)
        tests = {name: paths for name, paths in found.items() if name.startswith("test")}
    return splits["train"], val, tests


def _splits(paths: Paths, name: str, config: DataConfig, base: Path | None) -> dict[str, Paths]:
    """The one split that a path names, or all those in a directory of {split}.{language}[.gz]."""
    if not isinstance(paths, str):
        return {name: paths}
    directory = _resolve(paths, base)
    if not directory.exists():
        raise InputError(
            f"{directory}: no such file for data.{name}; relative to --data, else to the working folder"
        )
    if not directory.is_dir():
        return {name: paths}
    sides: list[dict[str, str]] = [{}, {}]
    for path in sorted(directory.iterdir()):  # a plain file stands before its .gz, and is taken
        split, _, language = path.name.removesuffix(".gz").rpartition(".")
        for side, code in zip(sides, (config.source, config.target), strict=True):
            if language == code and (split in ("train", "val") or split.startswith("test")):
                side.setdefault(split, str(path.absolute()))
    both: dict[str, Paths] = {
        split: [path, sides[1][split]] for split, path in sides[0].items() if split in sides[1]
    }
    if name not in both and not (name == "test" and any(split.startswith(name) for split in both)):
        raise InputError(
            f"{directory}: no {name}.{config.source} with {name}.{config.target} (or .gz) in there"
        )
    return both


def _read(name: str, paths: Paths, config: DataConfig, base: Path | None) -> Parallel:
    parallel = _parallel(name, read_pairs(paths, config.columns, base))
    if not parallel.pairs:
        raise InputError(f"{paths}: no pair has text on both sides")
    return parallel


def _read_table(path: Path, columns: tuple[int, int]) -> list[Pair]:
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t") if line.strip() else [""] * (max(columns) + 1)
        if len(cells) <= max(columns):
            raise InputError(
                f"{path}:{number}: {len(cells)} tab-separated columns, but data.columns = {list(columns)} "
                f"needs {max(columns) + 1}"
            )
        pairs.append((cells[columns[0]], cells[columns[1]]))
    return pairs


def _parallel(name: str, pairs: Sequence[Pair], dropped: int = 0) -> Parallel:
    kept = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    digest = hashlib.sha256()
    for source, target in kept:
        digest.update(
            f"{source}\n{target}\n".encode()
        )  # unambiguous, since no line holds a line feed
    return Parallel(name, kept, digest.hexdigest(), dropped + len(pairs) - len(kept))


def _resolve(path: str, base: Path | None) -> Path:
    return (base or Path()) / Path(path).expanduser()
