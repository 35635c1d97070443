"""A model that starts from another one is not tested on what that one was trained on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.tasks.run import evaluate_own
from seq2see.text import corpora
from seq2see.text.history import History


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def lines(toy: Any) -> list[str]:
    return list(toy.pairs.read_text(encoding="utf-8").splitlines())


def test_held_out_sets_are_inherited(small: Any, tmp_path: Path) -> None:
    small.train("parent", "train.steps=1")
    small.train("child", "train.steps=1", init=tmp_path / "parent")
    said = f"{tmp_path / 'parent'} was trained on none of the held-out examples"
    assert said in small.said.getvalue()
    parent, child = small.card("parent"), small.card("child")
    assert child["corpus"] == parent["corpus"] and child["tests"].keys() == parent["tests"].keys()
    sums = [card["tests"]["test"]["corpus_sha256"] for card in (parent, child)]
    assert sums[0] == sums[1]
    entry = {"model": str(tmp_path / "parent"), "checked": True, "removed": {}}
    assert child["init"] == entry and "init" not in parent


def test_a_child_on_other_data_is_tested_on_new_sentences(
    toy: Any, small: Any, tmp_path: Path, lines: list[str], killed_after: Any
) -> None:
    write(toy.pairs, lines[:200])
    small.train("parent", "train.steps=1")
    trained = [*corpora.load(toy.recipe().data).train.pairs]
    write(toy.pairs, lines[100:])
    settings = ("train.checkpoint_every=1", "train.steps=2")
    with killed_after(1):
        small.train("child", *settings, init=tmp_path / "parent")
    shutil.rmtree(tmp_path / "parent")  # the child has its own history
    small.train("child", *settings, resume=True)
    history = History.load(tmp_path / "child")
    assert history is not None
    held_out = corpora.load(toy.recipe().data, None, history).tests["test"]
    known = {text for pair in trained for text in pair}
    assert not known & {text for pair in held_out.pairs for text in pair}
    anew = corpora.load(toy.recipe().data).tests["test"]
    assert known & {text for pair in anew.pairs for text in pair}  # it would leak without
    scores = small.card("child")["tests"]["test"]
    assert scores["corpus_sha256"] == held_out.digest
    own = evaluate_own(tmp_path / "child", device="cpu").values
    assert json.loads(json.dumps(own)) == scores
    # Grandparents count.
    write(toy.pairs, lines)
    small.train("grandchild", "train.steps=1", init=tmp_path / "child")
    history = History.load(tmp_path / "grandchild")
    assert history is not None
    tested = corpora.load(toy.recipe().data, None, history).tests["test"].pairs
    assert not known & {text for pair in tested for text in pair}


def test_known_pairs_are_removed_from_given_sets_and_counted(
    small: Any, tmp_path: Path, lines: list[str]
) -> None:
    val = write(tmp_path / "v.tsv", lines[:5])
    small.train("parent", "train.steps=1", f"data.val={val}", "data.overlap=keep")
    new = ["neun neun\tnine nine", "acht acht\teight eight"]
    val = write(tmp_path / "val.tsv", [*lines[:3], *new])
    test = write(tmp_path / "test.tsv", [*new, *lines])
    settings = ("train.steps=1", f"data.val={val}", f"data.test={test}")
    small.train("child", *settings, init=tmp_path / "parent")
    card = small.card("child")
    removed = card["init"]["removed"]
    assert removed["val"] == 3 and removed["test"] == 285
    assert card["tests"]["test"]["sentences"] == len(new) + len(lines) - 285
    assert card["corpus"]["val"]["pairs"] == 2
    again = evaluate_own(tmp_path / "child", device="cpu").values
    assert again["corpus_sha256"] == card["tests"]["test"]["corpus_sha256"]
    parent = tmp_path / "parent"
    said = f"left out, as {parent} was trained on them: 3 of val, 285 of test"
    assert said in small.said.getvalue()
    (event,) = small.log("child", "init")
    assert event["removed"] == removed and event["checked"] is True
    write(val, lines[:3])
    with pytest.raises(InputError, match=rf"^{parent}: was trained on all 3 examples of val"):
        small.train("none", *settings, init=parent)


def test_a_parent_of_an_earlier_version_cannot_be_checked(small: Any, tmp_path: Path) -> None:
    small.train("parent", "train.steps=1")
    (tmp_path / "parent" / "history.safetensors").unlink()
    small.train("child", "train.steps=1", init=tmp_path / "parent")
    assert f"unknown whether {tmp_path / 'parent'}, or a model before" in small.said.getvalue()
    assert small.card("child")["init"]["checked"] is False
    small.train("grandchild", "train.steps=1", init=tmp_path / "child")
    assert small.card("grandchild")["init"]["checked"] is False


def test_a_model_of_one_language_hands_down_its_sentences(own_captions: Any) -> None:
    masked = own_captions.model("masked")
    texts = [*corpora.load(Recipe.load(masked / "recipe.toml").data).train.pairs][:4]
    test = own_captions.folder / "test.tsv"
    write(test, ["\t".join(pair) for pair in [("neu", "new"), *texts]])
    train = write(own_captions.folder / "train.tsv", ["\t".join(pair) for pair in texts])
    recipe = own_captions.recipe("translate", 1)
    text = recipe.read_text(encoding="utf-8").replace("limit = 200", "hold_out = 0")
    paths = f'train = "{train}"\nval = "{test}"\ntest = "{test}"'
    recipe.write_text(text.replace('corpus = "captions"', paths), encoding="utf-8")
    own_captions.run(recipe, "child", ("train.validate_sentences=1",), init=masked)
    assert own_captions.card("child")["init"]["removed"] == {"val": 4, "test": 4}


def test_pictures_of_the_parent_are_removed(own_dots: Any) -> None:
    own_dots.train("parent", "train.steps=1")
    data = own_dots.folder / "data"
    # Given sets with pictures that were in the training of the parent, of which a tenth is val.
    shutil.copytree(data / "train", data / "test")
    own_dots.train("child", "train.steps=1", init=own_dots.folder / "parent")
    parent, child = own_dots.card("parent"), own_dots.card("child")
    assert child["init"]["removed"]["test"] == parent["corpus"]["train"]["pictures"]
    left = 120 - parent["corpus"]["train"]["pictures"]
    assert child["tests"]["test"]["sentences"] == left


def test_the_log_counts_the_pairs_left_out_for_each_set(
    small: Any, tmp_path: Path, lines: list[str]
) -> None:
    val = write(tmp_path / "val.tsv", lines[:2])
    test = write(tmp_path / "test.tsv", lines[1:5])
    keys = (f"data.val={val}", f"data.test={test}", "train.steps=1")
    small.train("run", *keys)
    log = (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    (event,) = [event for event in map(json.loads, log) if event["event"] == "data"]
    assert (event["left_out"], event["overlap"]) == (5, {"test": 4, "val": 2})
    assert event["train"] == small.card("run")["corpus"]["train"] and event["val"]["pairs"] == 2
    assert event["notes"][0].startswith("5 of 300 training pairs share a sentence with test (4)")
