"""`seq2see compare`: files and model directories in, tables and a page out."""

import gzip
import json
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.cli import main as cli
from seq2see.cli.compare import read
from seq2see.tasks.translator import Translator

WORDS = [
    "the",
    "a",
    "small",
    "green",
    "old",
    "dog",
    "cat",
    "man",
    "sees",
    "likes",
    "house",
    "tree",
    "under",
    "and",
]
Call = Callable[..., tuple[int, str, str]]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    """The lines with a share of their words replaced."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) if draw.random() < share else word for word in line.split())
        for line in lines
    ]


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


DRAW = random.Random(3)
REFERENCES = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(3, 34))) + "." for _ in range(36)]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `seq2see compare` in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, error

    return run


def refused(call: Call, *arguments: object) -> str:
    code, out, error = call(*arguments)
    assert (code, out) == (2, "") and error.startswith("seq2see: ") and error.count("\n") == 1
    return error.removeprefix("seq2see: ").strip()


def test_it_prints_tables_verdicts_and_sentences(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    reference = write(tmp_path / "reference.txt", REFERENCES)
    base = write(tmp_path / "base.txt", noisy(REFERENCES, 0.5, 1))
    other = write(tmp_path / "另一个.txt", noisy(REFERENCES, 0.2, 3))
    code, out, error = call(
        *(
            base,
            other,
            "--reference",
            reference,
            "--source",
            reference,
            "--train",
            reference,
            "--out",
            page,
        )
    )
    assert (code, error) == (0, "") and "\x1b" not in out
    assert re.search(
        r"^另一个.txt against base.txt: better \(BLEU \+\d+\.\d\d\); \d+ sentences better",
        out,
        re.M,
    )
    assert "rare words of the source; rare: fewer than 5 times in the training text" in out
    assert out.count("\nline ") == 10 and "|bs:1000|seed:12345|" in out
    assert page.read_text(encoding="utf-8").count("<article ") == 36


def test_a_model_directory_translates_the_source(
    call: Call, trained: Path, translator: Translator, tmp_path: Path
) -> None:
    sources = ["zwei vier", "", "drei acht eins", "fünf sechs sieben neun zehn"]
    references = ["two four", "zero", "three eight one", "five six seven nine ten"]
    source, reference = (
        write(tmp_path / "source.txt", sources),
        write(tmp_path / "reference.txt", references),
    )
    guess = write(tmp_path / "guess.txt", ["one one"] * 4)
    for beam in (None, 1):
        outputs = read([guess, trained], reference, source, beam=beam, device="cpu").systems
        assert outputs == {
            "guess.txt": ["one one"] * 4,
            trained.name: translator.translate(sources, beam=beam),
        }
    code, out, error = call(
        *(
            guess,
            trained,
            "--reference",
            reference,
            "--source",
            source,
            "--json",
            "--beam",
            1,
            "--device",
            "cpu",
        )
    )
    assert (code, error, out.count("\n")) == (0, "", 1)
    printed = json.loads(out)
    assert printed.keys() >= {
        "systems",
        "signatures",
        "by_length",
        "by_rare_words",
        "most_different",
        "sentences",
    }
    assert printed["systems"][1]["bleu"].keys() == {
        "score",
        "mean",
        "ci",
        "p_bootstrap",
        "p_randomisation",
    }
    assert [system["name"] for system in printed["systems"]] == list(outputs) and printed[
        "sentences"
    ] == 4
    lines = sorted(printed["most_different"], key=lambda sentence: sentence["line"])
    assert [sentence["outputs"][trained.name] for sentence in lines] == outputs[trained.name]
    assert [sentence["source"] for sentence in lines] == sources


def test_files_are_read_as_a_corpus_is(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt.gz"
    one.write_bytes("\ufeffä b\r\n\r\nc\u2028d".encode())
    two.write_bytes(gzip.compress(b"x\ny\nz\n"))
    reference = write(tmp_path / "reference", ["1", "2", "3"])
    texts = read([one, two], reference, two, one)
    assert texts.systems == {"one.txt": ["ä b", "", "c\u2028d"], "two.txt.gz": ["x", "y", "z"]}
    assert (texts.references, texts.sources, texts.train) == (
        ["1", "2", "3"],
        ["x", "y", "z"],
        ["ä b", "", "c\u2028d"],
    )


def test_names_tell_systems_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a/x/out.txt", "b/x/out.txt", "b/y/out.txt", "out.de", "lone.txt"]
    paths = [write(tmp_path / name, ["x"]) for name in names]
    assert list(read(paths, paths[0]).systems) == [
        "a/x/out.txt",
        "b/x/out.txt",
        "y/out.txt",
        "out.de",
        "lone.txt",
    ]
    monkeypatch.chdir(tmp_path / "a" / "x")
    texts = read([Path("out.txt"), Path("../../b/y/out.txt")], Path("out.txt"))
    assert list(texts.systems) == ["x/out.txt", "y/out.txt"]
    odd = write(tmp_path / os.fsdecode(b"\xff.txt"), ["x"])
    assert list(read([odd, paths[0]], odd).systems) == ["\\udcff.txt", "out.txt"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.txt", "b.txt"], "Missing option '--reference'"),
        (["--reference", "a.txt"], "Missing argument"),
        (
            ["a.txt", "--reference", "a.txt"],
            "a.txt: only one system; compare at least two, the baseline first",
        ),
        (
            ["a.txt", "./a.txt", "--reference", "a.txt"],
            "a.txt: given twice; each system may be given once",
        ),
        (
            ["a.txt", "no.txt", "--reference", "a.txt"],
            "no.txt: cannot read: No such file or directory",
        ),
        (
            ["a.txt", "b.txt", "--reference", "no.txt"],
            "no.txt: cannot read: No such file or directory",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--source", "no.txt"],
            "no.txt: cannot read: No such file",
        ),
        (["a.txt", "empty.txt", "--reference", "a.txt"], "empty.txt: an empty file"),
        (["a.txt", "b.txt", "--reference", "empty.txt"], "empty.txt: an empty file"),
        (["a.txt", "blank.txt", "--reference", "a.txt"], "blank.txt: nothing but empty lines"),
        (["a.txt", "bytes.txt", "--reference", "a.txt"], "bytes.txt:2: byte 0xff is not UTF-8"),
        (
            ["a.txt", "three.txt", "--reference", "a.txt"],
            "three.txt has 3 lines and a.txt 2; they must pair up",
        ),
        (
            ["a.txt", "b.txt", "--reference", "three.txt"],
            "a.txt has 2 lines and three.txt 3; they must pair up",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--source", "three.txt"],
            "three.txt has 3 lines and a.txt 2; they must pair up",
        ),
        (["a.txt", "folder", "--reference", "a.txt"], "folder: a model directory; give --source"),
        (
            ["a.txt", "folder", "--reference", "a.txt", "--source", "b.txt"],
            "folder: not a model directory: it has no",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--train", "b.txt"],
            "--train b.txt: counts the rare words of the",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--out", "page.txt"],
            "--out page.txt: must end in .html",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--out", "no/a.html"],
            "--out no/a.html: there is no folder no",
        ),
        (["a.txt", "b.txt", "--reference", "a.txt", "--beam", "0"], "Invalid value for '--beam'"),
    ],
)
def test_a_mistake_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "a.txt": b"x\ny\n",
        "b.txt": b"x\nz\n",
        "three.txt": b"x\ny\nz\n",
        "empty.txt": b"",
        "blank.txt": b"\n\n",
        "bytes.txt": b"x\n\xff\n",
    }.items():
        Path(name).write_bytes(content)
    Path("folder").mkdir()
    assert refused(call, *arguments).startswith(says)


@pytest.mark.parametrize("wrong", ["later", "train", "out", "device", "seed"])
def test_mistakes_are_found_before_anything_is_translated(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("translated")

    monkeypatch.setattr(Translator, "search", fail)
    text = write(tmp_path / "text.txt", ["eins", "zwei"])
    later = tmp_path / "none.txt" if wrong == "later" else text
    arguments: list[object] = [trained, later, "--reference", text, "--source", text]
    if wrong == "train":
        arguments += ["--train", tmp_path / "none.txt"]
    if wrong == "out":
        (tmp_path / "folder.html").mkdir()
        arguments += ["--out", tmp_path / "folder.html"]
    if wrong == "device":
        arguments += ["--device", "abacus"]
    if wrong == "seed":
        monkeypatch.setenv("SACREBLEU_SEED", "often")
    says = {
        "later": f"{tmp_path / 'none.txt'}: cannot read",
        "train": f"{tmp_path / 'none.txt'}: cannot read",
        "out": f"--out {tmp_path / 'folder.html'}: cannot write: Is a directory",
        "device": "device 'abacus' is not one of auto, cpu",
        "seed": "SACREBLEU_SEED = 'often': must be a whole number, or none",
    }
    assert refused(call, *arguments).startswith(says[wrong])


def test_help_names_every_option(call: Call) -> None:
    code, out, error = call("--help")
    assert (code, error) == (0, "")
    for option in (
        "--reference",
        "--source",
        "--train",
        "--out",
        "--beam",
        "--json",
        "--device",
        "SYSTEM",
    ):
        assert option in out
