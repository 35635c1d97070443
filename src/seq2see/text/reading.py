"""The pairs of a corpus as a stream: tables, JSONL, Parquet, aligned files, and shards of them."""

import glob
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig, Paths
from seq2see.text.headers import is_header, shown
from seq2see.text.jsonl import ENDINGS, stream_jsonl
from seq2see.text.lines import Pair, base_name, stream_aligned
from seq2see.text.parquet import stream_parquet
from seq2see.text.progress import Progress, silent
from seq2see.text.tables import stream_table
from seq2see.text.watch import Watch

WILDCARDS = "*?["
RELATIVE = "paths are relative to --data, else to the working directory"


@dataclass(frozen=True)
class Table:
    """The pairs of a file in its order, and remarks on how it was read."""

    pairs: list[Pair]
    notes: list[str]


def read_pairs(paths: Paths, config: DataConfig, base: Path | None = None) -> Table:
    """Read the pairs of a small set into memory."""
    stream = PairStream(paths, config, base)
    return Table(list(stream), stream.notes)


@dataclass
class PairStream:
    """Pairs of a table (one path) or of two aligned files (a list of two), read anew each time.

    A path with *, ? or [ stands for all files that match it, in the order of their names.
    """

    paths: Paths
    config: DataConfig
    base: Path | None = None
    progress: Progress = silent
    notes: list[str] = field(default_factory=list)  # remarks of the last reading

    def __iter__(self) -> Iterator[Pair]:
        shards = self._shards()
        watch = Watch(self.config, f"reading {self.name}", self.progress)
        watch.total = sum(_size(path) for shard in shards for path in shard)
        for shard in shards:
            yield from _pairs(shard, watch)
        self.notes = _shortened(watch.notes)

    @property
    def name(self) -> str:
        """The first path, for messages."""
        return Path(self.paths if isinstance(self.paths, str) else self.paths[0]).name

    def files(self) -> list[Path]:
        return [path for shard in self._shards() for path in shard]

    def _shards(self) -> list[tuple[Path, ...]]:
        """The files that are read one after another, each alone or aligned with others."""
        paths = [self.paths] if isinstance(self.paths, str) else self.paths
        if not isinstance(self.paths, str) and len(paths) != 2:
            rule = "two aligned files are [source, target]"
            raise InputError(f"{paths}: lists {len(paths)} files; {rule}")
        sides = [matching(resolve(path, self.base)) for path in paths]
        for path in chain(*sides):
            if not path.exists():
                raise InputError(f"{path}: no such file; {RELATIVE}")
        if len(sides[0]) != len(sides[-1]):
            counts = f"{len(sides[0])} files match {paths[0]} and {len(sides[-1])} {paths[-1]}"
            raise InputError(f"{counts}; they must pair up")
        return list(zip(*sides, strict=True))


def resolve(path: str, base: Path | None) -> Path:
    return (base or Path()) / Path(path).expanduser()


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several files."""
    return any(wildcard in str(path) for wildcard in WILDCARDS) and not path.exists()


def matching(path: Path) -> list[Path]:
    """The files that a path stands for, in the order of their names."""
    if not is_pattern(path):
        return [path]
    files = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    files = [file for file in files if file.is_file()]
    if not files:
        raise InputError(f"{path}: no file matches this pattern; {RELATIVE}")
    return files


def _pairs(shard: tuple[Path, ...], watch: Watch) -> Iterator[Pair]:
    if len(shard) == 2:
        return _stream_files(shard, watch)
    (path,) = shard
    name = base_name(path).lower()
    if name.endswith(".parquet"):
        return stream_parquet(path, watch)
    return stream_jsonl(path, watch) if name.endswith(ENDINGS) else stream_table(path, watch)


def _stream_files(paths: tuple[Path, ...], watch: Watch) -> Iterator[Pair]:
    """Yield the pairs of two aligned files; a header is left out."""
    first = True
    for source, target in stream_aligned(*paths, tick=watch.tick):
        if first and is_header((source, target), watch.config):
            files = " and ".join(path.name for path in paths)
            cells = shown((source, target))
            watch.notes.append(f"{files}: line 1 is a header ({cells}); not trained on")
        else:
            yield source, target
        first = False


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _shortened(notes: list[str], most: int = 3) -> list[str]:
    """Keep the first remarks; hundreds of shards would repeat them."""
    if len(notes) <= most:
        return notes
    return [*notes[:most], f"and {len(notes) - most:,} more remarks like these"]
