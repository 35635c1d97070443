"""`seq2see bench translate`: JSON, table, failures, and the texts that it takes."""

import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from seq2see.bench import translate, translate_report
from seq2see.bench.translate import (
    Row,
    Text,
    bench_translate,
)
from seq2see.bench.translate_worker import Job, Measured
from seq2see.cli import main as cli
from seq2see.ct2.engine import cores
from seq2see.errors import WorkError

KEYS = {"engine", "precision", "beam", "sentences_per_second", "p50_ms", "p99_ms", "bleu"}


def silent(line: str) -> None:
    pass


def pretended(job: Job) -> Measured:
    """Plausible figures without a worker: float32 is better, int8 and small beams are faster."""
    setting = job.setting
    speed = 1000 / setting.beam * setting.workers * (2 if setting.precision == "int8" else 1)
    outputs = [
        text.replace("drei acht", "three" if setting.precision == "int8" else "three eight")
        for text in job.texts
    ]
    return Measured(0.5, [1000 / speed / setting.threads] * len(job.sample), speed, 50.0, outputs)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Replace the workers; return the jobs that they would have been given."""
    jobs: list[Job] = []

    def run(job: Job) -> Measured:
        jobs.append(job)
        return pretended(job)

    monkeypatch.setattr(translate, "run", run)
    return jobs


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], trained: Path
) -> Callable[..., Any]:
    """Run the command on the toy model: exit code, stdout, stderr."""
    pytest.importorskip("ctranslate2")

    def run(*options: object) -> tuple[object, str, str]:
        arguments = ["seq2see", "bench", "translate", "--model", trained, *options]
        monkeypatch.setattr(sys, "argv", [*map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


def test_json_is_one_object_and_nothing_else(call: Any, fake: list[Job], tmp_path: Path) -> None:
    source, reference = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("drei acht eins zwei vier\n" * 4)
    reference.write_text("three eight eins zwei vier\n" * 4)
    texts = ("--source", source, "--reference", reference, "--limit", 3)
    code, out, error = call(
        *texts, "--beam", 2, "--beam", 5, "--batch", 9, "--threads", 1, "--seconds", 0, "--json"
    )
    assert code == 0 and out.count("\n") == 1
    values = json.loads(out)
    rows = values["rows"]
    assert len(rows) == len(fake) == 6 and (values["rounds"], values["sentences"]) == (1, 3)
    options = {(row["beam"], row["batch"], row["workers"], row["threads"]) for row in rows}
    assert options == {(2, 9, 1, 1), (5, 9, 1, 1)}
    for row in rows:
        assert {field.name for field in fields(Row)} == row.keys() and row.keys() >= KEYS
    # int8 is twice as fast but does not translate as well.
    fastest = next(row for row in rows if row["precision"] == "float32")
    assert values["recommended"]["throughput"] == fastest
    kinds = ("torch float32", "ct2 float32", "ct2 int8")
    expected = [f"{kind} · beam {beam}" for kind in kinds for beam in (2, 5)]
    assert [line.partition(" · batch")[0] for line in error.splitlines()] == [
        f"round 1 · {place} of 6 · {setting}" for place, setting in enumerate(expected, start=1)
    ]


def test_the_table_has_a_line_per_row_and_ends_with_the_recommendation(
    call: Any, fake: list[Job]
) -> None:
    code, out, _ = call("--seconds", 0)
    rows = out.split("\n\n")[0].splitlines()
    assert code == 0 and len(rows) == 1 + len(fake)
    assert rows[0].split() == " ".join(translate_report.HEADS).split()
    assert {job.setting.beam for job in fake} == {1, 4}
    assert {job.setting.batch for job in fake} == {8192}
    assert {job.setting.threads * job.setting.workers for job in fake} == {1, cores()}
    rule, throughput, latency = out.splitlines()[-3:]
    assert rule.startswith("recommended: the fastest of those at most 0.3 BLEU below the best")
    assert throughput.startswith("for throughput: ") and latency.startswith("for latency: ")


def test_a_failure_costs_its_row_alone_and_the_exit_code(
    call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(job: Job) -> Measured:
        if job.setting.precision == "int8":
            raise WorkError("the worker ended with code -9: no message")
        return pretended(job)

    monkeypatch.setattr(translate, "run", run)
    code, out, error = call("--beam", 1, "--threads", 1, "--seconds", 0, "--json")
    values = json.loads(out)
    assert code == 1 and error.splitlines()[-1] == "seq2see: 1 of 3 settings failed"
    assert [row["engine"] for row in values["rows"]] == ["torch", "ct2"]
    assert [(row["precision"], row["error"][-10:]) for row in values["failed"]] == [
        ("int8", "no message")
    ]
    code, out, _ = call("--beam", 1, "--threads", 1, "--seconds", 0)
    says = "failed: ct2 int8 · beam 1 · batch 8192 · 1 × 1 thread: the worker ended"
    assert code == 1 and says in out


def test_nothing_is_recommended_or_drawn_when_everything_fails(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(job: Job) -> Measured:
        raise WorkError("no")

    monkeypatch.setattr(translate, "run", run)
    code, out, _ = call("--out", tmp_path / "a.png")
    assert code == 1 and out.endswith("nothing to recommend: every setting failed\n")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_ct2_is_left_out_with_a_note(
    call: Any, fake: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    code, out, error = call("--beam", 1, "--threads", 1, "--seconds", 0)
    says = "without ct2: CTranslate2 is not installed: pip install ctranslate2"
    assert code == 0 and says in out and says in error
    assert {job.setting.engine for job in fake} == {"torch"}


def test_the_latency_sample_is_spread_over_the_text(
    trained: Path, fake: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translate, "SAMPLE", 3)
    text = Text("text", ["", *(f"line {place}" for place in range(10)), " "], [])
    bench_translate(trained, text, beams=[1], threads=[1], seconds=0, say=silent)
    assert fake[0].sample == ["line 0", "line 3", "line 6"] and fake[0].texts == text.sources


def test_bad_texts_are_refused(call: Any, fake: list[Job], tmp_path: Path) -> None:
    source, reference = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("")
    given = ("--source", source)
    assert call(*given)[::2] == (
        2,
        f"seq2see: {source}: an empty file; a corpus has one sentence a line\n",
    )
    source.write_text("\n\neins\n")
    says = f"seq2see: {source}: the first 2 lines are empty; there is nothing to translate\n"
    assert call(*given, "--limit", 2)[::2] == (2, says)
    reference.write_text("one\n")
    says = f"seq2see: {source} has 3 lines and {reference} 1; they must pair up\n"
    assert call(*given, "--reference", reference) == (2, "", says)
    assert not fake


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_picture_is_written(call: Any, fake: list[Job], tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    assert call("--seconds", 0, "--out", path)[0] == 0
    assert path.read_bytes()[:5] == (b"\x89PNG\r" if ending == "png" else b"<?xml")
