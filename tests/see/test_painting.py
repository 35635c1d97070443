"""Figures of diffusion models: attention and merged positions over the picture, all labelled."""

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
from seq2see.models.merged import TokenMerging
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
    return Step(1, 4, 0.75, empty, empty, trace)


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
    steps = [
        Step(number, total, 1 - number / total, empty, empty, None)
        for number in range(1, total + 1)
    ]
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


@given(
    grid=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    patch=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    seed=st.integers(0, 1000),
)
def test_a_group_has_the_mean_colour_of_its_pixels(
    grid: tuple[int, int], patch: tuple[int, int], seed: int
) -> None:
    rows, columns = grid
    height, width = rows * patch[0], columns * patch[1]
    chance = torch.Generator().manual_seed(seed)
    picture = torch.randint(256, (3, height, width), generator=chance, dtype=torch.uint8)
    drawn = torch.randint(4, (rows * columns,), generator=chance)
    groups = drawn.unique(return_inverse=True)[1]  # without gaps, as places are
    colours = painting.group_colours(picture, groups, grid)
    assert colours.shape == (3, rows, columns)
    on_pixels = groups.view(grid).repeat_interleave(patch[0], 0).repeat_interleave(patch[1], 1)
    for number in groups.unique():
        expected = picture[:, on_pixels == number].float().mean(1)
        for colour in colours[:, groups.view(grid) == number].T:
            torch.testing.assert_close(colour, expected)


def test_merging_draws_the_groups_of_each_layer_at_several_steps(painter: Painter) -> None:
    merged = painter.merged(TokenMerging(0.25))
    settings = merged.settings(steps=7)
    figure = painting.merging(merged, PROMPT, 3, settings)
    assert figure.get_suptitle() == f"{PROMPT}\nseed 3, 7 steps, guidance 3, merging ratio 0.25"
    _, right = figure.subfigs
    steps = merged.watch(PROMPT, 3, settings)
    picture = merged.format.pixels(steps[-1].x)[0]
    shown = [steps[place] for place in (0, 2, 4, 6)]
    assert [axes.get_title() for axes in right.axes[:4]] == [f"step {n}" for n in (1, 3, 5, 7)]
    assert [axes.get_ylabel() for axes in right.axes[::4]] == [
        "down, stage 1\n256 → 192 positions",
        "up, stage 2\n256 → 192 positions",
    ]
    for row, name in enumerate(("down.0", "up.1")):
        for axes, step in zip(right.axes[4 * row :], shown, strict=False):
            groups = step.trace.merged[name][0]
            colours = painting.group_colours(picture, groups, (16, 16)) / 255
            np.testing.assert_allclose(
                axes.images[0].get_array(), colours.permute(1, 2, 0), atol=1e-6
            )
            dots = {tuple(place) for place in axes.collections[-1].get_offsets().tolist()}
            sizes = groups.bincount()[groups].view(16, 16)
            alone = (sizes == 1).nonzero().tolist()
            assert dots == {(column + 0.5, row + 0.5) for row, column in alone}


def test_merging_draws_the_pictures_with_and_without_it(painter: Painter) -> None:
    merged = painter.merged(TokenMerging(0.75))
    settings = merged.settings(steps=2)
    figure = painting.merging(merged, "a ring", 1, settings)
    for axes, one in zip(figure.subfigs[0].axes, (merged, painter), strict=True):
        picture = one.paint(["a ring"], [1], settings)[0]
        np.testing.assert_allclose(axes.images[0].get_array(), picture / 255, atol=1e-6)
    with_merging, without = (axes.images[0].get_array() for axes in figure.subfigs[0].axes)
    assert not np.array_equal(with_merging, without)


@pytest.mark.parametrize(
    ("name", "title"),
    [("down.0", "down, stage 1"), ("middle.0", "middle, stage 1"), ("decoder.2", "layer 3")],
)
def test_layers_are_counted_from_one(name: str, title: str) -> None:
    assert painting.layer_title(name) == title


def test_what_does_not_merge_is_not_drawn(painter: Painter) -> None:
    for one in (painter, painter.merged(TokenMerging(0.0))):
        with pytest.raises(InputError, match="nothing is merged; --merge takes the share"):
            painting.merging(one, "a ring", 1, one.settings())


def test_the_other_views_name_the_ratio(painter: Painter) -> None:
    merged = painter.merged(TokenMerging(0.5))
    settings = merged.settings(steps=1)
    for draw in (painting.forming, painting.guidances):
        title = draw(merged, "a ring", 1, settings).get_suptitle()
        assert title.endswith(", merging ratio 0.5")
