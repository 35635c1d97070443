"""The store: the same ids as in memory, finished after a kill, refused when damaged, shared."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2see.batches import TextExamples
from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import TokenizerConfig
from seq2see.text import shards, store, tokenizers
from seq2see.text.encoding import Encoder
from seq2see.text.store import Store, Texts, open_or_build, root_of

PAIRS = [(f"Satz {n} mit {n % 7} Wörtern", f"sentence {n % 13} of {n}") for n in range(200)]
SIZE = 30  # pairs of a shard


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    tokenizers.cached(TokenizerConfig(size=60), "de", "en", PAIRS, folder)
    return folder


@pytest.fixture
def encoder(run: Path) -> Encoder:
    return Encoder(tokenizers.load(run))


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (shards, store):
        monkeypatch.setattr(module, "PAIRS", SIZE)


def built(root: Path, run: Path, encoder: Encoder, kept: bool = False, **origin: Any) -> Store:
    return open_or_build(root, origin, Texts(PAIRS, len(PAIRS), encoder, kept), run)


@pytest.mark.parametrize("workers", [True, False])
def test_a_store_holds_the_ids_of_encoding_in_memory(
    workers: bool, run: Path, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workers:
        monkeypatch.setattr(store, "PAIRS", SIZE)
    made = built(tmp_path, run, encoder, kept=True)
    expected = list(encoder.encode(PAIRS))
    assert [*made] == expected and made[3:5] == expected[3:5] and made[-1] == expected[-1]
    assert made.sizes.tolist() == [[len(source), len(target)] for source, target in expected]
    assert made.sizes.dtype == np.int16
    assert [made.texts(line) for line in range(len(made))] == PAIRS
    (folder,) = tmp_path.iterdir()
    index = json.loads((folder / "store.json").read_bytes())
    assert len(index["shards"]) == (7 if workers else 1)
    assert {path.name for path in folder.iterdir()} == {
        "store.json",
        *(name for shard in index["shards"] for name in shard["files"]),
    }


def test_labels_and_one_tokenizer_for_both_sides(
    run: Path, tmp_path: Path, encoder: Encoder
) -> None:
    labelled = Encoder(encoder.tokenizers, reads="target", labels=["ja", "nein"])
    texts = Texts([("Satz 1", "nein"), ("Satz 2", "ja")], 2, labelled)
    made = open_or_build(tmp_path, {}, texts, run)
    assert [target for _, target in made] == [[5], [4]]
    assert made[0][0] == encoder.tokenizers.target.encode("Satz 1")


def test_large_vocabularies_take_four_bytes() -> None:
    assert (shards.id_type(1 << 16), shards.id_type((1 << 16) + 1)) == ("<u2", "<u4")


@pytest.mark.usefixtures("small_shards")
def test_finished_shards_are_kept(run: Path, encoder: Encoder, tmp_path: Path) -> None:
    class Fault(Exception):
        pass

    def interrupted() -> Any:
        yield from PAIRS[:100]
        raise Fault

    with pytest.raises(Fault):
        open_or_build(tmp_path, {}, Texts(interrupted(), len(PAIRS), encoder), run)
    (folder,) = tmp_path.iterdir()
    assert not (folder / "store.json").exists()
    with (folder / "finished.jsonl").open("a") as log:
        log.write('{"shard": 5, "pai')  # as a killed process leaves it
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.ids")}
    assert 1 <= len(kept) <= 3
    first = json.loads((folder / "finished.jsonl").read_text().splitlines()[0])
    made = built(tmp_path, run, encoder)
    assert [*made] == list(encoder.encode(PAIRS))
    for name in first["files"]:
        assert (folder / name).stat().st_mtime_ns == kept[name]


@pytest.mark.usefixtures("small_shards")
def test_a_shard_that_was_cut_is_made_again(run: Path, encoder: Encoder, tmp_path: Path) -> None:
    built(tmp_path, run, encoder)
    (folder,) = tmp_path.iterdir()
    index = json.loads((folder / "store.json").read_bytes())
    lines = [json.dumps(shard) for shard in index["shards"]]
    (folder / "finished.jsonl").write_text("\n".join(lines))
    (folder / "store.json").unlink()
    content = (folder / "00002.ids").read_bytes()
    (folder / "00002.ids").write_bytes(content[:-1])
    assert [*built(tmp_path, run, encoder)] == list(encoder.encode(PAIRS))
    assert (folder / "00002.ids").read_bytes() == content


KILLED = """
import sys
from pathlib import Path
from seq2see.text import shards, store, tokenizers
from seq2see.text.encoding import Encoder

store.PAIRS = shards.PAIRS = 30
run, root = map(Path, sys.argv[1:])
encoder = Encoder(tokenizers.load(run))

def slow():
    import time
    for n in range(200):
        time.sleep(0.01)
        yield f"Satz {n} mit {n % 7} Wörtern", f"sentence {n % 13} of {n}"

