"""`seq2see translate --server`: lines out for lines in, through a server."""

import json
import subprocess
import sys
from typing import Any

import pytest

from seq2see.serve.client import CHARACTERS, TEXTS, portions


def run(*arguments: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "seq2see", "translate", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


def test_lines_come_back_one_for_one(server: Any) -> None:
    done = run("--server", server.url, stdin="drei acht eins\n\nzwei vier\n" * 300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "three eight one\n\ntwo four\n" * 300


def test_the_formats_are_those_of_a_model_directory(server: Any) -> None:
    done = run("drei acht eins", "--server", server.url, "--n-best", 2, "--model", "toy")
    first, second = done.stdout.splitlines()
    assert first.startswith("0 ||| three eight one ||| -") and second.startswith("0 ||| ")
    done = run("zwei vier", "--server", server.url, "--json")
    expected = {"source": "zwei vier", "translations": [{"text": "two four"}]}
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["eins", "--server", "{url}", "--beam", 60], 2, "beam is 60; at most 16 is allowed"),
        (["eins", "--server", "{url}", "--model", "other"], 2, "model is not one of toy"),
        (["eins", "--server", "{url}", "--engine", "torch"], 2, "settings of the server"),
        (["eins", "--server", "ftp://x"], 2, "must be a URL such as http://"),
        (["eins", "--server", "http://127.0.0.1:9"], 1, "http://127.0.0.1:9: "),
        (["eins"], 2, "--model DIR or --server URL is needed"),
    ],
    ids=str,
)
def test_an_error_is_one_line(server: Any, arguments: list[Any], code: int, message: str) -> None:
    done = run(*(str(argument).format(url=server.url) for argument in arguments))
    assert done.returncode == code and message in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_portions_keep_all_texts_within_the_bounds() -> None:
    texts = ["a" * length for length in [CHARACTERS, 1, CHARACTERS + 1, *[7] * 500]]
    divided = list(portions(texts))
    assert [text for portion in divided for text in portion] == texts
    for portion in divided:
        assert len(portion) <= TEXTS
        assert sum(map(len, portion)) <= CHARACTERS or len(portion) == 1
    assert list(portions([])) == []
