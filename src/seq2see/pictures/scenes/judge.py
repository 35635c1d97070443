"""Judge of pictures: whether they show what a prompt says, attribute by attribute.

A picture is right if it shows the objects said and no others. Attributes that the prompt leaves
open are not judged. Relations hold between boxes: "above" means that no box of the first group
reaches more than 1/32 of the picture below the top of any of the second; sideways, they are free.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seq2see.pictures.scenes.drawing import Picture
from seq2see.pictures.scenes.objects import Seen, find
from seq2see.pictures.scenes.scene import Group, Prompt, Scene

OVERLAP = 1 / 32  # tolerated between groups, along the axis of their relation; of a picture's side
SPARE = 2  # objects more than said that are assigned; any others only make the count wrong

# Costs of errors in assigning objects to groups. Among assignments with equally many errors, the
# one with the fewest errors in shape is best, then in colour, then in relation.
SHAPE, COLOUR, RELATION, SIZE = 1.03, 1.02, 1.01, 1.0
MISSING = 0.9
EXTRA = 0.9
FOREIGN = 3.0  # to leave over an object like that of no group, where one is missing

Assignment = list[int | None]  # the group of each object


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether each attribute is right wherever it is said; None if it is said nowhere."""

    colour: bool | None
    shape: bool
    size: bool | None
    count: bool
    relation: bool | None
    objects: tuple[Seen, ...]  # found in the picture

    @property
    def all(self) -> bool:
        return False not in (self.colour, self.shape, self.size, self.count, self.relation)


def judge(picture: Picture, prompt: Prompt | Scene) -> Verdict:
    """Judge whether a picture shows what a prompt says."""
    said = prompt.said if isinstance(prompt, Prompt) else prompt
    return compare(find(picture), said, len(picture))


def compare(objects: Sequence[Seen], said: Scene, size: int) -> Verdict:
    """Compare the objects found in a picture of size × size pixels with what is said."""
    assignment = _assign(objects[: said.objects + SPARE], said, size)
    members: list[list[Seen]] = [[] for _ in said.groups]
    for seen, number in zip(objects, assignment, strict=False):
        if number is not None:
            members[number].append(seen)
    pairs = list(zip(said.groups, members, strict=True))
    related = [_related(members[a], members[b], said.relation, size) for a, b in said.pairs]
    filled = all(len(group_members) == group.count for group, group_members in pairs)
    return Verdict(
        colour=_right(pairs, "colour"),
        shape=bool(_right(pairs, "shape")),
        size=_right(pairs, "size"),
        count=filled and len(objects) == said.objects,
        relation=all(related) if related else None,
        objects=tuple(objects),
    )


def _right(pairs: Sequence[tuple[Group, list[Seen]]], attribute: str) -> bool | None:
    """Tell whether all objects are as said of their groups, and each group has one at least."""
    right: list[bool] = []
    for group, objects in pairs:
        value = getattr(group, attribute)
        if value is not None:
            right += [getattr(seen, attribute) == value for seen in objects] or [False]
    return all(right) if right else None


def _assign(objects: Sequence[Seen], said: Scene, size: int) -> Assignment:
    """Assign objects to groups with the fewest errors, by branch and bound."""
    errors = [[_errors(seen, group) for group in said.groups] for seen in objects]
    foreign = [min(row) > 0 for row in errors]
    costs = [min(*row, EXTRA) for row in errors]
    to_come = [sum(costs[place:]) for place in range(len(costs) + 1)]  # at least, from each object
    best: Assignment = [None] * len(objects)
    least = float("inf")

    def extend(assignment: Assignment, room: list[int], cost: float) -> None:
        nonlocal best, least
        if cost + to_come[len(assignment)] >= least:
            return
        if len(assignment) == len(objects):
            strangers = sum(foreign[place] for place, n in enumerate(assignment) if n is None)
            cost += MISSING * sum(room) + FOREIGN * min(sum(room), strangers)
            cost += RELATION * _unrelated(objects, assignment, said, size)
            if cost < least:
                best, least = assignment, cost
            return
        row = errors[len(assignment)]
        for number in sorted(range(len(row)), key=row.__getitem__):
            if room[number]:
                left = [*room[:number], room[number] - 1, *room[number + 1 :]]
                extend([*assignment, number], left, cost + row[number])
        extend([*assignment, None], room, cost + EXTRA)

    extend([], [group.count for group in said.groups], 0.0)
    return best


def _errors(seen: Seen, group: Group) -> float:
    """Add up the costs of what is wrong with an object as one of a group."""
    cost = SHAPE * (seen.shape != group.shape)
    if group.colour:
        cost += COLOUR * (seen.colour != group.colour)
    if group.size:
        cost += SIZE * (seen.size != group.size)
    return cost


def _unrelated(objects: Sequence[Seen], assignment: Assignment, said: Scene, size: int) -> int:
    """Count the pairs of groups between which the relation does not hold."""
    count = 0
    for pair in said.pairs:
        first, second = (
            [seen for seen, number in zip(objects, assignment, strict=True) if number == place]
            for place in pair
        )
        count += not _related(first, second, said.relation, size)
    return count


def _related(first: list[Seen], second: list[Seen], relation: str | None, size: int) -> bool:
    """Tell whether the boxes of one group are on the said side of those of another."""
    if not first or not second:
        return False
    if relation in ("below", "right of"):
        first, second = second, first
    axis = 0 if relation in ("left of", "right of") else 1
    end = max(seen.centre[axis] + seen.side / 2 for seen in first)
    start = min(seen.centre[axis] - seen.side / 2 for seen in second)
    return end <= start + OVERLAP * size
