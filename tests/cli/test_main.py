"""The command line: one line for every mistake, JSON alone where JSON is asked for, lines out for lines in."""

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from seq2see.cli import main as cli
from seq2see.errors import WorkError
from seq2see.tasks.translator import Translator

COMMANDS = [
    [],
    ["demo"],
    ["train"],
    ["translate"],
    ["score"],
    ["evaluate"],
    ["compare"],
    ["generate"],
    ["fill"],
    ["classify"],
    ["see"],
    ["see", "attention"],
    ["see", "masks"],
    ["see", "positions"],
    ["see", "scaling"],
    ["see", "norms"],
    ["export"],
    ["bench"],
    ["bench", "train"],
    ["bench", "translate"],
]


class Call:
    """Runs the command line in this process and keeps what it printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, error

    def refused(self, *arguments: object, code: int = 2, stdin: bytes = b"") -> str:
        """The one line of a call that must fail."""
        found, out, error = self(*arguments, stdin=stdin)
        assert (found, out) == (code, "")
        assert error.startswith("seq2see: ") and error.endswith("\n") and error.count("\n") == 1
        return error.removeprefix("seq2see: ").strip()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys)


def process(*arguments: object, **keys: Any) -> subprocess.CompletedProcess[bytes]:
    command = [
        sys.executable,
        "-c",
        "from seq2see.cli.main import main; main()",
        *map(str, arguments),
    ]
    environment = os.environ | keys.pop("environment", {})
    return subprocess.run(command, capture_output=True, timeout=60, env=environment, **keys)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_every_command(call: Call, command: list[str]) -> None:
    code, out, error = call(*command, "--help")
    assert (code, error) == (0, "")
    assert (
        out.splitlines()[0]
        == " ".join(["Usage: seq2see", *command, "[OPTIONS]"])
        + out.splitlines()[0].partition("[OPTIONS]")[2]
    )
    assert "Show this message and exit." in out


def test_help_does_not_wait_for_torch() -> None:
    program = (
        "import sys, contextlib, io\nfrom seq2see.cli.main import main\n"
        f"for command in {COMMANDS!r}:\n"
        "    sys.argv = ['seq2see', *command, '--help']\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        main()\n"
        "print(sorted({'torch', 'sacrebleu', 'matplotlib', 'sentencepiece', 'spacy'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


def test_the_bare_name_gives_the_tour(call: Call) -> None:
    assert call() == call("--help")
    assert "Missing command" in call.refused("see")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["train"], "Missing argument"),
        (["train", "tiny", "--frobnicate"], "No such option: --frobnicate"),
        (
            ["train", "no/such.toml"],
            "no/such.toml: no such recipe; a path, or one that is shipped: ",
        ),
        (
            ["train", "tiny", "--set", "model.widht=8"],
            "tiny: unknown key model.widht; did you mean model.width?",
        ),
        (["train", "tiny", "--set", "nonsense"], "--set 'nonsense': write it as section.key=value"),
        (
            ["train", "tiny", "--minutes", "-1"],
            "tiny: train.minutes = -1.0: input should be greater than 0",
        ),
        (["train", "tiny", "--minutes", "soon"], "Invalid value for '--minutes': "),
        (["translate", "Hallo"], "Missing option '--model'"),
        (["translate", "--model", "no/such", "Hallo"], "no/such: no such model directory"),
        (["translate", "--model", "no/such", "--beam", "0", "a"], "Invalid value for '--beam': "),
        (
            ["translate", "--model", "no/such", "--beam", "many", "a"],
            "Invalid value for '--beam': ",
        ),
        (
            ["translate", "--model", "no/such", "--n-best", "0", "a"],
            "Invalid value for '--n-best': ",
        ),
        (
            ["translate", "--model", "no/such", "--engine", "ct2", "a"],
            "no/such: no such model directory",
        ),
        (
            ["translate", "--model", "no/such", "--engine", "ct3", "a"],
            "--engine 'ct3' is not one of torch, ct2",
        ),
        (
            ["translate", "--model", "m", "--engine", "ct2", "--device", "cuda", "a"],
            "--device cuda: --engine ct2",
        ),
        (["export", "--model", "no/such"], "Missing option '--out'"),
        (["export", "--model", "no/such", "--out", "a"], "no/such: no such model directory"),
        (
            ["export", "--model", "no/such", "--out", "a", "--quantization", "int4"],
            "--quantization 'int4' is not one",
        ),
        (
            ["export", "--model", "no/such", "--out", "a", "--reference", "b"],
            "--reference needs the --source",
        ),
        (["score", "--model", "no/such", "--source", "a"], "Missing option '--target'"),
        (["evaluate", "--model", "no/such", "--source", "a"], "Missing option '--reference'"),
        (
            ["evaluate", "--model", "m", "--source", "no.txt", "--reference", "no.txt"],
            "no.txt: cannot read",
        ),
        (
            ["see", "attention", "--model", "m", "Hallo", "--out", "a.txt"],
            "--out a.txt: must end in .png or .svg",
        ),
        (
            ["see", "attention", "--model", "m", "Hallo", "--out", "no/a.png"],
            "--out no/a.png: there is no folder no",
        ),
        (["bench", "train", "no.toml"], "no.toml: no such recipe"),
        (["bench", "translate"], "Missing option '--model'"),
        (["bench", "translate", "--model", "no/such"], "no/such: no such model directory"),
        (["bench", "translate", "--model", "m", "--beam", "0"], "Invalid value for '--beam': "),
        (["bench", "translate", "--model", "m", "--batch", "0"], "Invalid value for '--batch': "),
        (
            ["bench", "translate", "--model", "m", "--threads", "0"],
            "Invalid value for '--threads': ",
        ),
        (
            ["bench", "translate", "--model", "m", "--threads", "9999"],
            "--threads 9999: more than the ",
        ),
        (["bench", "translate", "--model", "m", "--limit", "0"], "Invalid value for '--limit': "),
        (
            ["bench", "translate", "--model", "m", "--seconds", "-1"],
            "Invalid value for '--seconds': ",
        ),
        (
            ["bench", "translate", "--model", "m", "--reference", "a"],
            "--reference needs the --source",
        ),
        (["bench", "translate", "--model", "m", "--source", "no.txt"], "no.txt: cannot read"),
        (
            ["bench", "translate", "--model", "m", "--out", "a.pdf"],
            "--out a.pdf: must end in .png or .svg",
        ),
    ],
)
def test_a_mistake_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call.refused(*arguments).startswith(says)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_with_a_model(call: Call, trained: Path, tmp_path: Path) -> None:
    assert "device 'abacus' is not one of auto, cpu" in call.refused(
        "translate", "--model", trained, "--device", "abacus"
    )
    assert (
        call.refused("translate", "--model", trained, "--n-best", 5, "a")
        == "--n-best 5 must be at most the beam, 4"
    )
    says = call.refused("translate", "--model", trained, "--beam", 2, "--n-best", 3, "a")
    assert says == "--n-best 3 must be at most the beam, 2"
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("eins\n")
    two.write_text("one\ntwo\n")
    says = call.refused("evaluate", "--model", trained, "--source", one, "--reference", two)
    assert says == f"{one} has 1 lines and {two} 2; they must pair up"
    one.write_bytes(b"eins\n\xff\n")
    says = call.refused("evaluate", "--model", trained, "--source", one, "--reference", two)
    assert says.startswith(f"{one}:2: byte 0xff is not UTF-8")
    assert call.refused(
        "see", "attention", "--model", trained, " ", "--out", tmp_path / "a.png"
    ).endswith("is empty")
    (tmp_path / "folder.png").mkdir()
    says = call.refused(
        "see", "attention", "--model", trained, "eins", "--out", tmp_path / "folder.png"
    )
    assert says == f"--out {tmp_path / 'folder.png'}: cannot write: Is a directory"


def test_input_that_is_not_utf8_names_its_line(call: Call, trained: Path) -> None:
    says = call.refused("translate", "--model", trained, stdin=b"eins\nzwei \xfc\n")
    assert says == "stdin:2: not UTF-8 at byte 5 of the line"


def test_mistakes_in_training(call: Call, toy: Any, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    says = call.refused("train", toy.path, "--out", tmp_path / "file" / "run")
    assert says == f"{tmp_path / 'file' / 'run'}: cannot write the run here: Not a directory"
    says = call.refused("train", toy.path, "--out", tmp_path / "file")
    assert says == f"{tmp_path / 'file'}: cannot write the run here: File exists"
    assert "holds a run already" in call.refused("train", toy.path, "--out", trained)
    says = call.refused(
        "train", toy.path, "--out", trained, "--resume", "--set", f"data.train={tmp_path}"
    )
    assert says.startswith(
        f"{trained}: was begun with data.train = '{trained.parent / 'pairs.tsv'}' and cannot go on"
    )
    says = call.refused("train", toy.path, "--out", tmp_path / "run", "--device", "abacus")
    assert says.startswith("device 'abacus'") and not (tmp_path / "run").exists()
    says = call.refused(
        "train",
        toy.path,
        "--out",
        tmp_path / "run",
        "--set",
        "data.train=none.tsv",
        "--data",
        tmp_path,
    )
    assert says.startswith(f"{tmp_path / 'none.tsv'}: no such file for data.train")


def test_work_that_fails_is_code_1_and_what_is_kept_is_named(
    call: Call, toy: Any, tmp_path: Path
) -> None:
    settings = [
        *("--set", "train.lr=1e38"),
        *("--set", "train.warmup=1"),
        *("--set", "train.clip=0"),
    ]
    code, out, error = call(
        "train", toy.path, "--out", tmp_path / "run", "--device", "cpu", *settings
    )
    assert (code, out) == (1, "")
    last = error.splitlines()[-1]
    assert last.startswith("seq2see: update ") and "checkpoint" in last and "Traceback" not in error


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (WorkError("two\nlines"), 1, "two lines"),
        (
            KeyboardInterrupt(),
            1,
            "stopped; if this was a training, --resume goes on from its last checkpoint",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            1,
            "not enough memory; a smaller model or train.batch_tokens may fit",
        ),
        (
            OSError(28, "No space left on device", "/full/log.jsonl"),
            1,
            "/full/log.jsonl: No space left on device",
        ),
    ],
)
def test_whatever_stops_the_work_is_one_line(
    call: Call,
    toy: Any,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    code: int,
    says: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("seq2see.tasks.run.train", fail)
    assert call.refused("train", toy.path, code=code) == says


def test_a_mistake_of_ours_is_not_hidden(
    call: Call, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("seq2see.tasks.run.train", fail)
    monkeypatch.setattr(sys, "argv", ["seq2see", "train", str(toy.path)])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_training_prints_nothing_on_stdout_and_ends_well(
    call: Call, toy: Any, tmp_path: Path
) -> None:
    arguments = (
        "train",
        toy.path,
        "--out",
        tmp_path / "run",
        "--device",
        "cpu",
        "--set",
        "train.steps=2",
    )
    code, out, error = call(*arguments)
    assert (code, out) == (0, "") and "BLEU" in error and "Traceback" not in error
    code, out, error = call(*arguments, "--resume")
    assert (code, out, error) == (0, "", f"{tmp_path / 'run'}: this run is finished\n")


def test_the_run_goes_where_its_recipe_is_called(
    call: Call, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("train", toy.path, "--device", "cpu", "--minutes", "0.001")[0] == 0
    assert (tmp_path / "runs" / "toy" / "scorecard.json").exists()


def test_lines_in_are_lines_out(call: Call, trained: Path, translator: Translator) -> None:
    stdin = "\ufeffzwei vier\r\n\ndrei acht eins\n   \nzwei vier\u2028drei\x85acht\x0ceins\nneun".encode()
    code, out, error = call("translate", "--model", trained, "--device", "cpu", stdin=stdin)
    assert (code, error) == (0, "")
    lines = out.split("\n")
    assert len(lines) == 7 and lines.pop() == ""
    assert lines[:4] == ["two four", "", "three eight one", ""]
    assert lines[5] == translator.translate(["neun"])[0]


def test_no_line_in_is_no_line_out(call: Call, trained: Path) -> None:
    assert call("translate", "--model", trained, stdin=b"") == (0, "", "")


def test_line_numbers_go_on_over_batches(
    call: Call, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "LINES_AT_ONCE", 2)
    stdin = b"eins\n" * 4 + b"zwei " * 200 + b"\nvier\n"
    code, out, error = call(
        "translate", "--model", trained, "--beam", 1, "--n-best", 1, stdin=stdin
    )
    assert code == 0 and out.count("\n") == 6 and error.startswith("line 5: longer than")
    monkeypatch.setattr(cli, "LINES_AT_ONCE", 1)
    _, out, _ = call("translate", "--model", trained, "--n-best", 2, stdin=b"eins\n\nzwei\n")
    assert [line.split(" ||| ")[0] for line in out.splitlines()] == ["0", "0", "1", "2", "2"]


def test_n_best_is_printed_as_moses_does(call: Call, trained: Path, translator: Translator) -> None:
    code, out, _ = call(
        "translate", "--model", trained, "--n-best", 3, "zwei vier", "drei acht eins"
    )
    rows = [line.split(" ||| ") for line in out.splitlines()]
    assert code == 0 and [row[0] for row in rows] == ["0"] * 3 + ["1"] * 3
    for row, each in zip(
        rows, translator.search(["zwei vier", "drei acht eins"], n_best=3)[0], strict=False
    ):
        assert row[1:] == [each.text, f"{each.score:.4f}"]


def test_json_is_one_object_a_line_and_nothing_else(call: Call, trained: Path) -> None:
    long = "zwei " * 200
    code, out, error = call(
        "translate", "--model", trained, "--json", "--n-best", 2, "zwei vier", "", long
    )
    assert code == 0 and "longer than" in error
    first, empty, third = map(json.loads, out.splitlines())
    assert first["source"] == "zwei vier" and third["source"] == long
    best, second = first["translations"]
    assert best.keys() == {"text", "log_probability", "score"} and best["text"] == "two four"
    assert best["score"] > second["score"]
    assert empty["translations"] == [{"text": "", "log_probability": 0.0, "score": 0.0}]


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (
            [],
            "\ufeffzwei vier\r\n\ndrei acht eins\n   \nzwei vier\u2028drei\x85acht\x0ceins\nneun".encode(),
        ),
        ([], b""),
        ([], b"eins\nzwei \xfc\n"),
        (["--beam", "1"], b"eins\n" * 4 + b"zwei " * 200 + b"\nvier\n"),
        (["--n-best", "2", "zwei vier", "drei acht eins", ""], b""),
        (["--n-best", "5", "zwei vier"], b""),
    ],
)
def test_either_engine_prints_the_same(
    call: Call, trained: Path, exported: Path, arguments: list[str], stdin: bytes
) -> None:
    ours = call("translate", "--model", trained, "--device", "cpu", *arguments, stdin=stdin)
    assert (
        call("translate", "--model", exported, "--engine", "ct2", *arguments, stdin=stdin) == ours
    )


def test_either_engine_gives_the_same_json(call: Call, trained: Path, exported: Path) -> None:
    texts = ["--json", "zwei vier", "", "zwei " * 200, "漢"]
    code, out, error = call("translate", "--model", exported, "--engine", "ct2", *texts)
    assert code == 0 and "line 3: longer than" in error and error.count("\n") == 1
    ours = call("translate", "--model", trained, *texts)[1]
    for one, other in zip(
        map(json.loads, ours.splitlines()), map(json.loads, out.splitlines()), strict=True
    ):
        (best,), (theirs,) = one.pop("translations"), other.pop("translations")
        assert (
            one == other and best.keys() == theirs.keys() and best.pop("text") == theirs.pop("text")
        )
        assert list(best.values()) == pytest.approx(list(theirs.values()), abs=1e-3)


def test_an_engine_refuses_the_others_directory(call: Call, trained: Path, exported: Path) -> None:
    says = call.refused("translate", "--model", trained, "--engine", "ct2", "eins")
    assert says == f"{trained}: not exported; first: seq2see export --model {trained} --out DIR"
    for command in (
        ["translate", "eins"],
        ["evaluate", "--source", __file__, "--reference", __file__],
    ):
        says = call.refused(*command, "--model", exported)
        assert (
            says == f"{exported}: exported for CTranslate2; it is for translate --engine ct2 alone"
        )


def test_export_says_what_it_found(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.ct2.calibration.CALIBRATION", 0.0)
    (tmp_path / "source.txt").write_text("zwei vier\nneun sieben fünf zehn\n", encoding="utf-8")
    (tmp_path / "reference.txt").write_text("two four\nnine seven five ten\n", encoding="utf-8")
    files = ["--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt"]
    code, out, error = call("export", "--model", trained, "--out", tmp_path / "a", *files, "--json")
    found = json.loads(out)
    assert (
        (code, error) == (0, "")
        and found["precision"] == "int8"
        and found["bleu"] == pytest.approx(100)
    )
    code, out, error = call("export", "--model", trained, "--out", tmp_path / "b", *files[:2])
    assert (
        (code, error) == (0, "")
        and out.startswith(f"{tmp_path / 'b'}: int8, ")
        and "BLEU" not in out
    )
    code, out, _ = call("translate", "--engine", "ct2", "--model", tmp_path / "b", "zwei vier")
    assert (code, out) == (0, "two four\n")
    code, out, _ = call(
        "export", "--model", trained, "--out", tmp_path / "c", "--shortlist", 8, "--json"
    )
    assert (
        code == 0
        and json.loads(out)["shortlist"] == 8
        and (tmp_path / "c" / "vmap.txt").stat().st_size > 0
    )
    says = call.refused("export", "--model", trained, "--out", tmp_path / "b")
    assert says == f"--out {tmp_path / 'b'}: already exists; an export needs a new folder"


def test_evaluate_gives_sacrebleus_score(
    call: Call, trained: Path, tmp_path: Path, translator: Translator
) -> None:
    sources, references = (
        ["zwei vier", "drei acht eins", "fünf sechs"],
        ["two four", "three eight one", "five five"],
    )
    (tmp_path / "source.txt").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (tmp_path / "reference.txt").write_text("\r\n".join(references), encoding="utf-8")
    files = ("--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt")
    code, out, error = call("evaluate", "--model", trained, *files, "--json")
    assert (code, error) == (0, "")
    found = json.loads(out)
    outputs = translator.translate(sources)
    assert found["bleu"] == sacrebleu.corpus_bleu(outputs, [references]).score
    assert found["chrf"] == sacrebleu.corpus_chrf(outputs, [references]).score
    assert found["accuracy"] == pytest.approx(2 / 3) and "|tok:13a|" in found["signature"]
    code, out, _ = call("evaluate", "--model", trained, *files, "--beam", 1)
    assert code == 0 and out.startswith("BLEU ") and found["signature"] in out


def test_evaluate_counts_the_errors(
    call: Call, trained: Path, tmp_path: Path, translator: Translator
) -> None:
    sources, references = (
        ["zwei vier", "drei acht eins"],
        ["two four", "three eight one and one more"],
    )
    (tmp_path / "source.txt").write_text("\n".join(sources), encoding="utf-8")
    (tmp_path / "reference.txt").write_text("\n".join(references), encoding="utf-8")
    files = ("--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt")
    code, out, error = call("evaluate", "--model", trained, *files, "--json")
    errors = json.loads(out)["errors"]
    assert (code, error) == (0, "") and errors["sentences"] == 2
    assert (
        errors["dropped"]["examples"] == [["and one more", 2]] and errors["lengths"]["short"] == 0.5
    )
    assert errors["missing_words"] == [["and", 1], ["more", 1], ["one", 1]]
    _, out, _ = call("evaluate", "--model", trained, *files)
    assert (
        out.startswith("BLEU ")
        and "\n\nErrors in 2 sentences" in out
        and "and one more (line 2)" in out
    )


def test_written_translations_give_sacrebleus_command_the_same_scores(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = [
        "two\r four\u2028!",
        "\x85three\x0ceight one\n",
        "",
        " five  six\u2029 ",
    ]  # as words of a vocabulary may be
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: odd)
    source, reference, path = (tmp_path / f"{name}.txt" for name in ("source", "reference", "out"))
    source.write_text("eins\nzwei\ndrei\nvier\n", encoding="utf-8")
    reference.write_text("two four!\nthree eight one more\nseven\nfive six\n", encoding="utf-8")
    files = ("--source", source, "--reference", reference)
    found = json.loads(call("evaluate", "--model", trained, *files, "--out", path, "--json")[1])
    assert path.read_text(encoding="utf-8").split("\n") == [
        "two  four !",
        " three eight one",
        "",
        " five  six  ",
        "",
    ]
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        reference,
        "-i",
        path,
        "-m",
        "bleu",
        "chrf",
        "-w",
        "15",
    ]
    bleu, chrf = json.loads(
        subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    )
    assert (bleu["score"], bleu["signature"]) == (found["bleu"], found["signature"])
    assert (chrf["score"], chrf["signature"]) == (found["chrf"], found["chrf_signature"])
    says = call.refused("evaluate", "--model", trained, *files, "--out", reference)
    assert says == f"--out {reference}: is an input; it is not overwritten"
    says = call.refused(
        "evaluate", "--model", trained, *files, "--out", tmp_path / "no" / "out.txt"
    )
    assert says == f"--out {tmp_path / 'no' / 'out.txt'}: there is no folder {tmp_path / 'no'}"


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    files = {
        "source": "zwei vier\n\ndrei acht eins\n",
        "target": "two four\nseven\tten\nthree eight one\n",
    }
    files["target2"] = "four two\nseven\tten\nthree eight one one\n"
    for name, text in files.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    return {name: tmp_path / name for name in files}


def options(texts: dict[str, Path]) -> list[object]:
    return [word for name, path in texts.items() for word in (f"--{name}", path)]


def test_score_gives_a_line_a_pair(
    call: Call, trained: Path, texts: dict[str, Path], translator: Translator
) -> None:
    del texts["target2"]
    sources, targets = (
        ["zwei vier", "", "drei acht eins"],
        ["two four", "seven\tten", "three eight one"],
    )
    expected = translator.score_tokens(sources, targets)
    code, out, error = call("score", "--model", trained, *options(texts), "--device", "cpu")
    rows = [line.split("\t", 2) for line in out.splitlines()]
    assert code == 0 and [row[2] for row in rows] == targets
    assert [float(row[0]) for row in rows] == pytest.approx(
        [each.log_probability for each in expected], abs=1e-4
    )
    assert [int(row[1]) for row in rows] == [len(each.tokens) for each in expected]
    assert error.startswith("3 pairs · ") and error.count("\n") == 1 and "likelier" not in error

    code, out, error = call("score", "--model", trained, *options(texts), "--json")
    found = json.loads(out)
    assert (code, error) == (0, "") and found.keys() == {
        "perplexity",
        "log_probability",
        "tokens",
        "pairs",
    }
    total = sum(each["log_probability"] for each in found["pairs"])
    assert found["log_probability"] == pytest.approx(total)
    assert found["tokens"] == sum(len(each.tokens) for each in expected)
    assert found["perplexity"] == pytest.approx(math.exp(-total / found["tokens"]))
    for each, pair in zip(expected, found["pairs"], strict=True):
        assert pair.keys() == {"log_probability", "tokens", "log_probabilities"}
        assert pair["tokens"] == each.tokens and pair["tokens"][-1] == "</s>"
        assert pair["log_probabilities"] == pytest.approx(each.log_probabilities, abs=1e-4)


def test_score_says_which_of_two_is_likelier(
    call: Call, trained: Path, texts: dict[str, Path]
) -> None:
    code, out, error = call("score", "--model", trained, *options(texts))
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and [row[2] for row in rows] == [
        "1",
        "0",
        "1",
    ]  # the same twice is a tie, and no win
    assert rows[1][0] == rows[1][1] and float(rows[0][0]) > float(rows[0][1])
    assert error.endswith("the first is the likelier in 66.7%\n")
    found = json.loads(call("score", "--model", trained, *options(texts), "--json")[1])
    assert found["accuracy"] == pytest.approx(2 / 3) and len(found["pairs2"]) == 3
    assert found["pairs"][1] == found["pairs2"][1] and found["pairs"][0] != found["pairs2"][0]


def test_texts_that_cannot_be_scored(
    call: Call,
    trained: Path,
    texts: dict[str, Path],
    translator: Translator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Translator, "force", None)  # each mistake is found before any work
    source, target, other = texts.values()
    arguments = ["score", "--model", trained, *options(texts)]
    for name, path in texts.items():
        kept = path.read_bytes()
        path.write_text("one\ntwo\n" + "漢 " * 200)
        count = len(translator.tokenizers.source.encode("漢 " * 200))
        says = f"{path}:3: {count} tokens; the model takes at most data.max_length = 128"
        assert call.refused(*arguments) == says, name
        path.write_bytes(b"one\n\xff\n")
        assert call.refused(*arguments).startswith(f"{path}:2: byte 0xff is not UTF-8")
        path.write_bytes(b"")
        assert (
            call.refused(*arguments) == f"{path}: an empty file; a corpus has one sentence a line"
        )
        path.unlink()
        assert call.refused(*arguments) == f"{path}: cannot read: No such file or directory"
        path.write_bytes(kept)
    other.write_text("one\n")
    assert call.refused(*arguments) == f"{source} has 3 lines and {other} 1; they must pair up"
    target.write_text("one\n" * 4)
    assert call.refused(*arguments) == f"{source} has 3 lines and {target} 4; they must pair up"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_see_attention_draws_a_file(call: Call, trained: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    code, out, error = call("see", "attention", "--model", trained, "drei acht eins", "--out", path)
    assert (code, out, error) == (0, "three eight one\n", "")
    assert path.read_bytes()[:5] == (b"\x89PNG\r" if ending == "png" else b"<?xml")


def test_bench_prints_what_others_rely_on(
    call: Call, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.bench.train.MATRIX", 64)
    code, out, error = call(
        "bench", "train", toy.path, "--seconds", 0.2, "--json", "--device", "cpu"
    )
    assert (code, error) == (0, "")
    found = json.loads(out)
    assert (
        found["target_tokens_per_second"] > 0
        and found["utilisation"] > 0
        and found["peak_memory_mb"] > 50
    )


def test_a_reader_who_leaves_is_no_error(trained: Path) -> None:
    command = f"yes zwei vier | head -5000 | '{sys.executable}' -c 'from seq2see.cli.main import main; main()'"
    command += f" translate --beam 1 --model '{trained}'; echo ${{PIPESTATUS[2]}} >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -1"],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
    )
    assert (done.stdout, done.stderr) == ("two four\n", "1\n")


def test_text_is_utf8_whatever_the_terminal_speaks(trained: Path) -> None:
    done = process(
        *("translate", "--json", "--model", trained, b"f\xfcnf".decode(errors="surrogateescape")),
        environment={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["translations"]
    done = process(
        "translate", "--json", "--model", trained, "fünf", environment={"PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["source"] == "fünf"


def test_a_process_ends_with_one_line_too(tmp_path: Path) -> None:
    done = process("translate", "--model", tmp_path / "nothing", "Hallo")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"seq2see: {tmp_path / 'nothing'}: no such model directory\n"
