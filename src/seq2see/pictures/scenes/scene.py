"""Scenes: one to three groups of like objects, with relations between groups, and their prompts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from seq2see.errors import InputError

Colour = tuple[int, int, int]

# Mid-grey, so that each colour lies in a direction of its own and keeps it on anti-aliased edges.
BACKGROUND: Colour = (128, 128, 128)
COLOURS: dict[str, Colour] = {
    "red": (230, 35, 35),
    "green": (30, 200, 60),
    "blue": (40, 70, 240),
    "yellow": (250, 230, 30),
    "purple": (190, 40, 230),
    "turquoise": (30, 215, 225),
    "white": (250, 250, 250),
    "black": (10, 10, 10),
}
SHAPES = ("circle", "square", "triangle", "star", "cross", "diamond", "ring")
SIZES = ("small", "large")
OPPOSITES = {"above": "below", "below": "above", "left of": "right of", "right of": "left of"}
RELATIONS = tuple(OPPOSITES)
MOST_OF_A_KIND = 3
MOST_GROUPS = 3


@dataclass(frozen=True, slots=True)
class Group:
    """Objects of one kind; a colour or size of None is left open."""

    count: int
    shape: str
    colour: str | None = None
    size: str | None = None

    def __post_init__(self) -> None:
        _check("shape", self.shape, SHAPES)
        if self.colour is not None:
            _check("colour", self.colour, COLOURS)
        if self.size is not None:
            _check("size", self.size, SIZES)
        if not 1 <= self.count <= MOST_OF_A_KIND:
            raise InputError(f"count ({self.count}) must be 1 to {MOST_OF_A_KIND}")


@dataclass(frozen=True, slots=True)
class Scene:
    """Groups of objects; the relation holds between the first `related` groups, each and the next.

    The scene of a picture has every colour and size; that of a prompt has those it says.
    """

    groups: tuple[Group, ...]
    relation: str | None = None
    related: int = 0

    def __post_init__(self) -> None:
        if not 1 <= len(self.groups) <= MOST_GROUPS:
            raise InputError(f"groups ({len(self.groups)}) must be 1 to {MOST_GROUPS}")
        if self.relation is None:
            fits = self.related == 0
        else:
            _check("relation", self.relation, RELATIONS)
            fits = 2 <= self.related <= len(self.groups)
        if not fits:
            raise InputError(
                f"related ({self.related}) must be 2 to the number of groups "
                f"({len(self.groups)}) with a relation, and 0 without"
            )

    @property
    def objects(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """List the groups between which the relation holds, by number."""
        return [(first, first + 1) for first in range(self.related - 1)]

    def without(self, colours: Sequence[bool], sizes: Sequence[bool]) -> "Scene":
        """Leave open the colours and sizes of the groups whose entry is False."""
        groups = []
        for group, colour, size in zip(self.groups, colours, sizes, strict=True):
            said_colour = group.colour if colour else None
            said_size = group.size if size else None
            groups.append(Group(group.count, group.shape, said_colour, said_size))
        return Scene(tuple(groups), self.relation, self.related)

    def meaning(self) -> str:
        """Name what is shown, alike for all scenes that say the same in another order."""
        names = [f"{g.count} {g.size} {g.colour} {g.shape}" for g in self.groups]
        chain = names[: self.related]
        relation = self.relation
        if relation in ("below", "right of"):
            relation = OPPOSITES[relation]
            chain.reverse()
        others = sorted(names[self.related :])
        return f"{f' {relation} '.join(chain)}; {', '.join(others)}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Description of a scene in words, with exactly what they say."""

    text: str
    language: str
    said: Scene

    def __str__(self) -> str:
        return self.text


def _check(name: str, value: str, values: Collection[str]) -> None:
    if value not in values:
        raise InputError(f"{name} {value!r} is not one of {', '.join(values)}")
