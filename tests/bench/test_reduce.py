"""The reduction benchmark: a row per setting, on the same model and test set."""

import itertools
import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from seq2see import Transformer
from seq2see.bench import reduce
from seq2see.bench.reduce import (
    UNTOUCHED,
    Frontier,
    Row,
    Setting,
    bench_reduce,
    settings,
    what_pays,
)
from seq2see.bench.reduce_report import draw, report
from seq2see.bench.reduce_workload import Workload, workload_of
from seq2see.bench.translate import Text
from seq2see.cli import main as cli
from seq2see.errors import InputError
from seq2see.layers import attention
from seq2see.layers.reduction.plans import Merging, Pruning, TopPruning
from seq2see.models.reduced import plan_of
from seq2see.recipe.schema import ModelConfig
from seq2see.tasks.run import evaluate_own

TEXT = Text(
    "toy",
    ["drei acht eins", "neun sieben fünf zehn", "vier zwei"],
    ["three eight one", "nine seven five ten", "four two"],
)
ROW = Row("untouched", 0, 100.0, 400.0, [0.2, 0.3], [24.0, 20.0], 3.0, 90.0)
ROWS = [
    ROW,
    replace(ROW, kind="merge", amount=2, per_second=120.0, quality=89.8),
    replace(ROW, kind="merge", amount=8, per_second=200.0, quality=70.0),
    replace(ROW, kind="merge random", amount=2, per_second=150.0, quality=90.0),
]
AS_MANY = ["keep as many", "keep random as many"]


@pytest.fixture(scope="module")
def workload(trained: Path) -> Workload:
    return workload_of(trained, TEXT, None, batch=2)


def test_every_amount_is_tried_in_every_way() -> None:
    requested = settings([2, 4], [0.1], [0.5])
    assert list(map(str, requested)) == [
        *("merge 2", "merge 4", "merge decreasing 2", "merge decreasing 4"),
        *("merge neighbours 2", "merge neighbours 4", "merge random 2", "merge random 4"),
        *("threshold 0.1", "keep 0.5", "keep random 0.5"),
    ]
    assert not any("neighbours" in setting.kind for setting in settings([2], [], [], text=False))


def test_a_setting_is_a_plan(workload: Workload) -> None:
    plans: dict[str, Any] = {
        str(setting): plan_of(setting.apply(workload.model))
        for setting in (UNTOUCHED, *settings([2], [0.1], [0.5]))
    }
    assert plans["untouched"] is None
    assert isinstance(plans["merge 2"], Merging) and plans["merge 2"].seed is None
    assert (
        plans["merge neighbours 2"].match.__name__ == "neighbours"
        and plans["merge random 2"].seed == 1
    )
    assert isinstance(plans["threshold 0.1"], Pruning) and isinstance(plans["keep 0.5"], TopPruning)
    assert plans["keep random 0.5"].seed == 1
    three = Transformer(ModelConfig(width=8, encoder_layers=3), 10, 10)
    constant: Any = plan_of(Setting("merge", 2).apply(three))
    decreasing: Any = plan_of(Setting("merge decreasing", 2).apply(three))
    assert (constant.r, decreasing.r) == ([2, 2, 2], [4, 2, 0])


def test_the_untouched_model_comes_first_and_fewer_tokens_are_fewer_operations(
    workload: Workload,
) -> None:
    frontier = bench_reduce(
        workload,
        [Setting("merge", 0), Setting("merge", 1), Setting("keep", 0.5)],
        0,
        lambda line: None,
    )
    untouched, nothing, one, half = frontier.rows
    assert untouched.kind == "untouched"
    assert (frontier.rounds, frontier.count, frontier.measure) == (1, 3, "bleu")
    assert untouched.quality == nothing.quality > 99
    assert untouched.gflops == nothing.gflops > one.gflops > half.gflops > 0
    assert untouched.tokens_left == nothing.tokens_left == one.tokens_left + 1
    for row in frontier.rows:
        assert row.per_second > 0 and row.encoded_per_second > 0 and row.peak_memory_mb > 0
    assert frontier.trained is None and [row.gflops_share for row in (untouched, nothing)] == [1, 1]
    assert json.loads(json.dumps(asdict(frontier)))["rows"][2]["kind"] == "merge"


