"""The painting benchmark: merged models against the untouched one, at one or more sizes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seq2see.bench import paint, paint_parts
from seq2see.bench.paint import Pass, bench_paint
from seq2see.bench.paint_parts import PARTS, time_by_part
from seq2see.bench.paint_workload import Setting, Workload, resized, settings, workload_of
from seq2see.errors import InputError
from seq2see.models import merged
from seq2see.tasks.run import evaluate_own
from seq2see.tasks.table import load_painter

from .conftest import RECIPE, write_model

pytest.importorskip("scipy", reason="the judge of scenes needs SciPy")

HALF = Setting(32, 0.5, "all")


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def workload(unet: Path) -> Workload:
    return workload_of(unet, count=3)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the measurement of memory, and time the parts of one step: these take longest."""
    monkeypatch.setattr(paint, "peak_bytes", lambda call: 3 * 2**20)
    monkeypatch.setattr(paint_parts, "STEPS", 1)


def test_settings_are_combined_and_the_untouched_model_comes_first() -> None:
    chosen = settings([32, 48], [0.75, 0.5, 0.0, 0.5], ["all", "keys"], [1, 4])
    assert len(chosen) == 2 * (1 + 2 * 2 * 2)
    names = [setting.merging for setting in chosen[:9]]
    assert names[:4] == ["untouched", "0.5 all", "0.75 all", "0.5 all, every 4 steps"]
    assert names[5:7] == ["0.5 keys", "0.75 keys"]
    assert chosen[9] == Setting(48) == chosen[17].untouched and chosen[17].size == 48


def test_the_method_layer_merges_in_all_three_sublayers(workload: Workload) -> None:
    both = {
        method: workload.painter(Setting(32, 0.25, method, every=3)).model.merging
        for method in ("all", "layer")
    }
    assert both["layer"] == replace(both["all"], cross=True, feed_forward=True)
    assert (both["layer"].ratio, both["layer"].every) == (0.25, 3)


def test_every_setting_has_a_row_and_only_the_own_size_has_quality(unet: Path, quick: None) -> None:
    workload = workload_of(unet, [48, 32, 48], count=3, test_pictures=4)
    requested = settings([*workload.painters], [0.5], ["keys"])
    frontier = bench_paint(workload, requested, 0, silent)
    assert [str(row) for row in frontier.rows] == [
        *("32 pixels, untouched", "32 pixels, 0.5 keys"),
        *("48 pixels, untouched", "48 pixels, 0.5 keys"),
    ]
    assert (frontier.own_size, frontier.count, frontier.rounds) == (32, 3, 1)
    for row in frontier.rows:
        assert row.seconds_per_picture > 0 and row.one_picture_seconds > 0
        assert row.peak_memory_mb == 3 and row.speedup > 0
        assert (row.accuracy is None) == (row.size == 48) == (row.frechet_distance is None)
        assert (row.p_value is None) == (row.size == 48 or row.method == "untouched")
    assert frontier.rows[0].speedup == frontier.rows[2].one_picture_speedup == 1
    assert frontier.quality is not None and frontier.quality["pictures"] == 4
    assert frontier.rows[0].frechet_distance != frontier.rows[1].frechet_distance
    assert len(frontier.parts) == 6 and frontier.parts[0].fused and not frontier.parts[1].fused
    assert frontier.attention_share == frontier.parts[0].attention


def test_the_untouched_model_is_as_good_as_evaluate_says(
    unet: Path, workload: Workload, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paint, "_time", lambda *given: Pass(1.0, 1.0))
    row = bench_paint(workload, [Setting(32)], 0, silent).rows[0]
    report = evaluate_own(unet).values
    assert (row.accuracy, row.attributes) == (report["accuracy"], report["attributes"])


