"""The benchmark of Stable Diffusion's U-Net, on a tiny one: settings, parts, summary, tables."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import stable_diffusion
import torch
from peers import venvs
from tables import stable_diffusion as tables

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("diffusers", reason="diffusers is not installed")
    pytest.importorskip("tomesd", reason="tomesd is not installed")
    import stable_diffusion_parts
    import stable_diffusion_worker as worker

TINY = worker.CONFIGURATION | {
    "block_out_channels": (8, 16),
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "layers_per_block": 1,
    "norm_num_groups": 4,
    "attention_head_dim": 2,
    "cross_attention_dim": 5,
}
UNTOUCHED, *OTHERS = worker.SETTINGS
SIZE = 48  # pixels: 6 × 6 positions
NAMES = [*tables.PARTS]


@pytest.fixture
def unet() -> Any:
    return worker.random_unet(TINY)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    emitted: list[dict[str, Any]] = []
    worker.measure(worker.random_unet(TINY), SIZE, {"rounds": 2, "ratio": 0.5}, emitted.append)
    return emitted


def test_the_configuration_has_the_parameters_of_stable_diffusion() -> None:
    with torch.device("meta"):
        unet = worker.UNet2DConditionModel(**worker.CONFIGURATION)
    assert sum(weight.numel() for weight in unet.parameters()) == 859_520_964


@pytest.mark.parametrize("setting", OTHERS, ids=str)
def test_settings_change_the_prediction_only_by_merging(unet: Any, setting: Any) -> None:
    inputs = worker.random_inputs(unet, SIZE)
    with worker.applied(unet, UNTOUCHED, 0.5):
        before = worker.predict(unet, inputs)
    assert before.shape == (2, 4, 6, 6) and before.isfinite().all()
    with worker.applied(unet, setting, 0):
        unmerged = worker.predict(unet, inputs)
    with worker.applied(unet, setting, 0.5):
        merged = worker.predict(unet, inputs)
    if setting.kernel == "fused":
        assert torch.equal(unmerged, before)
    torch.testing.assert_close(unmerged, before, rtol=1e-4, atol=1e-5)
    assert (merged - unmerged).abs().max() > 1e-3 or setting.merging == "none"
    with worker.applied(unet, UNTOUCHED, 0.5):
        assert torch.equal(worker.predict(unet, inputs), before)


def test_weights_and_inputs_are_the_same_each_time(unet: Any) -> None:
    other = worker.random_unet(TINY)
    first, second = (
        worker.predict(each, worker.random_inputs(each, SIZE)) for each in (unet, other)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first[0], first[1])  # same noise, different prompts


def test_a_part_counts_without_the_parts_inside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0, 1, 3, 7, 15, 31))
    monkeypatch.setattr(stable_diffusion_parts.time, "perf_counter", lambda: next(times))
    clock = stable_diffusion_parts.Clock()
    clock.start()
    clock.enter("merging")
    clock.enter("self")
    clock.leave()
    clock.leave()
    assert clock.stop() == {"rest": 1 + 16, "merging": 2 + 8, "self": 4}


@pytest.mark.parametrize("setting", worker.SETTINGS, ids=str)
def test_counting_parts_leaves_no_trace(unet: Any, setting: Any) -> None:
    inputs = worker.random_inputs(unet, SIZE)
    with worker.applied(unet, UNTOUCHED, 0.5):
        before = worker.predict(unet, inputs)
    seconds = worker.parts(unet, inputs, setting, 0.5)
    assert sorted(seconds) == sorted(NAMES)
    assert min(seconds.values()) > 0
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in unet.modules())
    with worker.applied(unet, UNTOUCHED, 0.5):
        assert torch.equal(worker.predict(unet, inputs), before)


def test_rounds_are_in_turn_and_the_second_in_reverse(rows: list[dict[str, Any]]) -> None:
    order = [(row["kernel"], row["merging"]) for row in rows]
    settings = [(setting.kernel, setting.merging) for setting in worker.SETTINGS]
    assert order == [*settings, *settings, *settings[::-1]]
    assert [row.get("round") for row in rows] == [None] * 5 + [1] * 5 + [2] * 5


def test_speed_ups_are_medians_of_ratios_within_rounds(rows: list[dict[str, Any]]) -> None:
    seconds = {"fused none": (8, 4), "fused tomesd": (4, 1), "fused seq2see": (2, 4)}
    seconds |= {"open none": (16, 12), "open tomesd": (8, 3)}
    timed = [
        row
        | {
            "figures": {
                "seconds": seconds[f"{row['kernel']} {row['merging']}"][row["round"] - 1],
                "peak_mb": 1000.0 * row["round"],
            }
        }
        for row in rows[5:]
    ]
    summary = stable_diffusion.summary([*rows[:5], *timed])
    assert [row["seconds"] for row in summary] == [6, 2.5, 3, 14, 5.5]
    assert [row["speedup"] for row in summary] == [1, 3, 2.5, 1, 3]
    assert [row["speedup_over_fused"] for row in summary] == pytest.approx(
        [1, 3, 2.5, 5 / 12, 7 / 6]
    )
    assert {row["peak_mb"] for row in summary} == {1500}
    assert all(row["parts"] and len(row["rounds"]) == 2 for row in summary)


def test_tables_show_every_setting(
    rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = {
        "parameters": 860_000_000,
        "dtype": "float32",
        "batch": 2,
        "prompt_tokens": 77,
        "ratio": 0.5,
        "rows": json.loads(json.dumps(stable_diffusion.summary(rows))),
        "versions": {"diffusers": "1", "tomesd": "2", "torch": "3"},
        "machine": {"processor": "P", "cores": 2},
    }
    for make in (tables.steps, tables.parts):
        monkeypatch.setattr(tables, "raw", lambda name: result)
        lines = [line for line in make().split("\n") if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1
        measured = [line for line in lines if f"{SIZE} × {SIZE}" in line]
        assert len(measured) == 5 and "`merge_in`" in measured[2]
        monkeypatch.setattr(tables, "raw", lambda name: None)
        assert make() == tables.NOT_YET
    shares = [float(share) for share in measured[0].split("|")[5:-1]]
    assert sum(shares) == pytest.approx(100, abs=0.4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "100"], "--size 100 must be a multiple of 64"),
        (["--size", "0"], "--size 0 must be a multiple of 64"),
        (["--rounds", "0"], "--rounds 0 must be at least 1"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["stable_diffusion.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        stable_diffusion.main()
    assert ended.value.code == 2 and capsys.readouterr().err.endswith(f"{message}\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.kill(os.getpid(), 9)", "killed, probably for lack of memory"),
        ("raise SystemExit('too small')", "the worker failed with exit code 1"),
    ],
)
def test_a_worker_that_ends_early_is_reported(
    code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stable_diffusion_worker.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(stable_diffusion, "HERE", tmp_path)
    monkeypatch.setattr(venvs, "ensure", lambda name: sys.executable)
    with pytest.raises(SystemExit, match=message):
        stable_diffusion.work({})


def test_an_environment_that_cannot_be_made_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(name: str) -> Path:
        raise venvs.NotInstalled(f"cannot be installed: no {name}")

    monkeypatch.setattr(venvs, "ensure", ensure)
    with pytest.raises(SystemExit, match="stable-diffusion cannot be installed"):
        stable_diffusion.work({})
