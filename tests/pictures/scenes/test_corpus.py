"""The corpus: reproducible by line, split without overlap, with combinations held out."""

import os
import random
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seq2see
from seq2see.errors import InputError
from seq2see.pictures.scenes import (
    HELD_OUT,
    PLANS,
    SPLITS,
    Drawing,
    Drawings,
    Plan,
    compose,
    generate,
)
from seq2see.pictures.scenes.scene import COLOURS, SHAPES, Scene


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[Drawing]]:
    """Drawings of all splits, each from a seed of its own."""
    return {split: generate(split, 600, seed=seed) for seed, split in enumerate(SPLITS)}


def same(drawing: Drawing, other: Drawing) -> bool:
    alike = drawing.prompt == other.prompt and drawing.scene == other.scene
    return alike and bool((drawing.picture == other.picture).all())


def pairs(scene: Scene) -> set[tuple[str | None, str]]:
    return {(group.colour, group.shape) for group in scene.groups}


def test_seed_split_and_line_decide_a_drawing() -> None:
    drawings = Drawings("train", 50, seed=3)
    listed = generate("train", 30, seed=3)
    assert len(drawings) == 50 and len(listed) == 30
    assert same(drawings[29], listed[29]) and same(drawings[0], listed[0])
    assert all(map(same, drawings, listed))
    others = [*Drawings("train", 30, seed=4), *Drawings("val", 30, seed=3)]
    assert not any(map(same, others, [*listed, *listed]))
    assert generate("val", 0) == []


def test_language_and_size_change_neither_scene_nor_layout() -> None:
    english = generate("test", 40)
    german = generate("test", 40, "de", size=64)
    for drawing, other in zip(english, german, strict=True):
        assert drawing.scene == other.scene and drawing.boxes == other.boxes
        assert drawing.prompt.said == other.prompt.said
        assert (drawing.prompt.language, other.prompt.language) == ("en", "de")
    both = Counter(d.prompt.language for d in Drawings("test", 40, "both"))
    assert both.keys() == {"en", "de"} and min(both.values()) > 8


def test_the_global_random_states_are_left_alone() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()
    generate("test_combinations", 20)
    assert before == (random.getstate(), np.random.get_state()[1].tolist())


def test_hash_randomisation_changes_nothing() -> None:
    code = "from seq2see.pictures.scenes import generate; print([(str(d.prompt), d.boxes, "
    code += "d.picture.tobytes()) for d in generate('train', 30, 'de')])"
    source = str(Path(seq2see.__file__).parents[1])
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source, "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_splits_share_no_scene_and_no_prompt_of_several_groups(
    corpus: dict[str, list[Drawing]],
) -> None:
    shown = [{d.scene.meaning() for d in drawings} for drawings in corpus.values()]
    assert len(set().union(*shown)) == sum(map(len, shown))
    said = [
        {d.prompt.said.meaning() for d in drawings if len(d.scene.groups) > 1}
        for drawings in corpus.values()
    ]
    assert len(set().union(*said)) == sum(map(len, said))


def test_one_meaning_has_one_name() -> None:
    for drawing in Drawings("train", 200):
        scene = drawing.scene
        chain, others = scene.groups[: scene.related], scene.groups[scene.related :]
        opposite = {"above": "below", "below": "above", "left of": "right of"}
        relation = scene.relation and opposite.get(scene.relation, "left of")
        turned = Scene((*chain[::-1], *others[::-1]), relation, scene.related)
        assert turned.meaning() == scene.meaning()
        if scene.relation:
            assert Scene(scene.groups, relation, scene.related).meaning() != scene.meaning()


def test_combinations_are_held_out_and_said(corpus: dict[str, list[Drawing]]) -> None:
    held_out = {*HELD_OUT}
    for split in ("train", "val", "test"):
        assert not any(pairs(drawing.scene) & held_out for drawing in corpus[split])
    assert all(pairs(d.prompt.said) & held_out for d in corpus["test_combinations"])
    seen = [pairs(drawing.scene) & held_out for drawing in corpus["test_combinations"]]
    assert set().union(*seen) == held_out


