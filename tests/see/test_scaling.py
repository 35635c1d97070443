"""The paper's claims on the variance and gradient of unscaled scores hold for ours."""

from itertools import pairwise

import pytest

from seq2see.see import scaling
from seq2see.see.scaling import Effect


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Effect]]:
    return scaling.measure()


def test_the_variance_of_dot_is_the_size_and_of_the_others_one(
    measured: dict[str, list[Effect]],
) -> None:
    for name, effects in measured.items():
        for size, effect in zip(scaling.SIZES, effects, strict=True):
            assert effect.variance == pytest.approx(size if name == "dot" else 1.0, rel=0.15)


def test_without_scaling_one_weight_dominates_and_the_gradient_shrinks(
    measured: dict[str, list[Effect]],
) -> None:
    dot = measured["dot"]
    assert all(a.largest < b.largest for a, b in pairwise(dot)) and dot[-1].largest > 0.9
    assert dot[-1].gradient < 0.4 * dot[0].gradient
    assert all(a.gradient > b.gradient for a, b in pairwise(dot[3:]))
    for effects in (measured["scaled_dot"], measured["unscaled"]):
        assert max(e.largest for e in effects) < 1.15 * min(e.largest for e in effects) < 0.2
        assert max(e.gradient for e in effects) < 1.2 * min(e.gradient for e in effects)


def test_the_same_each_time(
    measured: dict[str, list[Effect]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "SIZES", [4])
    assert scaling.measure()["dot"][0] == measured["dot"][0]


def test_every_measurement_is_printed_and_drawn(measured: dict[str, list[Effect]]) -> None:
    report = scaling.report(measured)
    assert report[1].split() == ["size", *map(str, scaling.SIZES)] and len(report) == 3 * 5 + 2
    figure = scaling.draw(measured)
    for axes, field in zip(figure.axes, ("variance", "largest", "gradient"), strict=True):
        for line, effects in zip(axes.lines, measured.values(), strict=True):
            assert list(line.get_ydata()) == [getattr(effect, field) for effect in effects]
