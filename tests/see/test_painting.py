"""Figures of diffusion models: attention to words over the picture, and every panel labelled."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2see.decoding.denoising import Step
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.diffusion import Place
from seq2see.see import painting
from seq2see.tasks.painter import Painter
from seq2see.tasks.table import load_painter

HEADS, WORDS, SIZE = 3, 5, (8, 12)
PLACES = {"down.1": Place(None, (2, 3)), "up.0": Place(None, (4, 6))}
PROMPT = "A large red circle above two small blue squares"
WORDS_OF_PROMPT = PROMPT.lower().split()


@pytest.fixture
def painter(painted: Path) -> Painter:
    return load_painter(painted, "cpu")


def attended(seed: int = 1) -> Step:
    """A step with cross-attention in two layers of different grids."""
    trace = Trace()
    generator = torch.Generator().manual_seed(seed)
    for name, place in PLACES.items():
        positions = place.grid[0] * place.grid[1]
        scores = torch.randn(1, HEADS, positions, WORDS, generator=generator)
        trace.weights[f"{name}.cross"] = scores.double().softmax(-1)
        trace.weights[f"{name}.self"] = torch.full((1, HEADS, positions, positions), torch.nan)
    empty = torch.zeros(1, 3, *SIZE)
    return Step(1, 4, empty, empty, trace)


@given(seed=st.integers(0, 1000))
def test_the_shares_of_a_pixel_sum_to_one(seed: int) -> None:
    shares = painting.attention_on_picture(attended(seed), PLACES, SIZE)
    assert shares.shape == (WORDS, *SIZE) and (shares >= 0).all()
    torch.testing.assert_close(shares.sum(0), torch.ones(SIZE).double())


def test_attention_of_one_position_lies_over_its_part_of_the_picture() -> None:
    step = attended()
    assert step.trace is not None
    for name, place in PLACES.items():
        rows, columns = place.grid
        weights = torch.zeros(1, HEADS, rows * columns, WORDS)
        weights[:, 1, columns - 1, 4] = 1.0  # one head, the upper right corner, the last word
        step.trace.weights[f"{name}.cross"] = weights
    shares = painting.attention_on_picture(step, PLACES, SIZE)
    assert shares[4, 0, 11] == shares.max() == pytest.approx(1 / HEADS)
    assert shares[:4].max() == 0
    assert shares[4, 6:].max() == shares[4, :, :6].max() == 0


def test_layers_and_heads_count_alike() -> None:
    step = attended()
    assert step.trace is not None
    for weight, name in zip((0.0, 0.5), PLACES, strict=True):
        step.trace.weights[f"{name}.cross"][..., 0] = weight
    shares = painting.attention_on_picture(step, PLACES, SIZE)
    torch.testing.assert_close(shares[0], torch.full(SIZE, 0.25).double())


@given(total=st.integers(1, 60), count=st.integers(2, 9))
def test_steps_are_chosen_from_the_first_to_the_last(total: int, count: int) -> None:
    empty = torch.zeros(1)
    steps = [Step(number, total, empty, empty, None) for number in range(1, total + 1)]
    numbers = [step.number for step in painting.evenly(steps, count)]
    assert numbers == sorted(set(numbers)) and len(numbers) == min(count, total)
    assert numbers[0] == 1 and numbers[-1] == total
    distances = np.diff(numbers)
    assert np.ptp(distances) <= 1 if len(distances) else total == 1


def test_forming_shows_every_word_at_several_steps(painter: Painter) -> None:
    settings = painter.settings(steps=12)
    figure = painting.forming(painter, PROMPT, 7, settings)
    assert figure.get_suptitle() == f"{PROMPT}\nseed 7, 12 steps, guidance 3"
    upper, lower = figure.subfigs
    titles = [axes.get_title() for axes in upper.axes[:8]]
    assert titles[0] == "step 1\nt = 0.92" and titles[-1] == "step 12\nt = 0.00"
    names = [axes.get_ylabel().partition("\n")[0] for axes in lower.axes if axes.get_ylabel()]
    assert sorted(names) == sorted(WORDS_OF_PROMPT)
    by_row = [axes.get_ylabel().partition("\n")[0] for axes in lower.axes[:40:8]]
    assert by_row == WORDS_OF_PROMPT[:5]  # the other words are in the right half
    assert [axes.get_title() for axes in lower.axes[:8]] == [
        f"step {number}" for number in (1, 4, 9, 12) * 2
    ]


def test_forming_draws_the_states_and_scales_each_word_to_its_maximum(painter: Painter) -> None:
    settings = painter.settings(steps=3)
    upper, lower = painting.forming(painter, "a ring", 1, settings).subfigs
    steps = painter.watch("a ring", 1, settings)
    for place, step in enumerate(steps):
        for row, numbers in enumerate((step.x, step.picture)):
            drawn = upper.axes[3 * row + place].images[0].get_array()
            expected = painter.format.pixels(numbers)[0].permute(1, 2, 0) / 255
            np.testing.assert_allclose(drawn, expected.numpy(), atol=1e-6)
    maps = [painting.attention_on_picture(s, painter.model.places(), (32, 32)) for s in steps]
    for place in range(2):  # the words, side by side
        panels = lower.axes[3 * place : 3 * place + 3]
        most = max(float(shares[place].max()) for shares in maps)
        assert panels[0].get_ylabel() == f"{['a', 'ring'][place]}\nat most {most:.0%}"
        for axes, shares in zip(panels, maps, strict=True):
            heat = axes.images[1]
            assert heat.get_clim() == pytest.approx((0.0, most))
            np.testing.assert_allclose(heat.get_array(), shares[place].numpy(), atol=1e-6)


def test_a_prompt_of_one_word_leaves_the_other_half_empty(painter: Painter) -> None:
    figure = painting.forming(painter, "ring", 1, painter.settings(steps=1))
    panels = figure.subfigs[1].axes
    assert len(panels[0].images) == 2 and not panels[1].images
    assert panels[1].get_title() == ""


def test_guidance_draws_a_row_for_each_seed(painter: Painter) -> None:
    settings = painter.settings(steps=2)
    figure = painting.guidances(painter, "a red star", 3, settings)
    titles = [axes.get_title().splitlines()[0] for axes in figure.axes[:6]]
    assert titles == [f"guidance {guidance}" for guidance in (0, 1, 2, 3, 5, 8)]
    assert [axes.get_ylabel() for axes in figure.axes[::6]] == ["seed 3", "seed 4", "seed 5"]
    picture = painter.paint(["a red star"] * 3, [3, 4, 5], replace(settings, guidance=2.0))[1]
    drawn = figure.axes[6 + 2].images[0].get_array()
    np.testing.assert_allclose(drawn, picture / 255, atol=1e-6)


def test_without_guidance_there_is_no_attention_to_words(painter: Painter) -> None:
    with pytest.raises(InputError, match="guidance 0 ignores the prompt"):
        painting.forming(painter, "a ring", 1, painter.settings(guidance=0.0))