@pytest.mark.parametrize(
    ("reduce", "plan", "controls"),
    [
        (
            ["kind=prune", "mode=soft", "thresholds=0.9"],
            r"Pruning\(thresholds=\[0\.\d+\]\)",
            AS_MANY,
        ),
        (["kind=prune", "thresholds=0.9"], r"Pruning\(thresholds=\[0\.9\]\)", AS_MANY),
        (["kind=merge", "r=1", "match=neighbours"], r"Merging\(r=\[1\], match='neighbours'\)", []),
        (["kind=prune", "mode=top", "keep=0.5"], r"TopPruning\(shares=\[0.5\]\)", AS_MANY[1:]),
    ],
)
def test_a_model_with_a_plan_of_its_own_is_measured_with_it(
    toy: Any, reduce: list[str], plan: str, controls: list[str]
) -> None:
    toy.train(toy.folder / "run", "train.steps=2", *(f"reduce.{key}" for key in reduce))
    workload = workload_of(toy.folder / "run", TEXT, None)
    frontier = bench_reduce(workload, [Setting("keep", 0.9)], 0, lambda line: None)
    untouched, own, *others, _ = frontier.rows
    assert [str(row) for row in frontier.rows] == ["untouched", "as trained", *controls, "keep 0.9"]
    assert all(other.tokens_left == pytest.approx(own.tokens_left, abs=0.5) for other in others)
    assert frontier.trained is not None and re.fullmatch(plan, frontier.trained)
    assert own.tokens_left < untouched.tokens_left and untouched.gflops_share == 1
    assert own.gflops_share == own.gflops / untouched.gflops < 1
    assert plan_of(workload.model) is not None  # the model itself is as it was


def test_pictures_have_an_accuracy(pictured: Path) -> None:
    workload = workload_of(pictured, None, None, limit=5, batch=3)
    frontier = bench_reduce(workload, [Setting("merge", 1)], 0, lambda line: None)
    assert (frontier.measure, frontier.count) == ("accuracy", 5)
    assert frontier.rows[1].tokens_left < frontier.rows[0].tokens_left
    whole = bench_reduce(workload_of(pictured, None, None), [], 0, lambda line: None)
    assert whole.rows[0].quality == pytest.approx(100 * evaluate_own(pictured).values["accuracy"])
    assert (
        whole.rows[0].encoded_per_second == whole.rows[0].per_second
    )  # there is nothing behind the encoder


