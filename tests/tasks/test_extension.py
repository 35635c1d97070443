"""Finished runs continue under a larger budget, and runs on a corpus that has grown."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.tasks.run import evaluate_own
from seq2see.tasks.table import load
from seq2see.training import checkpoint
from seq2see.training.loop import Training

SCHEDULE = ("train.schedule=inverse_sqrt", "train.warmup=2")  # which does not know the budget
EVERY_3 = ("train.checkpoint_every=3", *SCHEDULE)


def test_a_run_extended_to_twice_its_steps_ends_in_the_same_bits(small: Any) -> None:
    small.train("whole", *EVERY_3, "train.steps=6")
    small.train("parts", *EVERY_3, "train.steps=3")
    first = small.card("parts")
    small.train("parts", *EVERY_3, "train.steps=6", resume=True)
    assert "extending the run from 3 to 6 steps\n" in small.said.getvalue()
    assert small.equal("whole", "parts")
    whole, parts = small.card("whole"), small.card("parts")
    assert first["training"]["updates"] == 3 and parts["training"]["updates"] == 6
    assert parts["tests"] == whole["tests"] and parts["recipe"] == whole["recipe"]
    (event,) = small.log("parts", "extended")
    assert event == {"event": "extended", "before": "3 steps", "now": "6 steps"}


def test_an_extension_validates_at_each_tenth_of_the_larger_budget(
    small: Any, tmp_path: Path
) -> None:
    small.train("whole", *SCHEDULE, "train.steps=8")
    for steps in (4, 8):
        small.train("parts", *SCHEDULE, f"train.steps={steps}", resume=True)
    for name in ("whole", "parts"):
        updates = [event["update"] for event in small.log(name, "validation")]
        assert updates == [1, 2, 3, 4, 5, 6, 7, 8]
    assert small.equal("whole", "parts")


def test_a_killed_extension_continues_and_leaves_the_model_of_before(
    small: Any, tmp_path: Path, killed_after: Any
) -> None:
    small.train("whole", *EVERY_3, "train.steps=7")
    small.train("parts", *EVERY_3, "train.steps=2")
    before = {name: tensor.clone() for name, tensor in small.weights("parts").items()}
    card = small.card("parts")
    for steps in (7, 2):  # the recipe alone, with its smaller budget, continues the extension, too
        with killed_after(2):
            small.train("parts", *EVERY_3, f"train.steps={steps}", resume=True)
        assert "extending the run from 2 to 7 steps" in small.said.getvalue()
        assert small.card("parts") == card
        now = small.weights("parts")
        assert all(torch.equal(tensor, before[name]) for name, tensor in now.items())
        assert len(load(tmp_path / "parts", "cpu").translate(["eins"])) == 1
    small.train("parts", *EVERY_3, "train.steps=2", resume=True)
    assert small.card("parts")["training"]["updates"] == 7
    ends = [
        checkpoint.load(tmp_path / name / "checkpoints" / "update-00000007").groups["weights"]
        for name in ("whole", "parts")
    ]
    assert all(torch.equal(tensor, ends[1][name]) for name, tensor in ends[0].items())
    small.train("parts", *EVERY_3, "train.steps=2", resume=True)
    assert "this run is finished (7 steps)" in small.said.getvalue()


def test_a_budget_of_another_kind_is_compared_with_what_was_spent(
    small: Any, tmp_path: Path
) -> None:
    small.train("run", "train.epochs=2")  # 8 updates
    small.train("run", "train.steps=8", resume=True)
    assert "this run is finished (2 epochs)" in small.said.getvalue()
    small.train("run", "train.steps=9", resume=True)
    said = small.said.getvalue()
    rate = "the learning rate starts again at about 37% of its peak"  # (1 − 8/9) / 0.3
    assert f"extending the run from 2 epochs to 9 steps; {rate}" in said
    assert small.card("run")["training"]["updates"] == 9
    assert Recipe.load(tmp_path / "run" / "recipe.toml").train.steps == 9
    small.train("run", "train.minutes=0.000001", resume=True)
    assert "this run is finished (9 steps)" in small.said.getvalue()


def test_a_run_that_stopped_early_is_patient_again(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every validation after the first is worse.
    monkeypatch.setattr(Training, "_score", lambda self, _: -float(self.position.update))
    settings = ("train.checkpoint_every=2", "train.patience=2")
    small.train("run", *settings, "train.steps=20")
    assert small.card("run")["training"]["updates"] == 6
    small.train("run", *settings, "train.steps=20", resume=True)
    assert "this run is finished (20 steps)" in small.said.getvalue()
    small.train("run", *settings, "train.steps=30", resume=True)
    said = "it had stopped early, after 2 validations without improvement; they are counted anew"
    assert said in small.said.getvalue()
    assert small.card("run")["training"]["updates"] == 10


NO_GAIN = "the extension gained nothing: "


@pytest.fixture
def worsening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every validation after the first is worse."""
    monkeypatch.setattr(Training, "_score", lambda self, _: -float(self.position.update))