def test_each_value_is_common_in_training(corpus: dict[str, list[Drawing]]) -> None:
    groups = [group for drawing in corpus["train"] for group in drawing.scene.groups]
    colours = Counter(group.colour for group in groups)
    shapes = Counter(group.shape for group in groups)
    assert colours.keys() == {*COLOURS} and min(colours.values()) > 0.08 * len(groups)
    assert shapes.keys() == {*SHAPES} and min(shapes.values()) > 0.1 * len(groups)
    assert {*HELD_OUT} <= {*product(colours, shapes)}
    said = [group for drawing in corpus["train"] for group in drawing.prompt.said.groups]
    for attribute, share in (("colour", 0.85), ("size", 0.6)):
        open_ones = sum(getattr(group, attribute) is None for group in said)
        assert open_ones / len(said) == pytest.approx(1 - share, abs=0.05)
    sizes = Counter(group.size for group in groups)
    assert min(sizes.values()) > 0.4 * len(groups)


@pytest.mark.parametrize("split", SPLITS)
def test_the_number_of_prompts_of_two_objects_is_fixed(
    split: str, corpus: dict[str, list[Drawing]]
) -> None:
    for start in range(0, 200, 20):
        scenes = [drawing.scene for drawing in corpus[split][start : start + 20]]
        assert Counter(len(scene.groups) for scene in scenes) == {1: 4, 2: 12, 3: 4}
        assert sum(len(scene.groups) == scene.objects == 2 for scene in scenes) >= 7
    pairs_only = generate(split, 60, seed=SPLITS.index(split), groups=2)
    expected = [d for d in corpus[split][:100] if len(d.scene.groups) == 2]
    assert all(map(same, pairs_only, expected)) and len(expected) == 60


def test_there_are_more_than_a_million_scenes_and_prompts() -> None:
    # Samples of n and m out of N equally likely ones share about nm / N; others share more.
    first, second = (
        {(d.prompt.text, d.scene) for d in Drawings("train", 1200, seed=seed, groups=2)}
        for seed in (1, 2)
    )
    assert len(first) * len(second) / max(1, len(first & second)) > 1_000_000


@pytest.mark.parametrize("plan", sorted({*PLANS}))
def test_every_form_and_choice_of_words_has_scenes_in_every_split(plan: Plan) -> None:
    for split in SPLITS:
        for choices in product([0.0, 0.99], repeat=2 * plan.groups):
            draws = [*choices]
            rest = random.Random(f"{split} {plan}").random
            _, said, _ = compose(plan, split, lambda d=draws, r=rest: d.pop(0) if d else r())
            assert len(said.groups) == plan.groups


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("training", 5), "split 'training' is not one of train, val, test, test_combinations"),
        (("train", -1), "count (-1) must be at least 0"),
        (("train", 5, "fr"), "language 'fr' is not one of en, de, both"),
        (("train", 5, "en", 28), "size 28 is not one of 32, 48, 64"),
        (("train", 5, "en", 32, 1, 4), "groups 4 is not one of None, 1, 2, 3"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError) as raised:
        generate(*arguments)
    assert str(raised.value) == message


@pytest.mark.parametrize("line", [-1, 5])
def test_a_line_beyond_the_count_is_refused(line: int) -> None:
    with pytest.raises(IndexError, match="must be 0 to 4"):
        Drawings("train", 5)[line]


def test_single_objects_only() -> None:
    for drawing in Drawings("test", 40, single=True):
        assert [group.count for group in drawing.prompt.said.groups] == [1, 1]
    with pytest.raises(InputError, match="groups 1 is not one of None, 2"):
        Drawings("test", 1, groups=1, single=True)
