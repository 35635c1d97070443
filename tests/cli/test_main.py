"""The command line: help, one line for every mistake, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.cli import main as cli
from seq2see.errors import WorkError

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
    ["see", "attribution"],
    ["see", "masks"],
    ["see", "positions"],
    ["see", "scaling"],
    ["see", "norms"],
    ["see", "merging"],
    ["see", "pruning"],
    ["export"],
    ["bench"],
    ["bench", "train"],
    ["bench", "translate"],
    ["bench", "attention"],
    ["bench", "reduce"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_every_command(call: Any, command: list[str]) -> None:
    code, out, error = call(*command, "--help")
    assert (code, error) == (0, "")
    assert out.startswith(" ".join(["Usage: seq2see", *command, "[OPTIONS]"]))
    assert "[[" not in out and "]..." not in out.partition("Arguments:")[2]
    assert "Show this message and exit." in out


@pytest.mark.parametrize("given", [None, "ACTIVE"])
def test_threads_wait_without_spinning(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["seq2see", "--help"])
    monkeypatch.setenv("OMP_WAIT_POLICY", "")  # so that it is restored afterwards
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    else:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    with pytest.raises(SystemExit):
        cli.main()
    assert os.environ["OMP_WAIT_POLICY"] == (given or "PASSIVE")


@pytest.mark.parametrize("group", [[], ["see"], ["bench"]], ids=" ".join)
def test_summaries_fit_a_terminal_of_80_columns(
    call: Any, monkeypatch: pytest.MonkeyPatch, group: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call(*group, "--help")
    assert "..." not in out.replace("[ARGS]...", "")
    assert max(map(len, out.splitlines())) <= 80


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seq2see", *arguments]
    environment = os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_the_module_runs_and_says_its_version(call: Any) -> None:
    done = run("--version")
    says = f"seq2see {seq2see.__version__}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, says, "")
    assert call("--version") == (0, says, "")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("seq2see tra", {"train", "translate"}),
        ("seq2see see mask", {"masks"}),
        ("seq2see translate --en", {"--engine"}),
        ("seq2see train multi30k-ls", {"multi30k-lstm", "multi30k-lstm-attention"}),
    ],
)
def test_the_shell_completes(words: str, completed: set[str]) -> None:
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = run(_SEQ2SEE_COMPLETE="complete_bash", **variables)
    assert (set(done.stdout.split()), done.stderr) == (completed, "")


def test_help_does_not_wait_for_torch() -> None:
    program = (
        "import sys, contextlib, io\nfrom seq2see.cli.main import main\n"
        f"for command in {COMMANDS!r}:\n"
        "    sys.argv = ['seq2see', *command, '--help']\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        main()\n"
        "slow = {'torch', 'sacrebleu', 'matplotlib', 'sentencepiece', 'spacy'}\n"
        "print(sorted(slow & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


def test_the_bare_name_gives_the_tour(call: Any) -> None:
    assert call() == call("--help")
    assert "Missing command" in call.refused("see")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["demo", "--languages", "fr-en"], "--languages fr-en: must be de-en or zh-en"),
        (["train"], "Missing argument"),
        (["train", "tiny", "--frobnicate"], "No such option: --frobnicate"),
        (
            ["train", "no/such.toml"],
            "no/such.toml: no such recipe; give a path or a shipped one: captions, ",
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
        (["translate", "Hallo"], "--model DIR or --server URL is needed"),
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
            "engine 'ct3' is not one of torch, ct2",
        ),
        (
            ["translate", "--model", "m", "--engine", "ct2", "--device", "cuda", "a"],
            "device 'cuda': CTranslate2 runs on the cpu here",
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
            "--out a.txt: must end in .png, .svg or .html",
        ),
        (
            ["see", "attention", "--model", "m", "Hallo", "--out", "no/a.png"],
            "--out no/a.png: there is no folder no",
        ),
        (["bench", "train", "no.toml"], "no.toml: no such recipe"),
        (["bench", "train", "vit-digits"], "task = 'images': bench train measures translation"),
        (
            ["bench", "train", "captions", "--set", "model.patch=2"],
            "captions: model.patch is for pictures, not for task 'translate'",
        ),
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
            "--out a.pdf: must end in .png, .svg or .html",
        ),
    ],
)
def test_a_mistake_is_one_line(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call.refused(*arguments).startswith(says)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_with_a_model(
    call: Any, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    for device, says in (
        ("abacus", "device 'abacus' is not one of auto, cpu, cuda, mps"),
        ("cuda", "device 'cuda': no CUDA device here"),
        ("mps", "device 'mps': no MPS device here"),
    ):
        assert call.refused("translate", "--model", trained, "--device", device) == says
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


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (WorkError("two\nlines"), 1, "two lines"),
        (KeyboardInterrupt(), 1, "stopped"),
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
def test_an_error_that_stops_the_work_is_one_line(
    call: Any,
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


def test_a_command_that_does_not_train_is_just_stopped(
    call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("seq2see.ct2.engines.load", stop)
    assert call.refused("translate", "--model", "m", "a", code=1) == "stopped"


def test_an_internal_error_is_not_hidden(
    call: Any, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("seq2see.tasks.run.train", fail)
    monkeypatch.setattr(sys, "argv", ["seq2see", "train", str(toy.path)])
    with pytest.raises(ZeroDivisionError):
        cli.main()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_see_attention_draws_a_file(call: Any, trained: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    code, out, error = call("see", "attention", "--model", trained, "drei acht eins", "--out", path)
    assert (code, out, error) == (0, "three eight one\n", "")
    assert path.read_bytes()[:5] == (b"\x89PNG\r" if ending == "png" else b"<?xml")


def test_bench_train_prints_the_documented_keys(
    call: Any, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.bench.train.MATRIX", 64)
    code, out, error = call(
        "bench", "train", toy.path, "--seconds", 0.2, "--json", "--device", "cpu"
    )
    assert (code, error) == (0, "")
    values = json.loads(out)
    assert (
        values["target_tokens_per_second"] > 0
        and values["utilisation"] > 0
        and values["peak_memory_mb"] > 50
    )


def test_a_process_ends_with_one_line(tmp_path: Path) -> None:
    program = "from seq2see.cli.main import main; main()"
    arguments = ("translate", "--model", tmp_path / "nothing", "Hallo")
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"seq2see: {tmp_path / 'nothing'}: no such model directory\n"