def test_rounds_alternate_and_random_ones_draw_anew(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, seeds = list[str](), list[int]()
    scores = iter([50.0, 90.0, 80.0, 50.0])  # the second round goes backwards

    def answer(model: Any) -> Any:
        plan: Any = plan_of(model)
        if plan is not None:
            seeds.append(plan.seed)
        return workload.answer(model)

    clock = itertools.count()  # 13 ticks a round
    monkeypatch.setattr(reduce.time, "perf_counter", lambda: float(next(clock)))
    watched = replace(workload, answer=answer, quality=lambda _: next(scores))
    frontier = bench_reduce(watched, [Setting("merge random", 1)], 30, said.append)
    first, second = ["untouched", "merge random 1"], ["merge random 1", "untouched"]
    assert said == [
        *(f"round 1 · {setting}" for setting in first),
        *(f"round 2 · {setting}" for setting in second),
    ]
    assert seeds == [1, 2] and [row.quality for row in frontier.rows] == [50, 85]


def test_the_untouched_model_has_the_fused_kernel(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, fused = list[bool](), attention._fused
    monkeypatch.setattr(attention, "_fused", lambda *given: (called.append(True), fused(*given))[1])
    workload.encode(UNTOUCHED.apply(workload.model), workload.batches[0], None)
    assert len(called) == len(workload.model.encoder)


def test_sources_that_the_model_does_not_take_as_a_whole_are_left_out(trained: Path) -> None:
    longer = Text(
        "toy", [TEXT.sources[0], "drei " * 500, TEXT.sources[1]], [TEXT.references[0], "x", "y"]
    )
    assert [batch.lines for batch in workload_of(trained, longer, None).batches] == [[0, 1]]
    assert [batch.lines for batch in workload_of(trained, longer, None, limit=1).batches] == [[0]]
    with pytest.raises(InputError, match=r"^data\.max_length = \d+: no pair of toy is that short$"):
        workload_of(trained, Text("toy", ["drei " * 500], ["x"]), None)


def test_what_pays_is_as_good_and_faster_and_not_random() -> None:
    assert what_pays(ROWS, 0.3) == ROWS[1]
    assert what_pays(ROWS, 0.1) is None
    assert what_pays(ROWS, 50) == ROWS[2]


def test_the_report_says_what_pays_or_that_nothing_does() -> None:
    frontier = Frontier("test", 3, 1, "bleu", None, ROWS, ROWS[1], {})
    said = report(frontier)
    assert said[1].split() == [
        "untouched",
        "100.0",
        "1.00×",
        "400.0",
        "1.00×",
        "0.500",
        "100%",
        "20.0",
        "3.0",
        "90.00",
    ]
    assert said[-2] == "3 of test, 20.0 tokens each · measured once"
    assert (
        said[-1]
        == "pays: merge 2, 1.20 times as fast and at most 0.3 BLEU below the untouched model"
    )
    nothing = report(replace(frontier, pays=None, rounds=3, measure="accuracy"))
    assert "medians of 3 rounds" in nothing[-2] and nothing[-1].startswith(
        "nothing pays here: no setting at most 0.5 %"
    )
    assert [len(axes.lines) for axes in draw(frontier).axes] == [3, 3, 3]
    own = replace(
        ROW, kind="as trained", per_second=130.0, layer_gflops=[0.1, 0.2], gflops_share=0.6
    )
    learned = replace(
        frontier, trained="Pruning(thresholds=[0.1])", rows=[ROW, own, *ROWS[1:]], pays=own
    )
    said = report(learned)
    assert said[2].split()[:3] == ["as", "trained", "130.0"] and "  0.300     60%  " in said[2]
    assert (
        said[-2]
        == "as trained: Pruning(thresholds=[0.1]); tokens left after each layer: 24.0 · 20.0"
    )
    assert said[-1].startswith("pays: as trained, 1.30 times")
    panels = draw(learned).axes
    assert [len(axes.lines) for axes in panels] == [4, 4, 4] and panels[2].xaxis_inverted()
    assert list(panels[2].lines[0].get_xdata()) == [100, 60]


def test_the_command(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, some in (("source", TEXT.sources), ("reference", TEXT.references)):
        (tmp_path / name).write_text("\n".join(some) + "\n", encoding="utf-8")
    files = ["--source", str(tmp_path / "source"), "--reference", str(tmp_path / "reference")]
    few = ["--merge", "1", "--threshold", "0.1", "--keep", "0.5", "--seconds", "0", "--json"]
    command = [
        "seq2see",
        "bench",
        "reduce",
        "--model",
        str(trained),
        *files,
        *few,
        "--out",
        str(tmp_path / "f.png"),
    ]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    values = json.loads(capsys.readouterr().out)
    assert [row["kind"] for row in values["rows"]][:2] == ["untouched", "merge"] and len(
        values["rows"]
    ) == 8
    assert matplotlib.image.imread(tmp_path / "f.png").shape[1] > 500
    if Path("/dev/full").exists():
        (tmp_path / "full.png").symlink_to("/dev/full")
        monkeypatch.setattr(sys, "argv", [*command[:-1], str(tmp_path / "full.png")])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        assert (
            ended.value.code == 2 and len(json.loads(out)["rows"]) == 8
        )  # what was measured is not lost
        assert error.endswith("full.png: cannot write: No space left on device\n")


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ([], ["merge", "merge decreasing", "merge random", "threshold", "keep", "keep random"]),
        (["--merge", "1"], ["merge", "merge decreasing", "merge random"]),
        (["--threshold", "0.5"], ["threshold"]),
    ],
)
def test_what_is_not_asked_for_is_not_measured(
    pictured: Path,
    given: list[str],
    kinds: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [
        "seq2see",
        "bench",
        "reduce",
        "--model",
        str(pictured),
        "--limit",
        "2",
        "--seconds",
        "0",
        "--json",
    ]
    monkeypatch.setattr(sys, "argv", [*command, *given])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert list(dict.fromkeys(row["kind"] for row in rows)) == ["untouched", *kinds]
    assert len(rows) == 1 + len(kinds) * (1 if given else 3)


def test_what_cannot_be_measured_is_refused(trained: Path, pictured: Path, toy: Any) -> None:
    recipe = toy.path.read_text(encoding="utf-8").replace("decoder_layers = 2\n", "")
    toy.path.write_text(f'task = "classify"\n{recipe}', encoding="utf-8")
    held = ["data.labels=language", "data.hold_out=0", f"data.val={toy.pairs}"]
    held.append("data.overlap=keep")
    toy.train(toy.folder / "labels", "train.steps=1", *held)
    with pytest.raises(InputError, match="labels: the data of its recipe has no test set"):
        workload_of(toy.folder / "labels", None, None)
    with pytest.raises(InputError, match="--reference is missing"):
        workload_of(trained, Text("toy", ["drei"], []), None)
    with pytest.raises(InputError, match="--source is for translation models"):
        workload_of(pictured, TEXT, None)
