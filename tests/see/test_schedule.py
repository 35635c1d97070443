"""Learning-rate curves: the paper's figures, and those of a recipe as training computes them."""

import pytest

from seq2see.recipe.schema import Recipe
from seq2see.see import schedule
from seq2see.see.numbers import numbers_of
from seq2see.training.schedule import inverse_sqrt


def test_the_papers_figures() -> None:
    curve = schedule.paper(512, 3000, 20_000)
    assert f"{curve.rate(2):.1e}" == "5.4e-07"
    assert f"{curve.rate(3000):.1e}" == "8.1e-04"
    assert f"{schedule.paper(512, 4000, 20_000).rate(4000):.1e}" == "7.0e-04"
    for update in (1, 2999, 3000, 3001, 20_000):
        assert curve.rate(update) == inverse_sqrt(update, (512 * 3000) ** -0.5, 3000)


def test_the_peak_is_drawn_and_reported() -> None:
    by_width, by_warmup = schedule.by_width_and_warmup([512, 100], [300, 20, 70], 1000)
    assert [(curve.width, curve.warmup) for curve in by_width] == [(512, 300), (100, 300)]
    assert [(curve.width, curve.warmup) for curve in by_warmup] == [
        (512, 300),
        (512, 20),
        (512, 70),
    ]
    for curve in (*by_width, *by_warmup):
        updates, rates = curve.points()
        assert updates[rates.index(max(rates))] == curve.warmup
        assert (updates[0], updates[-1]) == (1, 1000)
    figure = schedule.draw([("left", by_width), ("right", by_warmup)])
    left, right = numbers_of(figure)
    assert left.head == ["update", "d = 512, warm-up 300", "d = 100, warm-up 300"]
    assert len(right.head) == 4
    lines = schedule.report([*by_width, *by_warmup])
    assert len(lines) == 1 + 4  # the base once
    assert lines[1].startswith("d = 512, warm-up 300 ")


def recipe(*overrides: str) -> Recipe:
    return Recipe.load("captions", overrides)


def test_a_recipe_has_its_own_rate_and_budget() -> None:
    linear = schedule.of_recipe("mine", recipe("train.lr=0.5", "train.warmup=10"), 100)
    assert linear.rate(10) == linear.rate(40) == 0.5  # decay begins after half of the run
    assert linear.rate(5) == 0.25 and linear.rate(100) == pytest.approx(0.01)
    assert linear.name == "mine, 100 updates"
    own = recipe("train.minutes=none", "train.steps=70")
    assert schedule.of_recipe("mine", own, None).updates == 70
    assert schedule.of_recipe("mine", recipe(), None).updates == schedule.UPDATES


def test_a_warm_up_longer_than_the_run_is_shortened() -> None:
    curve = schedule.of_recipe("mine", recipe("train.warmup=500"), 50)
    assert curve.warmup == curve.peak == 10
