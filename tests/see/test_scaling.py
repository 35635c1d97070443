"""Why √d, measured: what the paper says of variances and gradients holds for our scores."""

from itertools import pairwise

import pytest

from seq2see.see import scaling
from seq2see.see.scaling import Effect


@pytest.fixture(scope="module")
def found() -> dict[str, list[Effect]]:
    return scaling.measure()


def test_the_variance_of_the_plain_dot_is_the_size_and_that_of_the_others_one(
    found: dict[str, list[Effect]],
) -> None:
    for name, effects in found.items():
        for size, effect in zip(scaling.SIZES, effects, strict=True):
            assert effect.variance == pytest.approx(size if name == "dot" else 1.0, rel=0.15)


def test_without_scaling_one_weight_takes_all_and_the_gradient_fades(
    found: dict[str, list[Effect]],
) -> None:
    dot = found["dot"]
    assert all(a.largest < b.largest for a, b in pairwise(dot)) and dot[-1].largest > 0.9
    assert dot[-1].gradient < 0.4 * dot[0].gradient
    assert all(a.gradient > b.gradient for a, b in pairwise(dot[3:]))
    for effects in (found["scaled_dot"], found["unscaled"]):
        assert max(e.largest for e in effects) < 1.15 * min(e.largest for e in effects) < 0.2
        assert max(e.gradient for e in effects) < 1.2 * min(e.gradient for e in effects)


def test_the_same_each_time(
    found: dict[str, list[Effect]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "SIZES", [4])
    assert scaling.measure()["dot"][0] == found["dot"][0]


def test_every_figure_is_printed_and_drawn(found: dict[str, list[Effect]]) -> None:
    lines = scaling.lines(found)
    assert lines[1].split() == ["size", *map(str, scaling.SIZES)] and len(lines) == 3 * 5 + 2
    figure = scaling.draw(found)
    for axes, field in zip(figure.axes, ("variance", "largest", "gradient"), strict=True):
        for line, effects in zip(axes.lines, found.values(), strict=True):
            assert list(line.get_ydata()) == [getattr(effect, field) for effect in effects]
