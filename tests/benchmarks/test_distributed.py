"""The benchmark of several processes: what counts as equal, and the summary of its rounds."""

from typing import Any

import pytest
from distributed_equality import runs_to_compare, unequal
from distributed_speed import SETTINGS, summary

ROUNDING = {"recipe": "r", "dtype": "float32", "backwards": True, "same_examples": True}


@pytest.mark.parametrize(
    ("row", "equal"),
    [
        ({"largest_difference": 1e-4}, True),
        ({"largest_difference": 5e-4}, True),  # below twice the rounding
        ({"largest_difference": 7e-4}, False),
        ({"largest_difference": 0.0, "same_examples": False}, False),
        ({"largest_difference": 0.0, "same_bits": False}, False),
        ({"largest_difference": 0.0, "same_bits": True}, True),
    ],
)
def test_a_run_may_differ_by_rounding_alone(row: dict[str, Any], equal: bool) -> None:
    rounding = ROUNDING | {"largest_difference": 3e-4}
    other = ROUNDING | {"backwards": False} | row
    assert unequal([rounding, other]) == ([] if equal else [other])


def test_every_run_has_a_folder_of_its_own_and_a_measure_of_rounding() -> None:
    runs = list(runs_to_compare())
    assert len({run.name() for run in runs}) == len(runs)
    kinds = {(run.recipe, run.dtype) for run in runs}
    assert kinds == {(run.recipe, run.dtype) for run in runs if run.backwards}
    assert {run.processes for run in runs if run.shard == "full"} == {2, 4}
    assert any(run.before == run.processes for run in runs)  # killed and resumed, bit for bit


def test_ratios_are_taken_within_a_round() -> None:
    """The machine is twice as slow in the second round."""
    milliseconds = dict(zip(SETTINGS, (100, 102, 60, 50, 40, 55, 44), strict=True))
    measured = {
        setting: {
            number: {"seconds_per_update": slow * time, "target_tokens_per_update": 7.0}
            for number, slow in ((1, 1.0), (2, 2.0))
        }
        for setting, time in milliseconds.items()
    }
    rows = {row["name"]: row for row in summary("small", measured)}
    assert rows["1 process, DDP"]["faster_than_1_thread"] == pytest.approx(100 / 102)
    assert rows["2 processes"]["faster_than_2_threads"] == pytest.approx(60 / 50)
    assert rows["2 processes"]["communication_share"] == pytest.approx(0.2)
    assert rows["4 processes"]["communication_share"] == pytest.approx(0.2)
    alone = [name for name, row in rows.items() if "communication_share" not in row]
    assert alone == [s.name for s in SETTINGS if s.processes == 1 or not s.communicates]
