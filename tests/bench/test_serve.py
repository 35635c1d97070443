"""`seq2see bench serve`: a real server under a short load, its rows, table and figure."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from seq2see.bench.serve import ALONE, BATCHED, Plan, Serving, bench_serve, command
from seq2see.bench.serve_report import HEADS, draw, report
from seq2see.bench.serve_rounds import Load, Results, row
from seq2see.bench.serve_worker import Measured
from seq2see.bench.server_process import running, serving
from seq2see.bench.translate import Text
from seq2see.cli import main as cli
from seq2see.errors import InputError, WorkError

SOURCES = ["drei acht eins", "neun sieben", "fünf", "zwei zehn vier sechs", "acht acht drei"]
TEXT = Text("toy", SOURCES, [])
KEYS = {"server", "connections", "requests_per_second", "sentences_per_second", "p50_ms", "p95_ms"}
KEYS |= {"p99_ms", "errors", "refused", "wrong", "generator_share", "of_offline"}


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def served(exported: Path) -> Serving:
    """The one run that starts servers with batching and without."""
    pytest.importorskip("uvicorn")
    plan = Plan([1, 4], [30.0], per_request=2, window=0.4, seconds=0)
    return bench_serve(exported, TEXT, plan, say=silent)


def test_every_load_is_measured_and_every_answer_is_right(served: Serving) -> None:
    loads = [(row.server, row.connections, row.rate) for row in served.rows]
    closed = [(server, count, None) for server in (BATCHED, ALONE) for count in (1, 4)]
    assert loads == [*closed, (BATCHED, None, 30.0)]
    assert (served.rounds, served.sentences, served.failures) == (1, 5, {})
    assert served.offline_sentences_per_second is not None
    for measured in served.rows:
        assert (measured.errors, measured.refused, measured.wrong) == (0, 0, 0)
        assert measured.requests_per_second > 0
        # The last request has one sentence, the others two.
        assert 1 < measured.sentences_per_second / measured.requests_per_second <= 2
        assert measured.p50_ms is not None and measured.p99_ms is not None
        assert 0 < measured.p50_ms <= measured.p99_ms
        assert 0 < measured.generator_share < 1 and (measured.memory_mb or 0) > 10
        share = measured.sentences_per_second / served.offline_sentences_per_second
        assert measured.of_offline == pytest.approx(share)
    batched, _, alone, *_ = served.rows
    gain = batched.sentences_per_second / alone.sentences_per_second
    assert batched.of_batching_off == pytest.approx(gain) and alone.of_batching_off is None


def test_the_table_and_the_figure_show_every_load(served: Serving) -> None:
    lines = report(served)
    assert lines[0].split() == " ".join(HEADS).split()
    assert [line.split("  ")[0] for line in lines[1:6]] == [
        "batching · 1 connection",
        "batching · 4 connections",
        "batching off · 1 connection",
        "batching off · 4 connections",
        "batching · 30 requests/s",
    ]
    assert lines[-1] == "5 sentences of toy, 2 per request · measured once of 0.4 s"
    throughput, latency = draw(served).axes
    assert [line.get_label() for line in throughput.lines] == [BATCHED, ALONE, "offline"]
    assert [*latency.lines[0].get_xdata()] == [1, 4]


def figures(rate: float, p50: float | None = 5.0, **more: Any) -> Measured:
    values = {"refused": 1, "errors": 2, "wrong": 3, "failures": {}, "generator_share": 0.1}
    return Measured(10, 10, rate, rate, p50, p50, p50, **(values | more))


def test_rows_are_medians_over_rounds_and_ratios_are_within_a_round() -> None:
    load, other = Load("ours", 8), Load("theirs", 8)
    measured = {
        load: {1: figures(10.0, 1.0), 2: figures(40.0, 9.0), 3: figures(20.0, 2.0)},
        other: {1: figures(5.0), 2: figures(1.0), 3: figures(4.0)},
    }
    results = Results(measured, {load: 50.0}, {1: 20.0, 2: 40.0, 3: 40.0})
    summary = row(load, results, other)
    assert (summary.sentences_per_second, summary.p50_ms) == (20.0, 2.0)
    assert (summary.refused, summary.errors, summary.wrong) == (3, 6, 9)
    assert (summary.of_offline, summary.of_batching_off) == (0.5, 5.0)


def test_a_round_without_answers_leaves_the_others() -> None:
    load = Load("ours", 8)
    rounds = {1: figures(0.0, None, wrong=None), 2: figures(7.0, wrong=None)}
    summary = row(load, Results({load: rounds}, {load: None}), load)
    assert (summary.sentences_per_second, summary.p50_ms, summary.wrong) == (7.0, 5.0, None)
    assert summary.of_offline is summary.of_batching_off is None


def test_a_server_that_fails_says_why() -> None:
    program = "import sys; print('first', file=sys.stderr); sys.exit('no such model')"
    command = [sys.executable, "-c", program]
    with pytest.raises(WorkError, match="ended with code 1: no such model"), serving(command):
        pass


def test_a_server_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2see.bench.server_process.STOP", 0.2)
    program = (
        "import http.server, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "address = ('127.0.0.1', int(sys.argv[-1]))\n"
        "http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    with serving([sys.executable, "-c", program], ready="/") as server:
        assert server.pid is not None and (server.resident_mb() or 0) > 1
    assert not psutil.pid_exists(server.pid)


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:80", "https://127.0.0.1:80", "http://127.0.0.1:80/v1", "8000"]
)
def test_load_is_sent_to_this_machine_alone(url: str) -> None:
    with pytest.raises(InputError, match="must be the root of a server here"):
        running(url)


def test_a_model_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with pytest.raises(WorkError, match=r"ended with code 2: .*gone"):
        bench_serve(tmp_path / "gone", TEXT, Plan(), say=silent)


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str, str]]:
    """Run the command: exit code, stdout, stderr."""

    def run(*options: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "bench", "serve", *map(str, options)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


def test_the_command_measures_a_running_server(call: Any, exported: Path, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    source = tmp_path / "text.de"
    source.write_text("\n".join([SOURCES[0], "", *SOURCES]) + "\n")
    options = ("--source", source, "--connections", 2, "--window", 0.2, "--seconds", 0)
    figure = tmp_path / "figure.svg"
    with serving(command(exported)) as server:
        url = f"http://127.0.0.1:{server.port}"
        code, out, _ = call("--url", url, *options, "--limit", 3, "--json", "--out", figure)
        assert code == 0 and figure.read_text().startswith("<?xml")
        values = json.loads(out)
        (measured,) = values["rows"]
        assert measured.keys() >= KEYS and values["sentences"] == 3
        assert (measured["server"], measured["wrong"], measured["errors"]) == (url, 0, 0)
        assert values["offline_sentences_per_second"] is None
        code, out, _ = call("--url", url, "--model", exported, "--beam", 1, *options, "--json")
        (measured,) = json.loads(out)["rows"]
        assert (code, measured["wrong"]) == (0, 0) and measured["of_offline"] > 0


def test_a_call_without_a_server_or_a_text_is_refused(call: Any) -> None:
    assert call() == (
        2,
        "",
        "seq2see: --model DIR or --url URL is missing: which server is to be measured?\n",
    )
    code, _, error = call("--url", "http://127.0.0.1:1")
    assert code == 2 and "--url needs --source FILE" in error


def test_the_generator_loads_neither_torch_nor_ctranslate2() -> None:
    program = (
        "import seq2see.bench.serve_worker, sys\n"
        "print(sorted({'torch', 'ctranslate2', 'matplotlib'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"
