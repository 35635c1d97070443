"""The translation benchmark: a row and a process per setting, and a recommendation."""

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.bench import rounds, translate, translate_worker
from seq2see.bench.translate import (
    Frontier,
    Row,
    Text,
    bench_translate,
    in_turn,
    recommend,
    settings,
)
from seq2see.bench.translate_worker import Job, Measured, Setting
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
    shared = {(row.beam, row.batch, row.workers, row.threads) for row in measured.rows}
    assert shared == {(2, 64, 1, 1)}
    assert (measured.sentences, measured.rounds) == (3, 1)
    assert (measured.failed, measured.left_out) == ([], None)
    for row in measured.rows:
        assert asdict(row).keys() >= KEYS
        assert row.sentences_per_second > 0 and row.start_seconds > 0
        assert 0 < row.p50_ms <= row.p99_ms
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
    measured = Measured(**json.loads(done.stdout))
    assert measured.outputs == KNOWN.references and len(measured.latencies_ms) == 1


def test_a_short_text_is_translated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def translated(texts: list[str]) -> list[str]:
        asked.append(len(texts))
        time.sleep(0.01)
        return texts

    monkeypatch.setattr(translate_worker, "_ct2", lambda job: translated)
    measured = translate_worker.measure(replace(job_for(Path(), Path()), seconds=0.1))
    assert asked[:2] == [1, 1]  # the first sentence, the sample; then the text
    assert 3 <= asked.count(3) <= 10
    assert measured.outputs == KNOWN.sources and measured.sentences_per_second < 3 / 0.01


def test_a_failing_worker_says_why_and_the_others_continue(
    exported: Path, trained: Path, tmp_path: Path
) -> None:
    broken = replace(FLOAT32, beam=3)
    said: list[str] = []
    jobs = [job_for(tmp_path, trained, broken), job_for(exported, trained)]
    measured, errors = in_turn(jobs, 0.0, said.append)
    assert list(measured) == [FLOAT32] and len(measured[FLOAT32]) == 1
    assert list(errors) == [broken]
    assert str(tmp_path) in errors[broken] and "\n" not in errors[broken]
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
        return Measured(0.5, [1.0], 100.0, 50.0, job.texts)

    monkeypatch.setattr(translate, "run", run)
    monkeypatch.setattr(rounds, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    jobs = [job_for(Path(), Path(), replace(FLOAT32, beam=beam)) for beam in (1, 2)]
    measured, _ = in_turn(jobs, seconds, silent)
    assert ran == [1, 2] * count
    assert [len(results) for results in measured.values()] == [count] * 2


def test_a_failed_setting_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Job] = []

    def run(job: Job) -> Measured:
        tried.append(job)
        raise WorkError("no")

    monkeypatch.setattr(translate, "run", run)
    measured, errors = in_turn([job_for(Path(), Path())], 1e9, silent)
    assert (measured, errors, len(tried)) == ({}, {FLOAT32: "no"}, 1)


def test_threads_are_parallel_workers_or_inside_one() -> None:
    combinations = settings([("torch", "float32"), ("ct2", "int8")], [1, 5], [64, 128], [1, 3])
    assert len(set(combinations)) == len(combinations) == 2 * 2 * (2 + 3)
    threads: dict[str, set[tuple[int, int]]] = {"torch": set(), "ct2": set()}
    for setting in combinations:
        threads[setting.engine].add((setting.workers, setting.threads))
    assert threads == {"torch": {(1, 1), (1, 3)}, "ct2": {(1, 1), (1, 3), (3, 1)}}


@given(
    st.lists(
        st.tuples(
            st.floats(1, 1e4), st.floats(0.1, 1e3), st.sampled_from([20.0, 30.0, 30.2, 30.31])
        ),
        min_size=1,
    )
)
def test_recommended_is_the_fastest_that_translates_about_as_well(
    measured: list[tuple[float, float, float]],
) -> None:
    rows = [Row(**asdict(FLOAT32), **figures(rate, p50), bleu=bleu) for rate, p50, bleu in measured]
    best = max(bleu for *_, bleu in measured)
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
    assert (chosen.throughput, chosen.latency) == (rows[1], rows[1])
    assert "BLEU is unknown" in chosen.rule
    assert recommend([]).throughput is None


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
    text = translate.own_text(translator, trained, silent)
    test = corpora.load(translator.recipe.data).tests["test"]
    assert text.name == "test" and [*zip(text.sources, text.references, strict=True)] == test.pairs
    data = translator.recipe.data.model_copy(update={"train": str(tmp_path / "gone.tsv")})
    recipe = translator.recipe.model_copy(update={"data": data})
    other = Translator(recipe, translator.tokenizers, translator.model, translator.device)
    said: list[str] = []
    for model, name in ((trained, "log.jsonl, repeated"), (tmp_path, "made-up text")):
        few = translate.own_text(other, model, said.append)
        assert few.name.startswith(name)
        assert len(few.sources) == translate.FILL and few.references == []
    assert all("gone.tsv" in line for line in said)


def test_an_exported_model_is_refused(exported: Path) -> None:
    with pytest.raises(InputError, match="an export for CTranslate2"):
        bench_translate(exported)
