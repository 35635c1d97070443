"""`seq2see bench paint`: JSON, table, figure, tables of the docs, and refusals."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
from matplotlib.text import Annotation
from tables import painting, raw

from seq2see.bench import paint
from seq2see.bench.paint import Frontier, Row
from seq2see.bench.paint_parts import PARTS, TimeByPart
from seq2see.bench.paint_report import draw, report
from seq2see.bench.paint_workload import Setting, settings
from seq2see.cli import main as cli
from seq2see.decoding.denoising import Denoising
from seq2see.recipe.schema import Recipe

SPEEDS = {"untouched": 1.0, "0.25 all": 1.02, "0.5 all": 1.03, "0.25 keys": 1.02, "0.5 keys": 1.01}
KEYS = {"ratio", "seconds_per_picture", "speedup", "accuracy", "method", "every", "size"}
KEYS |= {"one_picture_seconds", "peak_memory_mb", "frechet_distance", "became_wrong", "p_value"}
Call = Callable[..., tuple[int, str, str]]


def row(setting: Setting, own: int = 64) -> Row:
    """Plausible figures: close to each other, so that their labels have little room."""
    speedup = SPEEDS[setting.merging]
    quality: dict[str, Any] = {}
    if setting.size == own:
        quality = {"accuracy": 0.9 - setting.ratio / 100, "frechet_distance": 0.5}
    if quality and setting.ratio:
        quality |= {"became_wrong": 3, "became_right": 1, "p_value": 0.625}
    return Row(
        **asdict(setting),
        seconds_per_picture=0.75 / speedup,
        speedup=speedup,
        one_picture_seconds=1.5 / speedup,
        one_picture_speedup=speedup,
        peak_memory_mb=123.4,
        **quality,
    )


def parts(setting: Setting, fused: bool = True) -> TimeByPart:
    shares = dict(zip(PARTS, (0.4, 0.1, 0.2, 0.25, 0.05), strict=True))
    seconds = 0.02 if fused else 0.03
    return TimeByPart(**asdict(setting), fused=fused, seconds_per_step=seconds, shares=shares)


@pytest.fixture
def frontier() -> Frontier:
    chosen = settings([64, 32], [0.25, 0.5], ["all", "keys"])
    timed = [parts(Setting(64)), parts(Setting(64), fused=False), *map(parts, chosen[1:])]
    quality = {"test": "test", "pictures": 200, "judge": "the judge", "frechet_features": "pixels"}
    return Frontier(
        own_size=64,
        min_tokens=256,
        count=16,
        sampling=Denoising(),
        rounds=3,
        attention_share=0.5,
        quality=quality,
        rows=[row(setting) for setting in chosen],
        parts=timed,
        machine={"threads": 2, "processor": "a processor", "cores": 2},
    )


def test_the_report_shows_every_setting_and_says_what_was_not_measured(frontier: Frontier) -> None:
    lines = report(frontier)
    cells = lines[3].split("  ")
    assert [cell.strip() for cell in cells if cell] == [
        *("64 pixels, 0.5 all", "0.728", "1.03×", "1.456", "1.03×", "123.4"),
        *("89.5%", "0.500", "3", "1", "0.625"),
    ]
    assert lines[1].endswith("90.0%    0.500") and lines[6].endswith("123.4")
    assert "64 pixels, untouched, not fused" in "\n".join(lines)
    assert "no quality at 32 pixels: the model was trained for 64" in lines
    assert "right: 200 prompts of test, by the judge; p: McNemar's exact test against" in lines[-4]
    assert lines[-1].startswith("attention takes 50.0% of the time at 64 pixels")


def test_without_quality_there_are_no_columns_and_no_chart_of_it(frontier: Frontier) -> None:
    kept = {**vars(frontier), "quality": None}
    lines = report(Frontier(**kept))
    assert "% right" not in lines[0] and "no quality was measured" in lines
    assert len(draw(Frontier(**kept)).axes) == 1


def test_the_figure_has_a_line_per_method_and_labels_that_do_not_overlap(
    frontier: Frontier,
) -> None:
    figure = draw(frontier)
    accuracy, bars = figure.axes
    assert [line.get_label() for line in accuracy.lines[:2]] == ["merge all", "merge keys"]
    assert list(accuracy.lines[0].get_xdata()) == [1, 1.02, 1.03]
    notes = [child for child in accuracy.get_children() if isinstance(child, Annotation)]
    assert [note.get_text() for note in notes] == ["untouched", "0.25", "0.5", "0.25", "0.5"]
    figure.draw_without_rendering()
    boxes = [note.get_window_extent() for note in notes]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert len(bars.patches) == len(PARTS) * len(frontier.parts)
    ends = [bar.get_x() + bar.get_width() for bar in bars.patches[-len(frontier.parts) :]]
    assert ends[:3] == pytest.approx([100, 150, 100])


def test_tables_of_the_docs_are_made_of_what_the_command_prints(
    frontier: Frontier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw, "RESULTS", tmp_path)
    assert painting.paint_merging() == painting.paint_parts() == raw.NOT_YET
    values = {"model": "runs/scenes-64", **asdict(frontier)}
    (tmp_path / "paint-64.json").write_text(json.dumps(values), encoding="utf-8")
    merging = painting.paint_merging()
    assert "| 64 | 0.5 all | 0.728 | 1.03 × |" in merging and "200 prompts of `test`" in merging
    assert "| 64 | untouched, not fused | 30.00 | 40.0 | 10.0 |" in painting.paint_parts()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "bench", "paint", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        return int(ended.value.code or 0), out, error

    return run


def test_the_command(call: Call, unet: Path, tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="the judge of scenes needs SciPy")
    few = ("--ratio", 0.5, "--method", "all", "--count", 2, "--test-pictures", 2, "--seconds", 0)
    out = tmp_path / "x.png"
    code, said, error = call("--model", unet, *few, "--steps", 1, "--out", out, "--json")
    assert code == 0, error
    values = json.loads(said)
    assert [row["ratio"] for row in values["rows"]] == [0, 0.5]
    assert values["rows"][1].keys() >= KEYS and 0 < values["attention_share"] < 1
    assert values["model"] == str(unet) and values["sampling"]["steps"] == 1
    assert values["parts"][1]["shares"].keys() == {*PARTS}
    assert matplotlib.image.imread(out).shape[1] > 500


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--ratio", 0.9), "--ratio"),
        (("--method", "queries"), "method 'queries' is not one of all, keys, layer"),
        (("--size", 16), "pictures of 16 pixels: the finest layer with attention has 64 "),
        (("--out", "x.jpg"), "--out x.jpg: must end in .png, .svg or .html"),
        (("--out", "none/x.png"), "--out none/x.png: there is no folder none"),
        (("--test-pictures", 1), "--test-pictures 1: a Fréchet distance needs at least 2"),
        (("--classifier", "none"), "--classifier is for pictures by class"),
    ],
)
def test_refusals_are_one_line_before_anything_is_measured(
    call: Call,
    unet: Path,
    arguments: tuple[object, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("scipy", reason="the judge of scenes needs SciPy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(paint, "_time")
    code, said, error = call("--model", unet, *arguments)
    assert (code, said) == (2, "") and says in error and error.count("\n") == 1


def test_models_of_other_tasks_are_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    Recipe.load("captions").save(tmp_path / "recipe.toml")
    code, _, error = call("--model", tmp_path)
    assert code == 2 and "a model of task 'translate', which is for seq2see translate" in error
