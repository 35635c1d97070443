"""Misspelt model directories: a suggestion only if a model of a similar name is there."""

from pathlib import Path

import pytest

from seq2see.errors import InputError
from seq2see.models.directory import ModelDirectory
from seq2see.models.nearest import no_such_directory


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder runs/ in the working directory, with models of every kind and other folders."""
    monkeypatch.chdir(tmp_path)
    kinds = {"mine": "model.safetensors", "german-ct2": "engine.json"}
    for name, file in kinds.items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / file).touch()
    (tmp_path / "runs" / "longer" / "checkpoints" / "update-00000007").mkdir(parents=True)
    (tmp_path / "runs" / "captions" / "checkpoints").mkdir(parents=True)
    (tmp_path / "runs" / "mines").touch()
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("runs/mnie", "runs/mine"),
        ("runs/mines/", "runs/mine"),  # a file
        ("runs/german-ct", "runs/german-ct2"),
        ("runs/lnoger", "runs/longer"),
        ("mine", "runs/mine"),
        ("run/mine", "runs/mine"),
    ],
)
def test_a_model_of_a_similar_name_is_suggested(runs: Path, given: str, meant: str) -> None:
    says = f"{Path(given)}: no such model directory; did you mean {Path(meant)}?"
    assert str(no_such_directory(Path(given))) == says
    with pytest.raises(InputError) as caught:
        ModelDirectory.open(given)
    assert str(caught.value) == says


@pytest.mark.parametrize("given", ["runs/other", "runs/capptions", "no/such", "/no/such"])
def test_nothing_is_suggested_but_models_of_similar_names(runs: Path, given: str) -> None:
    assert str(no_such_directory(Path(given))) == f"{given}: no such model directory"
