"""`seq2see paint`: sheets of pictures, prompts from stdin, and one line for each mistake."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from seq2see import files
from seq2see.cli import paint

SIDE = 4 * 32 + 6  # pixels, of a picture and the gap around it


@pytest.fixture
def model(painted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return painted


def sheet(path: str = "x.png") -> NDArray[np.int64]:
    with Image.open(path) as opened:
        return np.array(opened, dtype=np.int64)


def test_a_sheet_has_a_row_for_each_prompt(call: Any, model: Path) -> None:
    options = ("--model", model, "--steps", 2, "--sampler", "euler", "--out", "x.png")
    code, out, _ = call("paint", "a red star", "a ring", "--count", 3, "--json", *options)
    values = json.loads(out)
    assert code == 0 and out.count("\n") == 1
    assert values.pop("seconds") > 0
    seeds = [1, 2, 3]
    assert values == {
        "out": "x.png",
        "rows": [{"prompt": "a red star", "seeds": seeds}, {"prompt": "a ring", "seeds": seeds}],
        "pictures": 6,
        "sampler": "euler",
        "steps": 2,
        "shift": 1.0,
        "guidance": 3.0,
        "merge": 0.0,
    }
    assert sheet().shape == (2 * SIDE, 3 * SIDE, 3)
    code, out, error = call("paint", "a red elephant", *options)
    assert code == 0 and out.startswith("x.png: 1 picture in ")
    assert error == "seq2see: 'a red elephant': no training prompt has 'elephant'\n"


def test_seeds_count_on_from_the_first(call: Any, model: Path) -> None:
    options = ("a ring", "--model", model, "--steps", 2, "--scale", 1, "--out")
    assert call("paint", *options, "x.png", "--seed", 3, "--count", 2)[0] == 0
    assert call("paint", *options, "y.png", "--seed", 4)[0] == 0
    both, second = sheet(), sheet("y.png")
    assert np.abs(both[:, 38:] - second).max() <= 1  # other batches round otherwise
    assert np.abs(both[:, :38] - second).max() > 1


def test_guidance_merging_and_scale_change_the_picture(call: Any, model: Path) -> None:
    sheets = []
    for number, more in enumerate([(), ("--guidance", 9), ("--merge", 0.75), ("--scale", 3)]):
        options = ("--model", model, "--steps", 4, "--out", f"{number}.png")
        assert call("paint", "a ring", *options, *more)[0] == 0
        sheets.append(sheet(f"{number}.png"))
    plain, guided, merged, smaller = sheets
    assert not np.array_equal(plain, guided) and not np.array_equal(plain, merged)
    assert np.array_equal(smaller[3:-3:3, 3:-3:3], plain[3:-3:4, 3:-3:4])


@pytest.mark.parametrize(
    "stdin",
    [b"a ring\na star\n", b"a ring\r\na star\r\n", b"\xef\xbb\xbfa ring\na star"],
    ids=["LF", "CR LF", "byte order mark and no line end"],
)
def test_prompts_are_lines_of_stdin(call: Any, model: Path, stdin: bytes) -> None:
    options = ("--model", model, "--steps", 1, "--out")
    assert call("paint", "a ring", "a star", *options, "x.png")[::2] == (0, "")
    assert call("paint", *options, "y.png", stdin=stdin)[::2] == (0, "")
    assert Path("x.png").read_bytes() == Path("y.png").read_bytes()


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        (b"", "no prompts: stdin is empty"),
        (b"a ring\n\xffa star\n", "stdin:2: not UTF-8 at byte 0 of the line"),
        ("a ring\n".encode("utf-16"), "stdin:1: not UTF-8 at byte 0 of the line"),
        (b"a ring\na\0star\n", "stdin:2: a NUL byte; a prompt is text"),
        (b"a ring\n\na star\n", "prompt 2 ('') has no words"),
        (b"a ring\n \t\n", "prompt 2 (' \\t') has no words"),
        (b"a ring\n" * 1001, "stdin has more than 1,000 prompts; paint some at a time"),
        (b"red " * 129, "has 129 words; at most 128 are allowed (data.max_length)"),
    ],
)
def test_stdin_that_has_no_prompts(call: Any, model: Path, stdin: bytes, says: str) -> None:
    assert says in call.refused("paint", "--model", model, "--out", "x.png", stdin=stdin)
    assert not Path("x.png").exists()


def test_a_terminal_is_told_that_prompts_are_awaited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(b"a ring\n"))
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert paint._read() == ["a ring"]
    assert capsys.readouterr().err == "seq2see: one prompt per line, Ctrl-D after the last\n"


def test_the_name_of_a_file_is_no_prompt_but_may_be_meant(call: Any, model: Path) -> None:
    Path("prompts.txt").write_text("a ring\n", encoding="utf-8")
    options = ("--model", model, "--steps", 1, "--out", "x.png")
    code, _, error = call("paint", "prompts.txt", *options)
    reads = f"seq2see paint --out x.png --model {model} < prompts.txt"
    assert code == 0 and f"To read its lines: {reads}\n" in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([""], "prompt 1 ('') has no words"),
        (
            ["a ring", "red " * 200],
            "prompt 2 ('red red red red red red red red red red '…) has 200",
        ),
        (["ring", "--out", "x.jpg"], "--out x.jpg: must end in .png"),
        (["ring", "--out", "none/x.png"], "--out none/x.png: there is no folder none"),
        (["ring", "--out", "folder.png"], "--out folder.png: exists and is not a file"),
        (["ring", "--sampler", "dpm"], "sampler 'dpm' is not one of ddim, ddpm, euler"),
        (["ring", "--merge", "0.9"], "Invalid value for '--merge'"),
        (["ring", "--merge", "nan"], "Invalid value for '--merge'"),
        (["ring", "--guidance", "nan"], "Invalid value for '--guidance'"),
        (["ring", "--guidance", "-1"], "Invalid value for '--guidance'"),
        (["ring", "--steps", "0"], "Invalid value for '--steps'"),
        (["ring", "--count", "0"], "Invalid value for '--count'"),
        (["ring", "--seed", "-1"], "Invalid value for '--seed'"),
        (["ring", "--scale", "65"], "Invalid value for '--scale'"),
        (["ring", "--device", "tpu"], "device 'tpu' is not one of auto, cpu, cuda, mps"),
        (["ring", "--model", "none"], "none: no such model directory"),
        (
            ["ring", "--count", "100", "--scale", "64"],
            "100 pictures at --scale 64 are 422 million pixels; a file has at most 64 million",
        ),
    ],
)
def test_a_mistake_is_one_line(call: Any, model: Path, arguments: list[str], says: str) -> None:
    Path("folder.png").mkdir()
    refused = call.refused("paint", "--model", model, "--out", "x.png", *arguments)
    assert refused.startswith(says)
    assert [path.name for path in Path().iterdir()] == ["folder.png"]


def test_models_of_other_tasks_do_not_paint(call: Any, trained: Path, tmp_path: Path) -> None:
    says = call.refused("paint", "ring", "--model", trained, "--out", tmp_path / "x.png")
    assert says == f"{trained}: a model of task 'translate', which is for seq2see translate"


def test_a_folder_without_write_permission_is_refused_before_the_work(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    says = call.refused("paint", "ring", "--model", "none", "--out", tmp_path / "x.png")
    assert says == f"--out {tmp_path / 'x.png'}: cannot write: Permission denied"


def test_a_full_disk_is_one_line(call: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(path: Path, write: Callable[[Path], object]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_atomically", fill)
    says = call.refused("paint", "ring", "--model", model, "--steps", 1, "--out", "x.png")
    assert says == "--out x.png: cannot write: No space left on device"


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("painting.json", None, "cannot read: No such file or directory"),
        ("painting.json", b"", "not the format of a painter: "),
        ("painting.json", b"\xff\xfe", "not the format of a painter: "),
        ("painting.json", b'{"shape": [3, 32], "words": []}', "not the format of a painter: "),
        ("painting.json", b'{"shape": [2, 32, 32], "words": []}', "shape [2, 32, 32] must be 1 or"),
        ("recipe.toml", b"task = ", "not TOML: "),
        ("model.safetensors", b"{}", "cannot read the weights: "),
    ],
)
def test_a_damaged_model_is_one_line(
    call: Any, model: Path, file: str, content: bytes | None, says: str
) -> None:
    copy = Path("copy")
    shutil.copytree(model, copy)
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_bytes(content)
    refused = call.refused("paint", "ring", "--model", copy, "--out", "x.png")
    assert refused.startswith(f"copy/{file}: {says}")


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ([3, 30, 32], "the model does not fit the pictures: height (30) must be divisible by 4"),
        ([1, 32, 32], "copy/model.safetensors: weight 'output.bias' has shape (12,)"),
    ],
)
def test_a_shape_that_the_weights_do_not_have_is_one_line(
    call: Any, model: Path, shape: list[int], says: str
) -> None:
    shutil.copytree(model, "copy")
    file = Path("copy/painting.json")
    values = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(values | {"shape": shape}), encoding="utf-8")
    refused = call.refused("paint", "ring", "--model", "copy", "--out", "x.png")
    assert refused.startswith(says)
