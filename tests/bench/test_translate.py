"""The translation benchmark: a row and a process per setting, and a recommendation."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.bench import rounds, translate, translate_report, translate_worker
from seq2see.bench.translate import (
    Frontier,
    Row,
    Text,
    bench_translate,
    in_turn,
    percentile,
    recommend,
    settings,
)
from seq2see.bench.translate_worker import Job, Measured, Setting
from seq2see.cli import main as cli
from seq2see.ct2.engine import cores
from seq2see.errors import InputError, WorkError
from seq2see.tasks.translator import Translator
from seq2see.text import corpora

KNOWN = Text(
    "toy",
    ["drei acht eins", "", "neun sieben fünf zehn"],
    ["three eight one", "", "nine seven five ten"],
)
KEYS = {"engine", "precision", "beam", "sentences_per_second", "p50_ms", "p99_ms", "bleu"}
FLOAT32 = Setting("ct2", "float32", beam=2, batch=64, workers=1, threads=1)


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
    """The jobs that workers would have been given."""
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
    """The command on the toy model: exit code, stdout, stderr."""
    pytest.importorskip("ctranslate2")

    def run(*options: object) -> tuple[object, str, str]:
        arguments = ["seq2see", "bench", "translate", "--model", trained, *options]
        monkeypatch.setattr(sys, "argv", [*map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def measured(trained: Path) -> Frontier:
    """The one run with real workers."""
    pytest.importorskip("ctranslate2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translate, "AT_LEAST", 0.01)
        return bench_translate(
            trained, KNOWN, beams=[2], batches=[64], threads=[1], seconds=0, say=silent
        )


def test_every_engine_and_precision_is_measured(measured: Frontier) -> None:
    kinds = [("torch", "float32"), ("ct2", "float32"), ("ct2", "int8")]
    assert [(row.engine, row.precision) for row in measured.rows] == kinds
    assert {(row.beam, row.batch, row.workers, row.threads) for row in measured.rows} == {
        (2, 64, 1, 1)
    }
    assert (measured.sentences, measured.rounds, measured.failed, measured.left_out) == (
        3,
        1,
        [],
        None,
    )
    for row in measured.rows:
        assert asdict(row).keys() >= KEYS
        assert (
            row.sentences_per_second > 0 and row.start_seconds > 0 and 0 < row.p50_ms <= row.p99_ms
        )
        assert row.precision == "int8" or row.bleu == pytest.approx(100)
    assert measured.signature is not None and measured.signature.startswith("nrefs:1")


def test_memory_is_that_of_the_worker_alone(measured: Frontier) -> None:
    """This process has loaded torch, and what it starts inherits its ru_maxrss."""
    memory = {row.engine: row.peak_memory_mb for row in measured.rows}
    assert 10 < memory["ct2"] < memory["torch"] / 1.5


def job_for(weights: Path, model: Path, setting: Setting = FLOAT32) -> Job:
    return Job(
        setting, str(model), str(weights), KNOWN.sources, KNOWN.sources[:1], 0.0, time.time()
    )


def test_a_worker_of_ctranslate2_has_no_torch(exported: Path, trained: Path) -> None:
    program = (
        "import sys\nfrom seq2see.bench.translate_worker import main\nmain()\n"
        "heavy = {'torch', 'sacrebleu', 'matplotlib', 'typer'}\n"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)"
    )
    given = json.dumps(asdict(job_for(exported, trained)))
    done = subprocess.run(
        [sys.executable, "-c", program], input=given, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")
    found = Measured(**json.loads(done.stdout))
    assert found.outputs == KNOWN.references and len(found.latencies_ms) == 1


def test_a_short_text_is_translated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def translated(texts: list[str]) -> list[str]:
        asked.append(len(texts))
        time.sleep(0.01)
        return texts

    monkeypatch.setattr(translate_worker, "_ct2", lambda job: translated)
    found = translate_worker.measure(replace(job_for(Path(), Path()), seconds=0.1))
    assert (
        asked[:2] == [1, 1] and 3 <= asked.count(3) <= 10
    )  # the first sentence, the sample, the text
    assert found.outputs == KNOWN.sources and found.sentences_per_second < 3 / 0.01


def test_a_failing_worker_says_why_and_the_others_go_on(
    exported: Path, trained: Path, tmp_path: Path
) -> None:
    broken, said = replace(FLOAT32, beam=3), list[str]()
    jobs = [job_for(tmp_path, trained, broken), job_for(exported, trained)]
    found, errors = in_turn(jobs, 0.0, said.append)
    assert list(found) == [FLOAT32] and len(found[FLOAT32]) == 1
    assert (
        list(errors) == [broken] and str(tmp_path) in errors[broken] and "\n" not in errors[broken]
    )
    assert said[0] == f"round 1 · 1 of 2 · {broken}" and said[1] == f"failed: {errors[broken]}"


@pytest.mark.parametrize(("seconds", "count"), [(0, 1), (39, 1), (40, 2), (65, 3)])
def test_settings_run_in_rounds_while_another_one_fits(
    seconds: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    ran: list[int] = []

    def run(job: Job) -> Measured:
        clock[0] += 10
        ran.append(job.setting.beam)
        return pretended(job)

    monkeypatch.setattr(translate, "run", run)
    monkeypatch.setattr(rounds, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    jobs = [job_for(Path(), Path(), replace(FLOAT32, beam=beam)) for beam in (1, 2)]
    measured, _ = in_turn(jobs, seconds, silent)
    assert ran == [1, 2] * count
    assert [len(results) for results in measured.values()] == [count] * 2


def test_what_fails_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Job] = []

    def run(job: Job) -> Measured:
        tried.append(job)
        raise WorkError("no")

    monkeypatch.setattr(translate, "run", run)
    found, errors = in_turn([job_for(Path(), Path())], 1e9, silent)
    assert (found, errors, len(tried)) == ({}, {FLOAT32: "no"}, 1)


def test_threads_are_workers_or_inside_one() -> None:
    found = settings([("torch", "float32"), ("ct2", "int8")], [1, 5], [64, 128], [1, 3])
    assert len(set(found)) == len(found) == 2 * 2 * (2 + 3)
    assert {(each.workers, each.threads) for each in found if each.engine == "torch"} == {
        (1, 1),
        (1, 3),
    }
    assert {(each.workers, each.threads) for each in found if each.engine == "ct2"} == {
        (1, 1),
        (1, 3),
        (3, 1),
    }


@given(
    st.lists(
        st.tuples(
            st.floats(1, 1e4), st.floats(0.1, 1e3), st.sampled_from([20.0, 30.0, 30.2, 30.31])
        ),
        min_size=1,
    )
)
def test_recommended_is_the_fastest_that_translates_about_as_well(
    found: list[tuple[float, float, float]],
) -> None:
    rows = [Row(**asdict(FLOAT32), **figures(rate, p50), bleu=bleu) for rate, p50, bleu in found]
    best = max(bleu for *_, bleu in found)
    allowed = [row for row in rows if row.bleu is not None and best - row.bleu <= 0.3]
    chosen = recommend(rows)
    assert chosen.throughput in allowed and chosen.latency in allowed
    assert chosen.throughput.sentences_per_second == max(
        row.sentences_per_second for row in allowed
    )
    assert chosen.latency.p50_ms == min(row.p50_ms for row in allowed)
    assert f"at most 0.3 BLEU below the best, {best:.2f}" in chosen.rule


def figures(rate: float, p50: float) -> dict[str, Any]:
    return {
        "sentences_per_second": rate,
        "p50_ms": p50,
        "p99_ms": 2 * p50,
        "peak_memory_mb": 100.0,
        "start_seconds": 1.0,
    }


def test_without_bleu_the_fastest_of_all_is_recommended_and_the_rule_says_so() -> None:
    rows = [Row(**asdict(FLOAT32), **figures(rate, 100 / rate), bleu=None) for rate in (5.0, 9.0)]
    chosen = recommend(rows)
    assert (chosen.throughput, chosen.latency) == (
        rows[1],
        rows[1],
    ) and "BLEU is unknown" in chosen.rule
    assert recommend([]).throughput is None


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_percentiles_are_measured_values_that_so_many_do_not_exceed(
    values: list[float], share: int
) -> None:
    found = percentile(values, share)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= share * len(values)
    assert 100 * sum(value < found for value in values) < share * len(values)


def test_json_is_one_object_and_nothing_else(call: Any, fake: list[Job], tmp_path: Path) -> None:
    source, reference = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("drei acht eins zwei vier\n" * 4)
    reference.write_text("three eight eins zwei vier\n" * 4)
    texts = ("--source", source, "--reference", reference, "--limit", 3)
    code, out, error = call(
        *texts, "--beam", 2, "--beam", 5, "--batch", 9, "--threads", 1, "--seconds", 0, "--json"
    )
    assert code == 0 and out.count("\n") == 1
    found = json.loads(out)
    assert len(found["rows"]) == len(fake) == 6 and found["rounds"] == 1 and found["sentences"] == 3
    assert {
        (row["beam"], row["batch"], row["workers"], row["threads"]) for row in found["rows"]
    } == {
        (2, 9, 1, 1),
        (5, 9, 1, 1),
    }
    for row in found["rows"]:
        assert {field.name for field in fields(Row)} == row.keys() and row.keys() >= KEYS
    # int8 is twice as fast but does not translate as well.
    assert found["recommended"]["throughput"] == next(
        row for row in found["rows"] if row["precision"] == "float32"
    )
    assert [line.partition(" · batch")[0] for line in error.splitlines()] == [
        f"round 1 · {place} of 6 · {kind} · beam {beam}"
        for place, (kind, beam) in enumerate(
            [
                (kind, beam)
                for kind in ("torch float32", "ct2 float32", "ct2 int8")
                for beam in (2, 5)
            ],
            start=1,
        )
    ]


def test_the_table_has_a_line_for_each_row_and_ends_with_what_to_take(
    call: Any, fake: list[Job]
) -> None:
    code, out, _ = call("--seconds", 0)
    rows = out.split("\n\n")[0].splitlines()
    assert (
        code == 0
        and rows[0].split() == " ".join(translate_report.HEADS).split()
        and len(rows) == 1 + len(fake)
    )
    assert {job.setting.beam for job in fake} == {1, 4} and {job.setting.batch for job in fake} == {
        8192
    }
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
    found = json.loads(out)
    assert code == 1 and error.splitlines()[-1] == "seq2see: 1 of 3 settings failed"
    assert [row["engine"] for row in found["rows"]] == ["torch", "ct2"]
    assert [(row["precision"], row["error"][-10:]) for row in found["failed"]] == [
        ("int8", "no message")
    ]
    code, out, _ = call("--beam", 1, "--threads", 1, "--seconds", 0)
    assert (
        code == 1
        and "failed: ct2 int8 · beam 1 · batch 8192 · 1 × 1 thread: the worker ended" in out
    )


def test_when_all_fails_nothing_is_recommended_or_drawn(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(job: Job) -> Measured:
        raise WorkError("no")

    monkeypatch.setattr(translate, "run", run)
    code, out, _ = call("--out", tmp_path / "a.png")
    assert code == 1 and out.endswith("nothing to recommend: every setting failed\n")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_ct2_is_left_out_and_that_is_said(
    call: Any, fake: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    code, out, error = call("--beam", 1, "--threads", 1, "--seconds", 0)
    says = "without ct2: CTranslate2 is not installed: pip install 'seq2see[ct2]'"
    assert code == 0 and says in out and says in error
    assert {job.setting.engine for job in fake} == {"torch"}


def test_a_model_that_ctranslate2_cannot_take_is_measured_without_it(
    translator: Translator, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    decode = translator.recipe.decode.model_copy(update={"min_length": 2})
    recipe = translator.recipe.model_copy(update={"decode": decode})
    other = Translator(recipe, translator.tokenizers, translator.model, translator.device)
    weights, left_out = translate.convert_all(other, tmp_path, tmp_path)
    assert weights == {("torch", "float32"): tmp_path}
    assert left_out is not None and left_out.startswith("decode.min_length = 2")


def test_by_default_the_text_is_the_recipes_test_set_or_the_log_or_made_up(
    translator: Translator, trained: Path, tmp_path: Path
) -> None:
    found = translate.own_text(translator, trained, silent)
    test = corpora.load(translator.recipe.data).tests["test"]
    assert (
        found.name == "test" and [*zip(found.sources, found.references, strict=True)] == test.pairs
    )
    data = translator.recipe.data.model_copy(update={"train": str(tmp_path / "gone.tsv")})
    recipe = translator.recipe.model_copy(update={"data": data})
    other = Translator(recipe, translator.tokenizers, translator.model, translator.device)
    said: list[str] = []
    for model, name in ((trained, "log.jsonl, repeated"), (tmp_path, "made-up text")):
        few = translate.own_text(other, model, said.append)
        assert (
            few.name.startswith(name)
            and len(few.sources) == translate.FILL
            and few.references == []
        )
    assert all("gone.tsv" in line for line in said)


def test_one_by_one_are_sentences_from_all_over_the_text(
    trained: Path, fake: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translate, "SAMPLE", 3)
    text = Text("text", ["", *(f"line {place}" for place in range(10)), " "], [])
    bench_translate(trained, text, beams=[1], threads=[1], seconds=0, say=silent)
    assert fake[0].sample == ["line 0", "line 3", "line 6"] and fake[0].texts == text.sources


def test_texts_that_cannot_be(call: Any, fake: list[Job], tmp_path: Path) -> None:
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


def test_an_exported_model_is_refused(exported: Path) -> None:
    with pytest.raises(InputError, match="exported for CTranslate2"):
        bench_translate(exported)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_picture_is_written(call: Any, fake: list[Job], tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    assert call("--seconds", 0, "--out", path)[0] == 0
    assert path.read_bytes()[:5] == (b"\x89PNG\r" if ending == "png" else b"<?xml")


def test_the_picture_has_every_row_and_rings_the_recommended(measured: Frontier) -> None:
    (axes,) = translate_report.draw(measured).axes
    drawn = {tuple(line.get_xydata()[0]) for line in axes.lines}
    assert drawn == {(row.p50_ms, row.sentences_per_second) for row in measured.rows}
    rings = [line for line in axes.lines if line.get_fillstyle() == "none"]
    best = measured.recommended
    assert best.throughput is not None and best.latency is not None
    assert len(rings) == len({best.throughput, best.latency})
    notes = [text.get_text() for text in axes.texts]
    assert sum(note.endswith("1 × 1") for note in notes) == len(notes) == len(measured.rows)
    assert len([note for note in notes if note.startswith(("throughput", "latency"))]) == len(rings)
    legend = axes.get_legend()
    assert legend is not None and len(legend.get_texts()) == len(measured.rows)


def test_several_batches_are_told_apart(measured: Frontier) -> None:
    rows = [*measured.rows, replace(measured.rows[0], batch=128)]
    (axes,) = translate_report.draw(replace(measured, rows=rows)).axes
    assert {"1 × 1, 64", "1 × 1, 128"} <= {text.get_text() for text in axes.texts}


def test_a_label_stays_beside_its_ring_also_where_one_setting_is_best_for_both(
    measured: Frontier,
) -> None:
    row = measured.rows[1]
    rows = [replace(row, p50_ms=1.0, p99_ms=2.0), replace(row, p50_ms=50.0, p99_ms=90.0)]
    both = replace(measured.recommended, throughput=rows[0], latency=rows[0])
    figure = translate_report.draw(replace(measured, rows=rows, recommended=both))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (label,) = (text for text in axes.texts if text.get_text() == "throughput\nand latency: 1 × 1")
    box = label.get_window_extent()
    assert axes.get_window_extent().x0 < box.x0 < box.x1 < axes.transData.transform((1.0, 1.0))[0]