store.open_or_build(root, {}, store.Texts(slow(), 200, encoder), run)
"""


@pytest.mark.usefixtures("small_shards")
def test_a_killed_process_is_continued(run: Path, encoder: Encoder, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(run), str(tmp_path)]
    process = subprocess.Popen(command)
    while not any(log.stat().st_size for log in tmp_path.glob("*/finished.jsonl")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    (folder,) = tmp_path.iterdir()
    assert not (folder / "store.json").exists()
    before = (folder / "00000.ids").stat().st_mtime_ns
    assert [*built(tmp_path, run, encoder)] == list(encoder.encode(PAIRS))
    assert (folder / "00000.ids").stat().st_mtime_ns == before


@pytest.mark.usefixtures("small_shards")
def test_a_damaged_store_is_refused(run: Path, encoder: Encoder, tmp_path: Path) -> None:
    built(tmp_path, run, encoder)
    (folder,) = tmp_path.iterdir()
    path = folder / "00003.ids"
    content = path.read_bytes()

    def refused(name: str = "00003.ids") -> str:
        with pytest.raises(InputError) as caught:
            built(tmp_path, run, encoder)
        return str(caught.value).removeprefix(f"{folder / name}: ")

    hint = "remove its folder, and it is made again"
    path.write_bytes(content[:-2])
    cut = f"{len(content) - 2:,} bytes instead of {len(content):,}"
    assert refused() == f"damaged: {cut}; {hint}"
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert refused() == f"damaged: its SHA-256 is not the one recorded; {hint}"
    path.unlink()
    assert refused() == f"cannot read the store: No such file or directory; {hint}"
    path.write_bytes(content)
    assert len(built(tmp_path, run, encoder)) == len(PAIRS)
    (folder / "store.json").write_text("{}")
    assert refused("store.json").startswith("not the index of a store: KeyError")


def test_the_key_is_all_that_the_ids_depend_on(run: Path, encoder: Encoder, tmp_path: Path) -> None:
    for origin in ({"corpus": "a"}, {"corpus": "b"}):
        built(tmp_path, run, encoder, **origin)
    built(tmp_path, run, encoder, kept=True, corpus="a")
    built(tmp_path, run, Encoder(encoder.tokenizers, reads="target"), corpus="a")
    assert len([*tmp_path.iterdir()]) == 4


def test_a_run_has_one_store_and_a_cache_many(
    run: Path, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEQ2SEE_CACHE", raising=False)
    assert root_of(run) == run / "store"
    for corpus in ("before", "after"):
        built(root_of(run), run, encoder, corpus=corpus)
    assert len([*(run / "store").iterdir()]) == 1
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path))
    assert root_of(run) == tmp_path / "stores"
    for corpus in ("before", "after", "before"):
        built(root_of(run), run, encoder, corpus=corpus)
    assert len([*(tmp_path / "stores").iterdir()]) == 2


def test_a_folder_that_cannot_be_written_is_one_line(
    run: Path, encoder: Encoder, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match=r"file/\w+: cannot write the store: Not a directory"):
        built(tmp_path / "file", run, encoder)


@pytest.mark.usefixtures("small_shards")
def test_a_worker_that_ends_is_one_line(
    run: Path, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seq2see.text import encode_pool

    monkeypatch.setattr(encode_pool, "MODULE", "seq2see.no_such_module")
    with pytest.raises(WorkError, match="a worker that encodes the training pairs ended with code"):
        built(tmp_path, run, encoder)


def test_drawn_pairs_leave_no_files(tmp_path: Path) -> None:
    pairs = [([n, 70_000], [n % 5] * (n % 4)) for n in range(50)]
    drawn = Store.drawn(iter(pairs), 80_000, tmp_path)
    assert not [*tmp_path.iterdir()]
    assert [*drawn] == pairs and drawn.sizes[:, 1].tolist() == [n % 4 for n in range(50)]


MEASURED = """
import sys
from pathlib import Path
from seq2see.bench.memory import peak_resident_mb
from seq2see.recipe.schema import DataConfig, TokenizerConfig
from seq2see.text import corpora, store, tokenizers
from seq2see.text.encoding import Encoder

folder = Path(sys.argv[1])
corpus = corpora.load(DataConfig(train=str(folder / "pairs.tsv")))
pairs = corpus.train.pairs
tokenizers.TRAINING_PAIRS = 1000
tokenizers.cached(TokenizerConfig(size=200), "de", "en", pairs, folder, digest="x")
texts = store.Texts(pairs, len(pairs), Encoder(tokenizers.load(folder)))
made = store.open_or_build(folder / "store", {}, texts, folder)
assert len(made) == len(pairs)
print(peak_resident_mb())
"""


def test_a_larger_corpus_takes_little_more_memory(tmp_path: Path) -> None:
    peaks = []
    for count in (100_000, 300_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        with (folder / "pairs.tsv").open("w") as file:
            for n in range(count):
                file.write(f"Satz {n} von {n * 7 % 1000}\tsentence {n} of {n * 7 % 1000}\n")
        command = [sys.executable, "-c", MEASURED, str(folder)]
        environment = os.environ | {"PYTHONWARNINGS": "error"}
        output = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
        peaks.append(float(output))
    # 200,000 pairs are 70 MB as Python objects.
    assert peaks[1] - peaks[0] < 35, peaks


def test_sizes_take_two_bytes_unless_a_text_is_very_long(tmp_path: Path) -> None:
    for longest, type in ((32_766, np.int16), (32_767, np.int32)):
        made = Store.drawn([([5] * longest, [6]), ([7], [])], 10, tmp_path)
        assert made.sizes.tolist() == [[longest, 1], [1, 0]] and made.sizes.dtype == type
        lengths = TextExamples(made, sizes=made.sizes).lengths
        assert lengths.tolist() == [[longest + 1, 2], [2, 1]]
