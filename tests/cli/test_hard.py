"""`seq2see evaluate --hard`: what comes through of hard sentences, by kind."""

import json
from pathlib import Path
from typing import Any

import pytest

from seq2see.text.hard import COUNT, KINDS


@pytest.mark.parametrize("directory", ["trained", "exported"])
def test_evaluate_reports_the_share_kept_by_kind(
    call: Any, directory: str, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(directory)
    code, out, _ = call("evaluate", "--model", model, "--hard", "--beam", 1, "--json")
    assert code == 0
    kinds = json.loads(out)["hard"]
    assert list(kinds) == [*KINDS[:-1], "capitals"]
    assert all(kind["sentences"] == COUNT // len(KINDS) for kind in kinds.values())
    # They are put back, whatever the model makes of them; names need a model that has learned to.
    assert [kinds[kind]["kept"] for kind in ("number", "address", "emoji")] == [1, 1, 1]
    assert kinds["name"]["kept"] < 0.5 and kinds["name"]["examples"]
    assert {"bleu", "bleu_lower_case"} <= set(kinds["capitals"])
    code, out, _ = call("evaluate", "--model", model, "--hard", "--beam", 1)
    assert code == 0 and f"number     100.0% of {COUNT // len(KINDS)} kept" in out


def test_bad_calls_are_refused(call: Any, trained: Path, toy: Any, tmp_path: Path) -> None:
    code, out, err = call("evaluate", "--model", trained, "--hard", "--test", "val")
    assert (code, out, err.count("\n")) == (2, "", 1) and "--hard makes its own sentences" in err
    toy.train(tmp_path / "french", "train.steps=1", "data.target=fr")
    code, out, err = call("evaluate", "--model", tmp_path / "french", "--hard")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "none for de-fr; there are de-en, en-de" in err
