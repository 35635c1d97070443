"""Budgets in words, and score cards that do not tell one."""

from pathlib import Path

import pytest

from seq2see.errors import InputError
from seq2see.tasks.finished import Finished, Total


def test_budgets_in_words() -> None:
    minutes, steps = Total("minutes", 2.5), Total.of({"steps": 150_000, "minutes": None})
    assert (str(minutes), str(steps), str(Total("epochs", 1))) == (
        "2.5 minutes",
        "150,000 steps",
        "1 epoch",
    )
    assert minutes.doubled() == "--minutes 5"
    assert steps.doubled() == "--set train.steps=300000"
    assert minutes.raised_to(Total("minutes", 12)) == "from 2.5 to 12 minutes"
    assert minutes.raised_to(steps) == "from 2.5 minutes to 150,000 steps"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"recipe": {"train": {}}, "training": {}}'])
def test_a_card_without_a_budget_is_named(tmp_path: Path, text: str) -> None:
    assert Finished.read(tmp_path) is None
    (tmp_path / "scorecard.json").write_text(text)
    assert Finished.read(tmp_path) is None  # no model
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"scorecard.json: not the score card of a run"):
        Finished.read(tmp_path)
