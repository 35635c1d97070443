"""The figure of `bench translate`: a point per row, circles around the recommended ones."""

from dataclasses import asdict, replace

import pytest

from seq2see.bench import translate_report
from seq2see.bench.translate import (
    Frontier,
    Row,
    recommend,
)
from seq2see.bench.translate_worker import Setting


def row(engine: str, precision: str, rate: float, p50: float, bleu: float) -> Row:
    setting = Setting(engine, precision, beam=2, batch=64, workers=1, threads=1)
    return Row(
        **asdict(setting),
        sentences_per_second=rate,
        p50_ms=p50,
        p99_ms=2 * p50,
        peak_memory_mb=100.0,
        start_seconds=1.0,
        bleu=bleu,
    )


@pytest.fixture
def measured() -> Frontier:
    rows = [
        row("torch", "float32", 100.0, 30.0, 35.0),
        row("ct2", "float32", 300.0, 8.0, 35.0),
        row("ct2", "int8", 700.0, 9.0, 34.8),
    ]
    return Frontier(
        model="model",
        text="toy",
        sentences=3,
        rounds=1,
        rows=rows,
        failed=[],
        left_out=None,
        recommended=recommend(rows),
        signature=None,
        machine={},
    )


def test_the_picture_has_every_row_and_circles_the_recommended(measured: Frontier) -> None:
    (axes,) = translate_report.draw(measured).axes
    drawn = {tuple(line.get_xydata()[0]) for line in axes.lines}
    assert drawn == {(row.p50_ms, row.sentences_per_second) for row in measured.rows}
    circles = [line for line in axes.lines if line.get_fillstyle() == "none"]
    best = measured.recommended
    assert best.throughput is not None and best.latency is not None
    assert len(circles) == len({best.throughput, best.latency})
    notes = [text.get_text() for text in axes.texts]
    assert sum(note.startswith("1 × 1") for note in notes) == len(notes) == len(measured.rows)
    assert sum(note.endswith((": throughput", ": latency")) for note in notes) == len(circles)
    legend = axes.get_legend()
    assert legend is not None and len(legend.get_texts()) == len(measured.rows)


def test_several_batch_sizes_are_labelled(measured: Frontier) -> None:
    rows = [*measured.rows, replace(measured.rows[0], batch=128)]
    (axes,) = translate_report.draw(replace(measured, rows=rows)).axes
    notes = {text.get_text().partition(":")[0] for text in axes.texts}
    assert {"1 × 1, 64", "1 × 1, 128"} <= notes


def test_one_setting_that_is_best_for_both_has_one_label_off_its_circle(measured: Frontier) -> None:
    row = measured.rows[1]
    rows = [replace(row, p50_ms=1.0, p99_ms=2.0), replace(row, p50_ms=50.0, p99_ms=90.0)]
    both = replace(measured.recommended, throughput=rows[0], latency=rows[0])
    figure = translate_report.draw(replace(measured, rows=rows, recommended=both))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (label,) = (text for text in axes.texts if text.get_text() == "1 × 1: throughput and latency")
    box = label.get_window_extent()
    point = axes.transData.transform((1.0, row.sentences_per_second))
    assert not box.contains(*point)
    inside = axes.get_window_extent()
    assert inside.x0 < box.x0 < box.x1 < inside.x1
