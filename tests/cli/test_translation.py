"""`seq2see translate` and `export`: lines out for lines in, the same from both engines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seq2see.cli import translation
from seq2see.tasks.translator import Translator

# A byte order mark, both line ends, blank lines, and separators that end no line.
ODD_LINES = (
    "\ufeffzwei vier\r\n\ndrei acht eins\n   \nzwei vier\u2028drei\x85acht\x0ceins\nneun"
).encode()
MAIN = "from seq2see.cli.main import main; main()"


def process(*arguments: object, **keys: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    environment = os.environ | keys.pop("environment", {})
    return subprocess.run(command, capture_output=True, timeout=60, env=environment, **keys)


def test_input_that_is_not_utf8_names_its_line(call: Any, trained: Path) -> None:
    says = call.refused("translate", "--model", trained, stdin=b"eins\nzwei \xfc\n")
    assert says == "stdin:2: not UTF-8 at byte 5 of the line"


def test_lines_in_are_lines_out(call: Any, trained: Path, translator: Translator) -> None:
    code, out, error = call("translate", "--model", trained, "--device", "cpu", stdin=ODD_LINES)
    assert (code, error) == (0, "")
    lines = out.split("\n")
    assert len(lines) == 7 and lines.pop() == ""
    assert lines[:4] == ["two four", "", "three eight one", ""]
    assert lines[5] == translator.translate(["neun"])[0]


def test_a_text_that_is_the_name_of_a_file_is_warned_of(
    call: Any, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my own.de").write_text("zwei vier\n")
    code, out, error = call("translate", "--model", trained, "my own.de", "zwei vier", "x" * 5000)
    assert code == 0 and out.count("\n") == 3 and out.split("\n")[1] == "two four"
    assert error.split("\n")[0] == (
        "seq2see: my own.de is a file; its name is taken as the text. "
        f"To read its lines: seq2see translate --model {trained} < 'my own.de'"
    )


def test_no_line_in_is_no_line_out(call: Any, trained: Path) -> None:
    assert call("translate", "--model", trained, stdin=b"") == (0, "", "")


def test_line_numbers_continue_across_chunks(
    call: Any, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "LINES_PER_CHUNK", 2)
    stdin = b"eins\n" * 4 + b"zwei " * 200 + b"\nvier\n"
    code, out, error = call(
        "translate", "--model", trained, "--beam", 1, "--n-best", 1, stdin=stdin
    )
    assert code == 0 and out.count("\n") == 6 and error.startswith("line 5: longer than")
    monkeypatch.setattr(translation, "LINES_PER_CHUNK", 1)
    _, out, _ = call("translate", "--model", trained, "--n-best", 2, stdin=b"eins\n\nzwei\n")
    assert [line.split(" ||| ")[0] for line in out.splitlines()] == ["0", "0", "1", "2", "2"]


def test_n_best_is_printed_in_the_moses_format(
    call: Any, trained: Path, translator: Translator
) -> None:
    code, out, _ = call(
        "translate", "--model", trained, "--n-best", 3, "zwei vier", "drei acht eins"
    )
    rows = [line.split(" ||| ") for line in out.splitlines()]
    assert code == 0 and [row[0] for row in rows] == ["0"] * 3 + ["1"] * 3
    for row, best in zip(
        rows, translator.search(["zwei vier", "drei acht eins"], n_best=3)[0], strict=False
    ):
        assert row[1:] == [best.text, f"{best.score:.4f}"]


def test_json_is_one_object_a_line_and_nothing_else(call: Any, trained: Path) -> None:
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
        ([], ODD_LINES),
        ([], b""),
        ([], b"eins\nzwei \xfc\n"),
        (["--beam", "1"], b"eins\n" * 4 + b"zwei " * 200 + b"\nvier\n"),
        (["--n-best", "2", "zwei vier", "drei acht eins", ""], b""),
        (["--n-best", "5", "zwei vier"], b""),
    ],
)
def test_either_engine_prints_the_same(
    call: Any, trained: Path, exported: Path, arguments: list[str], stdin: bytes
) -> None:
    ours = call("translate", "--model", trained, "--device", "cpu", *arguments, stdin=stdin)
    assert (
        call("translate", "--model", exported, "--engine", "ct2", *arguments, stdin=stdin) == ours
    )


def test_either_engine_gives_the_same_json(call: Any, trained: Path, exported: Path) -> None:
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


def test_an_engine_refuses_the_others_directory(call: Any, trained: Path, exported: Path) -> None:
    says = call.refused("translate", "--model", trained, "--engine", "ct2", "eins")
    assert says == f"{trained}: not exported; first: seq2see export --model {trained} --out DIR"
    says = call.refused("translate", "--model", exported, "--engine", "torch", "eins")
    way = "leave the engine out, or give the model it was exported from"
    assert says == f"{exported}: an export for CTranslate2, not for engine 'torch'; {way}"
    says = call.refused("translate", "--model", exported, "--merge", 2, "eins")
    assert says == "--merge 2: CTranslate2 cannot merge tokens; PyTorch can"


def test_an_export_serves_every_command_that_translates_or_scores(
    call: Any, trained: Path, exported: Path, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("zwei vier\ndrei acht eins\nfünf sechs\n", encoding="utf-8")
    target.write_text("two four\nthree eight one\nfive five\n", encoding="utf-8")
    files = ["--source", source, "--reference", target]
    for command in (["evaluate", *files], ["evaluate"]):
        code, ours, _ = call(*command, "--model", trained)
        assert code == 0 and ours.startswith("BLEU ")
        assert call(*command, "--model", exported) == (0, ours, "")
    code, out, _ = call("compare", trained, exported, *files, "--json")
    one, other = json.loads(out)["systems"]
    assert code == 0 and one["bleu"]["score"] == other["bleu"]["score"]
    scored = []
    for model in (trained, exported):
        options = ("--source", source, "--target", target, "--target2", target)
        code, out, error = call("score", "--model", model, *options)
        assert code == 0 and "better in 0 of 3, worse in 0, tied in 3" in error
        scored += [float(line.split("\t")[0]) for line in out.splitlines()]
    assert scored[:3] == pytest.approx(scored[3:], abs=1e-3)


@pytest.mark.parametrize(
    "command",
    [
        ["see", "attention", "eins", "--out", "a.png"],
        ["see", "positions", "--out", "a.png"],
        ["see", "merging", "eins", "--out", "a.png"],
        ["bench", "translate"],
        ["bench", "reduce"],
        ["export", "--out", "out"],
        ["generate"],
        ["classify", "eins"],
    ],
    ids=" ".join,
)
def test_other_commands_say_what_an_export_is(
    call: Any,
    exported: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    use = "for translate, score, evaluate and compare alone"
    says = f"{exported}: an export for CTranslate2, {use}; give the model it was exported from"
    assert call.refused(*command, "--model", exported) == says


def test_export_reports_its_measurements(
    call: Any, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.ct2.calibration.CALIBRATION", 0.0)
    (tmp_path / "source.txt").write_text("zwei vier\nneun sieben fünf zehn\n", encoding="utf-8")
    (tmp_path / "reference.txt").write_text("two four\nnine seven five ten\n", encoding="utf-8")
    files = ["--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt"]
    code, out, error = call("export", "--model", trained, "--out", tmp_path / "a", *files, "--json")
    values = json.loads(out)
    assert (
        (code, error) == (0, "")
        and values["precision"] == "int8"
        and values["bleu"] == pytest.approx(100)
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


def test_a_closed_pipe_prints_no_error(trained: Path) -> None:
    command = f"yes zwei vier | head -5000 | '{sys.executable}' -c '{MAIN}'"
    command += f" translate --beam 1 --model '{trained}'; echo ${{PIPESTATUS[2]}} >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -1"],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
    )
    assert (done.stdout, done.stderr) == ("two four\n", "1\n")


def test_text_is_utf8_in_any_locale(trained: Path) -> None:
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
