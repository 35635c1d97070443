"""Embedded corpus of scenes: prompts in English or German with small pictures of what they say."""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

from seq2see.errors import InputError
from seq2see.pictures.scenes.drawing import PICTURE_SIZES, Picture, paint
from seq2see.pictures.scenes.layout import Box, place
from seq2see.pictures.scenes.scene import (
    COLOURS,
    RELATIONS,
    SHAPES,
    SIZES,
    Group,
    Prompt,
    Scene,
)
from seq2see.pictures.scenes.wording import LANGUAGES, Random, describe, pick

SPLITS = ("train", "val", "test", "test_combinations")
# The hash of a meaning decides the split, so no seed or line can make two splits overlap.
BUCKETS = {
    "train": range(20, 100),
    "val": range(0, 10),
    "test": range(10, 20),
    "test_combinations": range(0, 100),
}
# Colours and shapes that only `test_combinations` shows together; each is common with others.
HELD_OUT = (
    ("red", "star"),
    ("green", "circle"),
    ("blue", "triangle"),
    ("yellow", "ring"),
    ("purple", "square"),
    ("turquoise", "diamond"),
    ("black", "cross"),
)
COMMON = [(c, s) for c in COLOURS for s in SHAPES if (c, s) not in HELD_OUT]
COUNTS = (1, 1, 1, 2, 2, 3)
MOST_OBJECTS = 6
SAY_COLOUR = 0.85
SAY_SIZE = 0.6


class Plan(NamedTuple):
    """Form of a scene: how many groups, how many of them related, and whether all are single."""

    groups: int
    related: int
    single: bool


ALONE = Plan(1, 0, False)
BOTH = Plan(2, 0, False)
BOTH_SINGLE = Plan(2, 0, True)
PAIR = Plan(2, 2, False)
PAIR_SINGLE = Plan(2, 2, True)
LIST = Plan(3, 0, False)
ASIDE = Plan(3, 2, False)
CHAIN = Plan(3, 3, False)
# Line by line in turn: twelve of twenty prompts name two groups, seven of them single objects only.
PLANS = (
    *(PAIR_SINGLE, ALONE, PAIR, ASIDE, BOTH_SINGLE),
    *(PAIR_SINGLE, ALONE, PAIR, LIST, PAIR_SINGLE),
    *(PAIR_SINGLE, ALONE, PAIR, ASIDE, BOTH),
    *(PAIR_SINGLE, ALONE, PAIR, CHAIN, BOTH_SINGLE),
)


@cache
def places_of(groups: int | None, single: bool) -> list[int]:
    """List the places in PLANS of a number of groups, or of any, all single if asked."""
    return [
        place
        for place, plan in enumerate(PLANS)
        if groups in (None, plan.groups) and (plan.single or not single)
    ]


@dataclass(frozen=True)
class Drawing:
    """Prompt with a picture of it; the scene has also what the prompt leaves open."""

    prompt: Prompt
    picture: Picture
    scene: Scene
    boxes: tuple[Box, ...]  # of the objects, in quarters of a pixel of a 32 × 32 picture


@dataclass(frozen=True)
class Drawings:
    """First `count` drawings of a split, each made when it is asked for by its line.

    Seed, split and line decide scene and layout, whatever the language and size.
    """

    split: str
    count: int
    language: str = "en"  # or "de", or "both" for one of them in each line
    size: int = 32  # pixels, of the pictures' sides
    seed: int = 1
    groups: int | None = None  # that each prompt names; None for any number
    single: bool = False  # whether each prompt names two groups of one object

    def __post_init__(self) -> None:
        _check("split", self.split, SPLITS)
        _check("language", self.language, (*LANGUAGES, "both"))
        _check("size", self.size, PICTURE_SIZES)
        _check("groups", self.groups, (None, 2) if self.single else (None, 1, 2, 3))
        if self.count < 0:
            raise InputError(f"count ({self.count}) must be at least 0")

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Drawing]:
        return map(self.__getitem__, range(self.count))

    def __getitem__(self, line: int) -> Drawing:
        if not 0 <= line < self.count:
            raise IndexError(f"line {line} must be 0 to {self.count - 1}")
        places = places_of(self.groups, self.single)
        turn = line // len(places) * len(PLANS) + places[line % len(places)]
        key = f"{self.seed} {self.split} {turn}"
        draw = random.Random(key).random
        scene, said, boxes = compose(PLANS[turn % len(PLANS)], self.split, draw)
        choose = random.Random(f"{key} {self.language}").random
        language = pick(LANGUAGES, choose) if self.language == "both" else self.language
        prompt = describe(said, language, choose)
        return Drawing(prompt, paint(scene, boxes, self.size), scene, tuple(boxes))


def generate(
    split: str,
    count: int,
    language: str = "en",
    size: int = 32,
    seed: int = 1,
    groups: int | None = None,
) -> list[Drawing]:
    """Generate the first `count` drawings of a split, or the first that name `groups` groups."""
    return list(Drawings(split, count, language, size, seed, groups))


def compose(plan: Plan, split: str, draw: Random) -> tuple[Scene, Scene, list[Box]]:
    """Draw a scene of a split, what a prompt says of it, and its layout."""
    # Drawn before the attributes, to be distributed alike in all splits.
    colours = [draw() < SAY_COLOUR for _ in range(plan.groups)]
    sizes = [draw() < SAY_SIZE for _ in range(plan.groups)]
    rare = int(draw() * plan.groups) if split == "test_combinations" else None
    if plan.groups > 1 and not any(colours):
        colours[0] = True  # with none there are too few meanings to divide between the splits
    if rare is not None:
        colours[rare] = True
    while True:
        scene = _scene(plan, rare, draw)
        if scene.objects > MOST_OBJECTS or not _belongs(scene, split):
            continue
        said = scene.without(colours, sizes)
        # A group alone has too few meanings to divide those that leave something open, too.
        if not _distinct(said) or (plan.groups > 1 and not _belongs(said, split)):
            continue
        boxes = place(scene, draw)
        if boxes is not None:
            return scene, said, boxes


def _scene(plan: Plan, rare: int | None, draw: Random) -> Scene:
    groups = []
    for number in range(plan.groups):
        colour, shape = pick(HELD_OUT if number == rare else COMMON, draw)
        count = 1 if plan.single else pick(COUNTS, draw)
        groups.append(Group(count, shape, colour, pick(SIZES, draw)))
    relation = pick(RELATIONS, draw) if plan.related else None
    return Scene(tuple(groups), relation, plan.related)


def _distinct(said: Scene) -> bool:
    """Tell whether any two groups differ in something that is said of both."""
    for group, other in combinations(said.groups, 2):
        values = zip(_said(group), _said(other), strict=True)
        if not any(None not in pair and pair[0] != pair[1] for pair in values):
            return False
    return True


def _said(group: Group) -> tuple[str | None, ...]:
    return group.shape, group.colour, group.size


def _belongs(scene: Scene, split: str) -> bool:
    return zlib.crc32(scene.meaning().encode()) % 100 in BUCKETS[split]


def _check(name: str, value: object, values: tuple[object, ...]) -> None:
    if value not in values:
        raise InputError(f"{name} {value!r} is not one of {', '.join(map(str, values))}")
