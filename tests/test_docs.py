"""The guide: code runs, commands are real, pictures are what their commands draw."""

import doctest
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import matplotlib.image
import pytest
import torch

from seq2see.cli import main as cli
from seq2see.tasks.table import read_recipe

ROOT = Path(__file__).parents[1]
PAGES = {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
CHAPTERS = [
    "attention",
    "heads",
    "masks",
    "positions",
    "norms",
    "batch",
    "transformer",
    "training",
    "decoding",
    "bleu",
    "looking",
    "cost",
    "before",
    "after",
    "pictures",
    "cheaper",
    "painting",
]
MOST_BYTES = 150_000


def blocks(name: str, *languages: str) -> list[tuple[int, str]]:
    """List line number and text of a page's blocks."""
    matches = re.finditer(
        rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", TEXTS[name], re.MULTILINE | re.DOTALL
    )
    return [(TEXTS[name][: match.start(1)].count("\n"), match[1]) for match in matches]


def commands() -> list[tuple[str, str, str]]:
    """List page, command and the output that the page shows for it."""
    return [
        (name, command, output)
        for name in PAGES
        for _, text in blocks(name, "console", "sh")
        for command, output in re.findall(
            r"^\$ (seq2see .*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE
        )
    ]


TRAININGS = [command for command in commands() if command[1].startswith("seq2see train")]
DRAWINGS = [command for command in commands() if command[1].startswith("seq2see see")]


@pytest.mark.parametrize("name", PAGES)
def test_code_runs_and_gives_what_the_page_shows(name: str) -> None:
    namespace: dict[str, object] = {}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for line, code in blocks(name, "python"):
            if ">>>" not in code:
                exec(compile("\n" * line + code, PAGES[name], "exec"), namespace)
                continue
            test = doctest.DocTestParser().get_doctest(
                code, namespace, name, str(PAGES[name]), line
            )
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            assert not said, "".join(said)
            namespace.update(test.globs)


def test_every_chapter_shows_code_and_is_in_the_index() -> None:
    for name in CHAPTERS:
        assert blocks(name, "python"), name
    listed = re.findall(r"\]\((\w+)\.md\)", TEXTS["README"])
    assert listed[: len(CHAPTERS)] == CHAPTERS
    assert {*listed} == {*PAGES} - {"README"}


@pytest.mark.parametrize(
    ("name", "command"),
    [command[:2] for command in TRAININGS],
    ids=[command[1] for command in TRAININGS],
)
def test_recipes_and_their_overrides_are_real(name: str, command: str) -> None:
    _, _, recipe, *options = shlex.split(command)
    read_recipe(recipe, [value for option, value in pairwise(options) if option == "--set"])


@pytest.mark.parametrize(
    ("name", "command", "expected"), DRAWINGS, ids=[command[1] for command in DRAWINGS]
)
def test_figures_are_drawn_as_the_page_shows(
    name: str,
    command: str,
    expected: str,
    trained: Path,
    learned: Path,
    pictured: Path,
    pruning: Path,
    painted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = shlex.split(command)
    model = learned if "positions" in command else trained
    if "see painting" in command:
        model = painted
    if picture := re.search(r"(?<!--out) (\w+\.png)", command):
        model = pruning if "see pruning" in command else pictured
        arguments[arguments.index(picture[1])] = "digit.png"
    models = {"--model": str(model)}
    stored = ROOT / arguments[arguments.index("--out") + 1] if "--out" in arguments else None
    if stored is not None:
        models["--out"] = str(tmp_path / stored.name)
    for i, option in enumerate(arguments):
        if option in models:
            arguments[i + 1] = models[option]
        elif option.startswith("runs/"):
            arguments[i] = str(model)
    monkeypatch.chdir(model.parent)  # where there is a digit.png
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.err) == (0, "")
    if expected:
        assert printed.out == expected
    if stored is not None:
        first_page = min(tmp_path.glob(f"{stored.stem}*.png"))
        drawn = matplotlib.image.imread(first_page)
        if stored.is_relative_to(ROOT / "docs") and "runs/" not in command:
            pictured = matplotlib.image.imread(stored)
            assert pictured.shape == drawn.shape
            assert abs(pictured - drawn).mean() < 0.01, f"draw it again: {command}"


@pytest.mark.parametrize("name", PAGES)
def test_pictures_are_small_and_have_their_command_beside_them(name: str) -> None:
    for picture in re.findall(r"^!\[[^\]]+\]\((.*?)\)", TEXTS[name], re.MULTILINE):
        assert (PAGES[name].parent / picture).stat().st_size < MOST_BYTES, picture
        before = TEXTS[name][: TEXTS[name].index(f"({picture})")]
        commands = before.rstrip().rpartition("```console\n")[2].partition("```")[0]
        scripts = [ROOT / path for path in re.findall(r"python (benchmarks/\w+\.py)", commands)]
        drawn = any(Path(picture).name in script.read_text(encoding="utf-8") for script in scripts)
        assert drawn or commands.endswith(f" --out docs/{picture}\n")
