"""The benchmark of several processes: what counts as equal, and the summary of its rounds."""

from typing import Any

import pytest
from distributed_equality import runs_to_compare, unequal
from distributed_large import TOKENS, sentences
from distributed_speed import SETTINGS, summary
from tables import distributed

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


def test_sentences_of_random_pieces_fill_an_update() -> None:
    examples = sentences(pieces=11)
    targets = examples.batch(range(len(examples))).target_tokens
    assert TOKENS <= targets < TOKENS + 50
    assert {id for source, _ in examples.pairs for id in source} == set(range(4, 11))


def test_two_processes_in_a_ring_send_the_gradient_once(monkeypatch: pytest.MonkeyPatch) -> None:
    million = {"parameters": 1_000_000, "seconds_per_target_token": 0.0, "seconds_per_step": 0.016}
    result = {"machine": {"processor": "P", "cores": 2}, "rounds": 1}
    monkeypatch.setattr(
        distributed, "raw", lambda name: result | {"rows": [{"recipe": "wmt14-base", **million}]}
    )
    monkeypatch.setattr(distributed, "PROCESSES", (2,))
    monkeypatch.setattr(distributed, "NETWORKS", (1,))
    core, p100 = distributed.large().splitlines()[2:4]
    # 32 megabits in 32 ms; computing takes half of that, or with the paper's step much longer
    assert core.split(" | ")[3:] == ["3,124", "0.02", "0.03", "65,083 to 97,625 |"]
    assert p100.split(" | ")[3:] == ["6,250", "0.40", "0.03", "14,468 to 15,625 |"]
