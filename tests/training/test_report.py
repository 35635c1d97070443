"""The bar and the log of a run."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from seq2see.training.report import Reporter, Validation

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
UPDATE: dict[str, Any] = {
    "progress": 0.3,
    "seconds_left": 270.0,
    "update": 12,
    "epoch": 1,
    "loss": 4.123,
    "learning_rate": 0.003,
    "gradient_norm": 1.0,
    "tokens": 1200,
    "seconds": 12.0,
}
LARGE = {"seconds_left": 360_000.0, "update": 1_234_567, "epoch": 4321, "loss": 12.345}


def shown(width: int, **values: Any) -> list[str]:
    """What was on a terminal of a width, line by line, with the bar at its last state."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, soft_wrap=True, emoji=False)
    with Reporter(Path(values.pop("folder")), console) as reporter:
        reporter.mark(0.0, 0)
        reporter.update(**{**UPDATE, **values})
        reporter.bar.refresh()
    return [line for line in re.split(r"[\r\n]+", CONTROL.sub("", out.getvalue())) if line]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("values", [{}, LARGE, {**LARGE, "tokens": 12 * 123_456_789}])
def test_the_bar_fits_the_terminal(tmp_path: Path, width: int, values: dict[str, Any]) -> None:
    lines = shown(width, folder=tmp_path, **values)
    assert max(map(cell_len, lines)) <= width
    last = lines[-1]
    assert "━━━━" in last and "loss " in last and last.endswith(" left")


def test_the_bar_drops_the_least_important_first(tmp_path: Path) -> None:
    usual = shown(80, folder=tmp_path)[-1]
    assert usual.endswith("epoch 1 · update 12 · loss 4.123 · 100 target tokens/s · 4:30 left")
    large = shown(80, folder=tmp_path, **LARGE)[-1]
    assert large.endswith("update 1234567 · loss 12.345 · 100 target tokens/s · 100:00:00 left")


def updates(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "update"]


def test_the_speed_is_that_of_training_from_the_first_update_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    monkeypatch.setattr("seq2see.training.report.SECONDS_BETWEEN_LINES", 0.0)
    with Reporter(tmp_path, Console(file=said, soft_wrap=True)) as reporter:
        reporter.mark(30.0, 1000)  # after a preparation of half a minute
        reporter.update(**UPDATE | {"update": 1, "tokens": 1200, "seconds": 32.0})
        reporter.logged = 0.0
        reporter.update(**UPDATE | {"update": 2, "tokens": 1400, "seconds": 34.0})
        result = Validation(1.0, {}, "", [])
        reporter.validation(result, update=2, epoch=1, best=True, seconds=44.0)
        reporter.mark(44.0, 1400)
        reporter.logged = 0.0
        reporter.update(**UPDATE | {"update": 3, "tokens": 1700, "seconds": 46.0})
    assert [event["tokens_per_second"] for event in updates(tmp_path)] == [100.0, 100.0, 150.0]
    assert "150 target tokens/s" in said.getvalue() and " 0 target" not in said.getvalue()
    assert " 30% · epoch 1 · update 3 · loss 4.123 · " in said.getvalue()


def test_a_busy_machine_is_said_and_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    with Reporter(tmp_path, Console(file=said, soft_wrap=True)) as reporter:
        monkeypatch.setattr(reporter.load, "check", lambda: "the machine is busy")
        reporter.load.others = 1.25
        reporter.update(**UPDATE)
    assert "the machine is busy\n" in said.getvalue()
    assert updates(tmp_path)[0]["others_cores"] == 1.25


def test_the_samples_shown_are_spread(tmp_path: Path) -> None:
    said = io.StringIO()
    samples = [(f"source {n}", f"reference {n}", f"output {n}") for n in range(10)]
    with Reporter(tmp_path, Console(file=said, soft_wrap=True)) as reporter:
        result = Validation(1.0, {}, "", samples)
        reporter.validation(result, update=2, epoch=1, best=True, seconds=44.0)
    assert re.findall(r"source (\d)", said.getvalue()) == ["1", "5", "8"]


def test_a_line_that_a_killed_process_left_unfinished_is_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"event": "start"}\n{"event": "upd', encoding="utf-8")
    with Reporter(tmp_path, Console(quiet=True)) as reporter:
        reporter.write("note", text="again")
    first, second = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    assert (first["event"], second["event"]) == ("start", "note")