@pytest.mark.usefixtures("worsening")
def test_an_extension_that_gained_nothing_says_so(small: Any, killed_after: Any) -> None:
    every_2 = ("train.checkpoint_every=2", *SCHEDULE)
    small.train("run", *every_2, "train.steps=4")
    assert "gained nothing" not in small.said.getvalue()
    with killed_after(4):  # the figures outlast a kill, and so do those of pruned checkpoints
        small.train("run", *every_2, "train.steps=12", resume=True)
    small.train("run", *every_2, "train.steps=12", resume=True)
    *_, line = (line for line in small.said.getvalue().splitlines() if "gained nothing" in line)
    assert line == f"{NO_GAIN}validation loss 2.000 before and 6.000 at best since"
    assert "kept update-00000002 (validation loss 2.000)" in small.said.getvalue()
    small.train("run", *every_2, "train.steps=13", resume=True)
    assert f"{NO_GAIN}validation loss 2.000 before and 13.000 at" in small.said.getvalue()


@pytest.mark.usefixtures("worsening")
def test_the_log_knows_the_score_of_an_average(small: Any, tmp_path: Path) -> None:
    small.train("run", "train.checkpoint_every=2", "train.steps=4")
    log = tmp_path / "run" / "log.jsonl"
    text = log.read_text(encoding="utf-8")
    assert '"score": 2.0,' in text
    log.write_text(text.replace('"score": 2.0,', '"score": 1.5,'), encoding="utf-8")
    shutil.copytree(tmp_path / "run", tmp_path / "without")
    (tmp_path / "without" / "log.jsonl").unlink()
    rate = "; train.schedule = 'linear' has raised the learning rate again"
    for name, before in (("run", "1.500"), ("without", "2.000")):
        small.train(name, "train.checkpoint_every=2", "train.steps=5", resume=True)
        says = f"{NO_GAIN}validation loss {before} before and 5.000 at best since{rate}"
        assert says in small.said.getvalue()


def test_an_extension_that_gained_says_nothing(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "_score", lambda self, _: float(self.position.update))
    for steps in (2, 3):
        small.train("run", "train.choose=bleu", f"train.steps={steps}", resume=True)
    assert "kept update-00000003" in small.said.getvalue()
    assert "gained nothing" not in small.said.getvalue()


def test_an_extension_without_time_for_an_update_says_so(small: Any) -> None:
    small.train("run", "train.steps=2")
    minutes = small.card("run")["training"]["seconds"] / 60 + 1e-6
    small.train("run", f"train.minutes={minutes}", resume=True)
    assert f"{NO_GAIN}its budget was too small for an update\n" in small.said.getvalue()


def test_without_checkpoints_a_run_is_not_extended(small: Any, tmp_path: Path) -> None:
    small.train("run", "train.steps=2")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    says = rf"run: it cannot be extended, as its checkpoints are gone; --init {tmp_path / 'run'}"
    with pytest.raises(InputError, match=says):
        small.train("run", "train.steps=4", resume=True)
    small.train("run", "train.steps=2", resume=True)
    assert "this run is finished (2 steps); it cannot be extended" in small.said.getvalue()
    small.train("next", "train.steps=1", init=tmp_path / "run")


# A corpus that has grown


def lines(toy: Any) -> list[str]:
    return list(toy.pairs.read_text(encoding="utf-8").splitlines())


def test_a_run_continues_on_a_corpus_that_has_grown(
    toy: Any, small: Any, tmp_path: Path, killed_after: Any
) -> None:
    all_lines = lines(toy)
    toy.pairs.write_text("\n".join(all_lines[:200]), encoding="utf-8")
    settings = ("train.checkpoint_every=2", "train.steps=6", "train.accumulate=1")
    with killed_after(3):
        small.train("run", *settings)
    tests = evaluate_own(tmp_path / "run", device="cpu").values["corpus_sha256"]
    vocabulary = (tmp_path / "run" / "tokenizer.model").read_bytes()
    toy.pairs.write_text("\n".join([*all_lines[200:], *all_lines[:200]]), encoding="utf-8")
    for _ in range(2):  # the second time it is no news, but the epoch was not begun yet
        with killed_after(1):
            small.train("run", *settings, resume=True)
        assert small.log("run", "update")[-1]["epoch"] == 1
    (event,) = small.log("run", "grown")
    assert (event["before"], event["after"]) == (180, 280 - event["left_out"])
    small.train("run", *settings, resume=True)
    small.train("run", *settings, resume=True)
    assert small.card("run")["tests"]["test"]["corpus_sha256"] == tests
    assert small.card("run")["corpus"]["train"]["pairs"] == event["after"]
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == vocabulary


