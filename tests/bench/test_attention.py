"""The attention benchmark: exact counts, correct fits, and a complete report and figure."""

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.bench import attention, attention_report, attention_worker
from seq2see.bench.attention import Growth, bench_attention, path
from seq2see.bench.attention_worker import Job, Layer, call, measure
from seq2see.bench.memory import peak_bytes
from seq2see.cli import main as cli

KINDS = ["recurrent", "convolutional", "self_attention", "self_attention_fused", "window"]
JOB = Job(KINDS, [4, 8], width=4, batch=1, reach=1, seconds=0)


def silent(line: str) -> None:
    """Progress is not asked for."""


@pytest.fixture(scope="module")
def growth() -> Growth:
    """Lengths up to 512, measured once, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "run", measure)
        return bench_attention(
            [512, 64, 256, 128], width=16, batch=3, reach=8, seconds=0, say=silent
        )


def test_memory_grows_as_the_theory_says(growth: Growth) -> None:
    """Bytes are counted, so this holds on a busy machine as well."""
    assert [*growth.exponents] == KINDS and growth.fitted_over == [128, 256, 512]
    for kind, fitted in growth.exponents.items():
        assert fitted.memory == pytest.approx(growth.theory[kind].memory, abs=0.25), kind
    assert growth.exponents["self_attention"].memory == pytest.approx(2, abs=0.1)


def test_what_is_held_is_counted_to_the_byte() -> None:
    def run() -> object:
        first = torch.empty(1000, dtype=torch.uint8)
        second = torch.empty(3000, dtype=torch.uint8)
        del first
        return second, torch.empty(500, dtype=torch.uint8)

    assert peak_bytes(run) == 4000
    x = torch.randn(2, 48, 16, requires_grad=True)
    weights, rows = 2 * 48 * 48 * 4, 2 * 48 * 16 * 4
    assert peak_bytes(lambda: call(Layer("self_attention", 16, 4), x, "forward")) == weights + rows
    for kind in KINDS:
        layer = Layer(kind, 16, reach=4)
        for what in ("forward", "training"):
            call(layer, x, what)
            once, again = (
                peak_bytes(lambda layer=layer, what=what: call(layer, x, what)) for _ in range(2)
            )
            assert once == again > 0, kind


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="resident memory is Linux's to tell"
)
def test_what_is_counted_is_what_the_process_takes() -> None:
    """Against resident memory; the C library never has matrices of 36 MB left over."""

    def resident(field: str) -> int:
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))

    layer, x = Layer("self_attention", 16, reach=1), torch.randn(1, 3072, 16, requires_grad=True)
    call(layer, x[:, :8], "training")
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # forget the highest
    before = resident("VmRSS:")
    call(layer, x, "training")
    taken = resident("VmHWM:") - before
    counted = peak_bytes(lambda: call(layer, x, "training"))
    assert counted > 3 * 3072**2 * 4 and taken == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "recurrent"])
def test_the_path_is_as_many_layers_as_connect_the_first_position_with_the_last(kind: str) -> None:
    length, reach = 8, 3
    layer, layers = Layer(kind, 5, reach), 0
    x = hidden = torch.randn(1, length, 5, requires_grad=True)
    connected = False
    while not connected:
        hidden, layers = layer(hidden)[0], layers + 1
        (slope,) = torch.autograd.grad(hidden[0, -1].sum(), x, retain_graph=True)
        connected = bool(slope[0, 0].any())
    assert path(kind, length, reach) == layers
    assert path("recurrent", length, reach) == length


def test_growth_is_fitted_over_the_longest() -> None:
    assert attention.fitted([16, 32, 64, 128]) == [32, 64, 128]
    assert attention.fitted([16, 4096]) == [16, 4096]
    rows = [
        attention.Row(
            "window",
            n,
            forward_ms=7 * n,
            training_ms=2 * n**1.5,
            forward_mb=3,
            training_mb=n**2,
            sequential=1,
            path=1,
        )
        for n in (8, 16, 32)
    ]
    fitted = attention.exponents(rows, [8, 16, 32])
    expected = (1.5, 2.0, 1.0, 0.0)
    assert (
        fitted.time,
        fitted.memory,
        fitted.forward_time,
        fitted.forward_memory,
    ) == pytest.approx(expected)


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    def run(*options: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "bench", "attention", *options])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


def test_json_and_nothing_else_on_stdout_and_progress_on_stderr(
    command: Any, tmp_path: Path
) -> None:
    picture = tmp_path / "cost.svg"
    options = (
        "--lengths",
        "8,4,8",
        "--width",
        "6",
        "--batch",
        "2",
        "--reach",
        "1",
        "--seconds",
        "0",
    )
    code, out, error = command(*options, "--json", "--out", str(picture))
    said = [line.split(" · ")[0] for line in error.splitlines()]
    assert code == 0 and said == ["memory and warm-up", "memory and warm-up", "round 1"]
    values = json.loads(out)
    assert [*values["exponents"]] == [*values["theory"]] == KINDS
    assert all(
        isinstance(fitted[key], float)
        for fitted in values["exponents"].values()
        for key in ("time", "memory")
    )
    assert [(row["kind"], row["length"]) for row in values["rows"]] == [
        (kind, n) for kind in KINDS for n in (4, 8)
    ]
    for row in values["rows"]:
        assert (
            row["training_mb"] > row["forward_mb"] > 0
            and min(row["training_ms"], row["forward_ms"]) > 0
        )
    counts = {
        row["kind"]: (row["sequential"], row["path"])
        for row in values["rows"]
        if row["length"] == 8
    }
    assert counts == dict(zip(KINDS, [(8, 8), (1, 7), (1, 1), (1, 1), (1, 7)], strict=True))
    chosen = {"lengths": [4, 8], "width": 6, "batch": 2, "reach": 1, "seconds": 0.0, "kernel": 3}
    assert values["settings"] == chosen and values["rounds"] == 1
    assert values["machine"]["threads"] >= 1 and values["versions"]["torch"] == torch.__version__
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--lengths", "64"], "--lengths 64: growth needs at least two different lengths"),
        (["--lengths", "64,64"], "--lengths 64: growth needs at least two different lengths"),
        (
            ["--lengths", "16,x"],
            "--lengths 16,x: 'x' must be a positive whole number; separate lengths by commas",
        ),
        (
            ["--lengths", "0,16"],
            "--lengths 0,16: '0' must be a positive whole number; separate lengths by commas",
        ),
        (
            ["--lengths", "16,"],
            "--lengths 16,: '' must be a positive whole number; separate lengths by commas",
        ),
        (["--out", "cost.pdf"], "--out cost.pdf: must end in .png, .svg or .html"),
    ],
)
def test_mistakes_are_one_line(command: Any, options: list[str], says: str) -> None:
    assert command(*options) == (2, "", f"seq2see: {says}\n")


def test_lengths_that_memory_cannot_hold_are_refused_before_the_work(command: Any) -> None:
    code, out, error = command("--lengths", "16,10000000")
    held = "3 × 4 × 10000000² numbers, 4,470,348.4 GB"
    assert (code, out) == (2, "") and error.startswith(
        f"seq2see: --lengths 10000000: self-attention holds {held};"
    )
    assert error.count("\n") == 1


def test_what_stops_the_worker_is_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asdict(replace(JOB, batch=-1)))))
    with pytest.raises(SystemExit, match=r"^.*negative dimension.*$"):
        attention_worker.main()


def test_every_figure_is_printed_and_drawn(growth: Growth) -> None:
    lines = attention_report.report(growth)
    assert len([line for line in lines if line.startswith("self-attention, fused")]) == 4 + 2
    assert f"n^{growth.exponents['window'].time:.2f}" in "\n".join(lines)
    assert lines[-1].startswith("d = 16, batch 3, kernel 3, reach 8 · medians of 1 round · ")
    time, memory, distance = attention_report.draw(growth).axes
    for axes, field in ((time, "training_ms"), (memory, "training_mb")):
        for line, kind in zip(axes.lines, KINDS, strict=True):
            rows = [row for row in growth.rows if row.kind == kind]
            assert list(line.get_xdata()) == [64, 128, 256, 512]
            assert list(line.get_ydata()) == [getattr(row, field) for row in rows]
    assert len(distance.lines) == 4
    legend = memory.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert (
        names[2]
        == f"self-attention, weights kept: {growth.exponents['self_attention'].memory:.2f} (2)"
    )
