"""Curves of runs: read from real logs, resumed ones once, damaged ones refused by line."""

import json
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.see import training
from seq2see.see.numbers import numbers_of

UPDATE = {"loss": 2.0, "learning_rate": 0.1, "tokens_per_second": 50.0, "event": "update"}


def update(number: int, **values: Any) -> dict[str, Any]:
    return UPDATE | {"update": number, "tokens": 100 * number, "seconds": 6.0 * number} | values


def validation(number: int, **values: Any) -> dict[str, Any]:
    event = {"event": "validation", "update": number, "loss": 1.0, "seconds": 6.0 * number + 1}
    return event | values


def write(folder: Path, *events: object) -> Path:
    folder.mkdir(parents=True)
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_real_log_is_drawn(trained: Path) -> None:
    run = training.read(trained)
    assert run.scores == ["bleu"] and run.updates[0]["update"] == 1
    figure = training.draw([run], "updates")
    loss, score, rate, speed = numbers_of(figure)
    assert loss.head == ["update", "run, training", "run, validation"]
    assert score.head == ["update", "run"] and score.caption == "Validation (BLEU)"
    best = max(event["bleu"] for event in run.validations)
    assert max(float(row[1]) for row in score.rows) == pytest.approx(best, rel=1e-3)
    assert (rate.caption, speed.caption) == (
        "Learning rate (learning rate)",
        "Speed (tokens per second)",
    )
    assert training.report([run])[1].startswith("run ")


def test_runs_share_axes_of_updates_minutes_or_tokens(tmp_path: Path) -> None:
    one = write(tmp_path / "one", update(1), validation(2, bleu=3.5), update(3))
    other = write(tmp_path / "two", update(2), validation(2, bleu=4.5, accuracy=0.5))
    runs = training.read_runs([one, other])
    score = numbers_of(training.draw(runs, "updates"))[1]
    assert (score.head, score.rows) == (["update", "one", "two"], [["2", "3.5", "4.5"]])
    run = runs[0]
    assert run.along(run.validations, "minutes") == [13 / 60]
    assert run.along(run.updates, "tokens") == [0.0001, 0.0003]
    assert run.along(run.validations, "tokens") == [0.0001]  # read until update 1
    same = write(tmp_path / "more" / "one", update(1))
    names = [run.name for run in training.read_runs([one, same])]
    assert names == [str(one), str(same)]


def test_what_a_resumed_run_did_again_counts_once(tmp_path: Path) -> None:
    events = [update(1), update(5), update(9), validation(9), update(4, loss=7.0), update(8)]
    run = training.read(write(tmp_path / "run", *events))
    assert [event["update"] for event in run.updates] == [1, 4, 8]
    assert run.updates[1]["loss"] == 7.0
    assert run.validations == []  # that of update 9 was of weights that are gone


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", update(1), update(5))
    with (folder / "log.jsonl").open("a") as log:
        log.write('{"event": "upd')
    assert [event["update"] for event in training.read(folder).updates] == [1, 5]


def test_only_numbers_are_scores(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", update(1), validation(1, bleu=3.5, note="x", chrf=None))
    assert training.read(folder).scores == ["bleu"]


def test_a_name_that_begins_with_an_underscore_is_in_the_legend(tmp_path: Path) -> None:
    run = training.read(write(tmp_path / "_run", update(1)))
    assert numbers_of(training.draw([run], "updates"))[0].head[1] == "run, training"


def test_runs_without_a_score_in_common_have_an_empty_panel(tmp_path: Path) -> None:
    one = write(tmp_path / "one", update(1), validation(1, bleu=3.5))
    other = write(tmp_path / "two", update(1), validation(1, accuracy=0.5))
    figure = training.draw(training.read_runs([one, other]), "updates")
    assert [table.caption for table in numbers_of(figure)][1] == "Learning rate (learning rate)"
    bare = training.read(write(tmp_path / "three", update(1)))
    assert bare.scores == [] and training.report([bare])[1].split()[:2] == ["three", "1"]


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (["{"], r"log\.jsonl: line 1 is not JSON"),
        ([update(1), "[]"], r"log\.jsonl: line 2 is not an event"),
        ([update(1, loss="x")], r"log\.jsonl: line 1 has no number 'loss'"),
        ([validation(1)], r"log\.jsonl: has no update yet"),
    ],
)
def test_a_damaged_log_is_refused(tmp_path: Path, events: list[object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        training.read(write(tmp_path / "run", *events))


def test_a_folder_without_a_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"cannot read the log of a run: No such file"):
        training.read(tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        training.read(tmp_path)
    monkeypatch.setattr(training, "LARGEST_LOG", 0)
    with pytest.raises(InputError, match="larger than 0 bytes"):
        training.read(tmp_path)