def test_a_speedup_is_the_median_of_the_ratios_of_each_round(
    workload: Workload, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second round is slow for all, and the order of its settings is reversed."""
    seconds = iter([8.0, 5.0, 50.0, 90.0, 9.0, 3.0])
    monkeypatch.setattr(paint, "_time", lambda *given: Pass(x := next(seconds), 1 / x))
    monkeypatch.setattr(paint, "rounds", lambda budget: [1, 2, 3])
    said: list[str] = []
    frontier = bench_paint(workload, [Setting(32), HALF], 7, said.append)
    assert said[:4] == [
        *("round 1 · 32 pixels, untouched", "round 1 · 32 pixels, 0.5 all"),
        *("round 2 · 32 pixels, 0.5 all", "round 2 · 32 pixels, untouched"),
    ]
    half = frontier.rows[1]
    assert (half.seconds_per_picture, half.speedup) == (5, 1.8)  # of 8 / 5, 90 / 50 and 9 / 3
    assert half.one_picture_speedup == pytest.approx(1 / 1.8)


def test_a_pass_is_a_call_of_all_pictures_and_one_of_a_single_one(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, int]] = []
    clock = iter([10.0, 16.0, 20.0, 21.0])

    class Watched:
        def paint(self, prompts: list[str], seeds: list[int], sampling: Any) -> None:
            assert len(prompts) == len(seeds)
            calls.append((len(prompts), sampling.steps))

    monkeypatch.setattr(paint.time, "perf_counter", lambda: next(clock))
    assert paint._time(Watched(), workload) == Pass(2.0, 1.0)  # type: ignore[arg-type]
    assert calls == [(3, 1), (3, 2), (1, 1), (1, 2)]  # each warmed up by one step


@pytest.fixture
def spend(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], None]:
    """Let a second pass in each call of a function, and no time elsewhere."""
    clock = [100.0]
    timer = SimpleNamespace(thread_time=lambda: clock[0])
    monkeypatch.setattr(paint_parts, "time", timer)

    def slow_down(owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def slower(*given: Any, **named: Any) -> Any:
            clock[0] += 1
            return inner(*given, **named)

        monkeypatch.setattr(owner, name, slower)

    return slow_down


@pytest.mark.parametrize("part", PARTS)
def test_time_is_ascribed_to_the_part_that_spends_it(
    workload: Workload, part: str, spend: Callable[[Any, str], None]
) -> None:
    network: Any = workload.painters[32].model
    spending: dict[str, nn.Module] = {
        "convolutions": network.output,
        "rest": network.norm,
        **{name: getattr(network.middle[0].layer, name) for name in PARTS[:3]},
    }
    spend(spending[part], "forward")
    parts = time_by_part(workload, Setting(32))
    assert parts.shares == {name: float(name == part) for name in PARTS}
    assert parts.seconds_per_step == pytest.approx(1 / 3)  # of three pictures


def test_shares_are_those_of_all_layers(
    workload: Workload, spend: Callable[[Any, str], None]
) -> None:
    network: Any = workload.painters[32].model
    for place in network.places().values():
        spend(place.layer.self_attention, "forward")
    spend(network.stem, "forward")
    spend(network.output, "forward")
    shares = time_by_part(workload, Setting(32)).shares
    layers = len(network.places())
    assert shares["self_attention"] == pytest.approx(layers / (layers + 2))
    assert shares["convolutions"] == pytest.approx(2 / (layers + 2))


def test_matching_is_part_of_self_attention_and_as_frequent_as_in_a_picture(
    workload: Workload, spend: Callable[[Any, str], None]
) -> None:
    spend(merged, "match")
    network: Any = workload.painters[32].model
    spend(network.norm, "forward")
    parts = time_by_part(workload, Setting(32, 0.5, "keys", every=4))
    layers = 2  # down.0 and up.1 have 256 positions, the others fewer
    steps = 8  # two periods, where six steps would be enough
    assert parts.shares["self_attention"] == pytest.approx(2 * layers / (2 * layers + steps))
    assert not any(module._forward_hooks for module in network.modules())


def test_time_by_part_is_measured_with_and_without_the_fused_kernel(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    network: Any = workload.painters[32].model
    attention = network.middle[0].layer.self_attention
    inner = attention.forward
    fused: list[bool] = []

    def watched(*given: Any, **named: Any) -> Any:
        fused.append(torch.backends.cuda.flash_sdp_enabled())
        return inner(*given, **named)

    monkeypatch.setattr(attention, "forward", watched)
    assert time_by_part(workload, Setting(32)).fused and all(fused)
    fused.clear()
    assert not time_by_part(workload, Setting(32), fused=False).fused and not any(fused)


def test_other_sizes_have_the_same_weights(workload: Workload) -> None:
    own = workload.painters[32]
    larger = resized(own, 48)
    assert larger.paint(["a red star"]).shape == (1, 48, 48, 3)
    weights = zip(own.model.parameters(), larger.model.parameters(), strict=True)
    assert all(one.data_ptr() == other.data_ptr() for one, other in weights)
    again = resized(larger, 32)
    assert np.array_equal(again.paint(["a red star"]), own.paint(["a red star"]))


def test_smaller_grids_merge_if_told(unet: Path) -> None:
    workload = workload_of(unet, [16], min_tokens=64, count=1, test_pictures=0)
    for size, count in ((32, 5), (16, 2)):  # of 16 × 16 and 8 × 8, and of 8 × 8 positions
        model: Any = workload.painter(Setting(size, 0.5, "all")).model
        assert len(model.merged()) == count


def test_prompts_are_those_of_the_test_set(workload: Workload) -> None:
    assert len(workload.prompts) == 3 and len({*workload.prompts}) == 3
    assert workload.seeds == [1, 2, 3]
    assert workload.test is not None and len(workload.test.prompts) == 5
    assert {*workload.prompts} <= {*workload.test.prompts}


Refused = Callable[[Path, Path], object]


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (
            lambda unet, dit: workload_of(unet, [50]),
            r"--size 50: .*height \(50\) must be divisible",
        ),
        (lambda unet, dit: workload_of(dit, [48]), r"--size 48: row_embedding\.weight is only for"),
        (lambda unet, dit: workload_of(unet, test_pictures=1), "--test-pictures 1: a Fréchet dist"),
        (
            lambda unet, dit: workload_of(unet, classifier=dit),
            "--classifier is for pictures by class; scenes are judged by a program",
        ),
        (
            lambda unet, dit: workload_of(unet, [16]).painter(Setting(16, 0.5, "all")),
            r"pictures of 16 pixels: the finest layer with attention has 64 positions",
        ),
        (
            lambda unet, dit: settings([32], [0.5], ["all", "values"]),
            "method 'values' is not one of all, keys, layer",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    unet: Path, dit: Path, refused: Refused, says: str
) -> None:
    with pytest.raises(InputError, match=f"^{says}"):
        refused(unet, dit)


def test_pictures_that_are_not_square_have_one_size(tmp_path: Path) -> None:
    painter = load_painter(write_model(tmp_path / "run", RECIPE, (3, 32, 64)), "cpu")
    with pytest.raises(InputError, match="--size 48: the model's pictures are 32 × 64, not square"):
        resized(painter, 48)


def test_a_diffusion_transformer_is_measured_at_its_own_size(
    dit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = time_by_part(workload_of(dit, [32], count=2, test_pictures=0), HALF)
    assert parts.shares["convolutions"] == 0 < parts.shares["self_attention"]


def test_pictures_by_class_are_judged_by_a_classifier(pictured: Path, tmp_path: Path) -> None:
    recipe = RECIPE.replace('"scenes"', '"digits"').replace("patch = 2", "patch = 1")
    run = write_model(tmp_path / "run", recipe, (1, 8, 8))
    workload = workload_of(run, count=2, test_pictures=3, classifier=pictured)
    assert workload.test is not None and workload.test.judge == f"the classifier {pictured}"
    quality = workload.test.run(workload.painters[8], workload.sampling)
    assert len(quality.right) == 3 and quality.frechet_distance > 0
    assert workload_of(run, count=2).test is None
