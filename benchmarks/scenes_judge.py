"""Accuracy of the judge of scenes on the renderer's pictures, clean and worn, and speeds.

    python benchmarks/scenes_judge.py --count 10000

Every picture is judged by its own prompt, which must be accepted, and by prompts with one
attribute changed so that they are false, which must be refused. Worn pictures have the flaws that
a sampler leaves: noise, blur, colours that are off and blotches; in `most worn` ones noise and
blur are at the most that is tolerated. Writes `results/scenes.json`.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from seq2see.pictures import scenes
from seq2see.pictures.scenes import Drawing, Drawings
from seq2see.pictures.scenes.drawing import Picture
from seq2see.pictures.scenes.judge import compare
from seq2see.pictures.scenes.objects import find, masks_for
from seq2see.pictures.scenes.scene import COLOURS, RELATIONS, SHAPES, SIZES, Scene

RESULTS = Path(__file__).parent / "results"
ATTRIBUTES = ("colour", "shape", "size", "count", "relation")
VALUES = {"colour": [*COLOURS], "shape": SHAPES, "size": SIZES, "count": (1, 2, 3)}
# The most of each flaw; colours from 0 to 1, lengths in pixels of a 32 × 32 picture.
NOISE = 0.08
BLUR = 0.6
GAIN = 0.1
OFF = 0.1
BLOTCH = 0.1
BLOTCHES = 3


def worn(picture: Picture, random: np.random.Generator, most: bool = False) -> Picture:
    """Add flaws to a picture, drawn up to the most of each; with `most`, all of noise and blur."""
    size = len(picture)
    scale = size / 32
    share = np.ones(2) if most else random.uniform(size=2)
    spread = BLUR * share[0] * scale
    pixels = ndimage.gaussian_filter(picture / 255, (spread, spread, 0))
    pixels = 0.5 + (pixels - 0.5) * random.uniform(1 - GAIN, 1 + GAIN)
    # Colours are off by other amounts in other parts of the picture.
    off = random.uniform(-OFF, OFF, (3, 3, 3))
    pixels += ndimage.zoom(off, (size / 3, size / 3, 1), order=1, mode="nearest", grid_mode=True)
    rows, columns = np.mgrid[:size, :size] + 0.5
    for _ in range(random.integers(BLOTCHES + 1)):
        y, x = random.uniform(0, size, 2)
        radius = random.uniform(1, 3) * scale
        blotch = np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * radius**2))
        pixels += blotch[:, :, None] * random.uniform(-BLOTCH, BLOTCH, 3)
    pixels += random.normal(0, NOISE * share[1], pixels.shape)
    return (pixels * 255).round().clip(0, 255).astype(np.uint8)


def shows(drawing: Drawing, said: Scene) -> bool:
    """Tell from scene and layout whether a drawing shows what is said, trying all assignments."""
    kinds = [drawing.scene.groups[box.group] for box in drawing.boxes]
    places = [place for place, group in enumerate(said.groups) for _ in range(group.count)]
    if len(places) != len(kinds):
        return False
    for order in {*permutations(places)}:
        right = all(
            kind.shape == said.groups[place].shape
            and said.groups[place].colour in (None, kind.colour)
            and said.groups[place].size in (None, kind.size)
            for kind, place in zip(kinds, order, strict=True)
        )
        if right and all(_apart(drawing, said, order, *pair) for pair in said.pairs):
            return True
    return False


def _apart(drawing: Drawing, said: Scene, order: tuple[int, ...], a: int, b: int) -> bool:
    """Tell whether the boxes of two groups are apart as the relation says."""
    if said.relation in ("below", "right of"):
        a, b = b, a
    across = said.relation in ("left of", "right of")
    boxes = list(zip(drawing.boxes, order, strict=True))
    ends = [(box.x if across else box.y) + box.side for box, place in boxes if place == a]
    starts = [box.x if across else box.y for box, place in boxes if place == b]
    return max(ends) <= min(starts)


def changed(said: Scene) -> Iterator[tuple[str, Scene]]:
    """Yield all scenes that say one attribute differently, each with its name."""
    for place, group in enumerate(said.groups):
        for attribute, values in VALUES.items():
            value = getattr(group, attribute)
            for other in values:
                if value not in (None, other):
                    groups = list(said.groups)
                    groups[place] = replace(group, **{attribute: other})
                    yield attribute, replace(said, groups=tuple(groups))
    for relation in RELATIONS:
        if said.relation not in (None, relation):
            yield "relation", replace(said, relation=relation)


def wrong(drawing: Drawing, random: np.random.Generator) -> dict[str, Scene]:
    """Draw a false scene for each attribute that the prompt says, with only that one changed."""
    by_attribute: dict[str, list[Scene]] = {}
    for attribute, scene in changed(drawing.prompt.said):
        by_attribute.setdefault(attribute, []).append(scene)
    drawn = {}
    for attribute, choices in by_attribute.items():
        for place in random.permutation(len(choices)):
            if not shows(drawing, choices[place]):
                drawn[attribute] = choices[place]
                break
    return drawn


def measure(split: str, count: int, size: int, wear: str) -> dict[str, Any]:
    """Judge the pictures of a split by their own and by wrong prompts; return shares."""
    random = np.random.default_rng(1)
    right: Counter[str] = Counter()
    said: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    spent = 0.0
    for drawing in Drawings(split, count, size=size):
        picture = drawing.picture
        if wear != "clean":
            picture = worn(picture, random, most=wear == "most worn")
        start = time.perf_counter()
        objects = find(picture)
        verdict = compare(objects, drawing.prompt.said, size)
        spent += time.perf_counter() - start
        for attribute in (*ATTRIBUTES, "all"):
            value = getattr(verdict, attribute)
            said[attribute] += value is not None
            right[attribute] += value is True
        for attribute, scene in wrong(drawing, random).items():
            asked[attribute] += 1
            refused[attribute] += not compare(objects, scene, size).all
    return {
        "split": split,
        "wear": wear,
        "size": size,
        "pictures": count,
        "right": {name: right[name] / said[name] for name in said},
        "refused": {name: refused[name] / asked[name] for name in ATTRIBUTES}
        | {"all": refused.total() / asked.total()},
        "judged_per_second": count / spent,
    }


def drawn_per_second(split: str, count: int, size: int) -> float:
    """Measure how fast drawings are made, after each mask has been drawn once."""
    scenes.generate(split, 1000, size=size)
    start = time.perf_counter()
    for _ in Drawings(split, count, size=size, seed=2):
        pass
    return count / (time.perf_counter() - start)


def save(result: dict[str, Any], path: Path) -> None:
    """Write the figures with the machine that they were measured on."""
    from seq2see.scoring.card import machine  # imports PyTorch, which nothing else here needs

    path.write_text(json.dumps(result | {"machine": machine()}, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10_000, help="pictures of each split")
    parser.add_argument("--splits", nargs="+", default=scenes.SPLITS)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--out", type=Path, default=RESULTS / "scenes.json")
    options = parser.parse_args()
    masks_for(options.size)
    rows = []
    speeds = {}
    for split in options.splits:
        speeds[split] = drawn_per_second(split, options.count // 5, options.size)
        print(f"{split}: {speeds[split]:.0f} drawings a second", flush=True)
        for wear in ("clean", "worn", "most worn"):
            rows.append(measure(split, options.count, options.size, wear))
            print(json.dumps(rows[-1]), flush=True)
    save({"rows": rows, "drawings_per_second": speeds}, options.out)


if __name__ == "__main__":
    main()
