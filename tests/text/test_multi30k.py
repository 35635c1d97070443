"""Multi30k: given, found by name, or downloaded once and verified."""

import gzip
import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.text import corpora, multi30k

DATA = Path(os.environ.get("SEQ2SEE_DATA", ""))


def config(**keys: Any) -> DataConfig:
    return DataConfig.model_validate({"source": "de", "target": "en", **keys})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of a tiny Multi30k on this machine, and an empty cache."""
    served = tmp_path / "home"
    served.mkdir()
    for name in multi30k.SUMS:
        content = gzip.compress(f"{name}\n".encode(), mtime=0)
        (served / name).write_bytes(content)
        monkeypatch.setitem(multi30k.SUMS, name, hashlib.sha256(content).hexdigest())

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(served))
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(multi30k, "HOME", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SEQ2SEE_DATA", raising=False)
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def test_multi30k_is_downloaded_once(home: Path, tmp_path: Path) -> None:
    corpus = corpora.load(config(corpus="multi30k"))
    assert [*corpus.train.pairs] == [("train.de.gz", "train.en.gz")] and len(corpus.tests) == 2
    for file in home.iterdir():
        file.unlink()
    assert corpora.load(config(corpus="multi30k")) == corpus
    cache = tmp_path / "cache" / "seq2see" / "multi30k"
    assert {path.name for path in cache.iterdir()} == {
        name for name in multi30k.SUMS if ".fr." not in name
    }
    (cache / "val.en.gz").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"val.en.gz: cannot download .*404"):
        corpora.load(config(corpus="multi30k"))


def test_a_wrong_checksum_keeps_nothing(home: Path, tmp_path: Path) -> None:
    (home / "train.de.gz").write_bytes(gzip.compress(b"changed\n"))
    with pytest.raises(
        InputError, match=r"train.de.gz: SHA-256 \w{64} instead of \w{64}; nothing was kept"
    ):
        corpora.load(config(corpus="multi30k"))
    assert not list(tmp_path.glob("cache/**/*.gz"))


def test_without_a_network_the_alternative_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi30k, "HOME", "http://127.0.0.1:1")
    with pytest.raises(
        InputError, match=r"http://127.0.0.1:1/train.de.gz: cannot download .*--data DIR"
    ):
        corpora.load(config(corpus="multi30k"))
    with pytest.raises(InputError, match="is de, en and fr, not 'cs'"):
        corpora.load(config(corpus="multi30k", source="cs"))


def test_where_multi30k_is_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("given", "given"), ("named/multi30k", "named")):
        (tmp_path / name).mkdir(parents=True)
        for split in ("train", "val", "test"):
            (tmp_path / name / f"{split}.de").write_text(f"{text} {split}\n")
            (tmp_path / name / f"{split}.en").write_text(f"x {split}\n")
    monkeypatch.setenv("SEQ2SEE_DATA", str(tmp_path / "named"))
    assert [*corpora.load(config(corpus="multi30k")).train.pairs] == [("named train", "x train")]
    monkeypatch.chdir(tmp_path)
    given = corpora.load(config(corpus="multi30k"), Path("given"))
    assert [*given.train.pairs] == [("given train", "x train")]
    with pytest.raises(
        InputError, match=r"train.de: not a directory; --data must be the directory of multi30k"
    ):
        corpora.load(config(corpus="multi30k"), Path("given/train.de"))
    with pytest.raises(InputError, match=r"named: has no train.de with train.en"):
        corpora.load(config(corpus="multi30k"), Path("named"))


@pytest.mark.skipif(not (DATA / "multi30k").is_dir(), reason="Multi30k is not under SEQ2SEE_DATA")
def test_the_real_multi30k() -> None:
    for name, expected in multi30k.SUMS.items():
        assert hashlib.sha256((DATA / "multi30k" / name).read_bytes()).hexdigest() == expected
    corpus = corpora.load(config(corpus="multi30k"))
    assert (len(corpus.train.pairs), len(corpus.val.pairs)) == (28_994, 1014)
    assert corpus.left_out == 6
    assert {name: len(test.pairs) for name, test in corpus.tests.items()} == {
        "test_2016_flickr": 1000,
        "test_2017_flickr": 1000,
    }
    long = corpora.load(config(corpus="multi30k", join=16))
    parts = (long.train, long.val, *long.tests.values())
    assert [len(part.pairs) for part in parts] == [1813, 64, 63, 63]