def test_an_epoch_begins_anew_on_a_grown_corpus(
    toy: Any, small: Any, monkeypatch: pytest.MonkeyPatch, killed_after: Any
) -> None:
    all_lines = lines(toy)
    toy.pairs.write_text("\n".join(all_lines[:200]), encoding="utf-8")
    with killed_after(2):
        small.train("run", "train.checkpoint_every=1", "train.epochs=1")
    toy.pairs.write_text("\n".join(all_lines), encoding="utf-8")
    with killed_after(0):
        small.train("run", "train.checkpoint_every=1", "train.epochs=1", resume=True)
    assert "the corpus has grown from 180 to " in small.said.getvalue()
    assert "; epoch 1 begins anew with the same vocabulary" in small.said.getvalue()
    small.train("run", "train.checkpoint_every=1", "train.epochs=1", resume=True)
    (epoch,) = small.log("run", "epoch")
    trained = small.card("run")["corpus"]["train"]["pairs"]
    assert epoch["samples"] > trained  # all of the new corpus, after a part of the old one


def test_a_finished_run_needs_a_larger_budget_for_a_grown_corpus(toy: Any, small: Any) -> None:
    all_lines = lines(toy)
    toy.pairs.write_text("\n".join(all_lines[:200]), encoding="utf-8")
    small.train("run", "train.steps=2")
    toy.pairs.write_text("\n".join(all_lines), encoding="utf-8")
    small.train("run", "train.steps=2", resume=True)
    assert "a larger budget extends it, also on a corpus that has grown" in small.said.getvalue()
    small.train("run", "train.steps=3", resume=True)
    said = small.said.getvalue()
    assert "extending the run from 2 to 3 steps" in said and "the corpus has grown from" in said


def test_other_data_is_told_from_grown_data(
    toy: Any, small: Any, tmp_path: Path, killed_after: Any
) -> None:
    val = tmp_path / "val.tsv"
    val.write_text("eins zwei\tone two\n", encoding="utf-8")
    settings = ("train.checkpoint_every=1", f"data.val={val}", f"data.test={val}")
    with killed_after(1):
        small.train("run", *settings)
    all_lines = lines(toy)

    def refused() -> str:
        with pytest.raises(InputError) as caught:
            small.train("run", *settings, resume=True)
        return str(caught.value).removeprefix(f"{tmp_path / 'run'}: ")

    toy.pairs.write_text("\n".join([*all_lines[7:], "neu\tnew"]), encoding="utf-8")
    assert refused() == (
        "was trained on other data: 6 of its 299 pairs are missing here; "
        f"a new run may start from its weights: --init {tmp_path / 'run'} with another --out"
    )
    toy.pairs.write_text("\n".join(all_lines), encoding="utf-8")
    val.write_text("zwei eins\ttwo one\n", encoding="utf-8")
    assert refused().startswith("was begun with another validation set and cannot continue")
    val.write_text("eins zwei\tone two\n", encoding="utf-8")
    toy.pairs.write_text("\n".join(reversed(all_lines)), encoding="utf-8")
    with killed_after(0):
        small.train("run", *settings, resume=True)
    assert "the training pairs are in another order; epoch 1 begins anew" in small.said.getvalue()


def test_a_run_of_an_earlier_version_continues_on_its_own_data_alone(
    toy: Any, small: Any, tmp_path: Path, killed_after: Any
) -> None:
    with killed_after(1):
        small.train("run", "train.checkpoint_every=1", "train.steps=2")
    (tmp_path / "run" / "history.safetensors").unlink()
    all_lines = lines(toy)
    toy.pairs.write_text("\n".join([*all_lines, "neu\tnew"]), encoding="utf-8")
    with pytest.raises(InputError, match="was begun on other data and cannot continue"):
        small.train("run", "train.checkpoint_every=1", "train.steps=2", resume=True)
    toy.pairs.write_text("\n".join(all_lines), encoding="utf-8")
    small.train("run", "train.checkpoint_every=1", "train.steps=2", resume=True)
    assert (tmp_path / "run" / "history.safetensors").exists()
