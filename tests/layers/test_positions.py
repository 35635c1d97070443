"""Positions: the formula, any length, any start, and relative positions as linear maps."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.layers.positions import LearnedPositions, Positions, rotate, sinusoidal


def test_sinusoidal_is_the_formula_of_the_paper() -> None:
    encodings = sinusoidal(7, 6)
    assert encodings.shape == (7, 6)
    for position in range(7):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert math.isclose(float(encodings[position, 2 * i]), math.sin(angle), abs_tol=1e-12)
            assert math.isclose(
                float(encodings[position, 2 * i + 1]), math.cos(angle), abs_tol=1e-12
            )


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^width \(5\) must be even"):
        sinusoidal(3, 5)


@settings(deadline=None, max_examples=50)
@given(position=st.integers(0, 3000), step=st.integers(0, 500))
def test_a_step_is_one_rotation_wherever_it_starts(position: int, step: int) -> None:
    """PE(pos+k) = R(k) PE(pos), where R(k) knows nothing of pos (section 3.5)."""
    width = 8
    encodings = sinusoidal(position + step + 1, width)
    rotation = torch.zeros(width, width, dtype=torch.float64)
    for i in range(0, width, 2):
        angle = step * 10000 ** (-i / width)
        rotation[i : i + 2, i : i + 2] = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]],
            dtype=torch.float64,
        )
    rotated = rotation @ encodings[position]
    torch.testing.assert_close(rotated, encodings[position + step], rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=50)
@given(calls=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), min_size=1, max_size=6))
def test_every_start_and_length_gives_the_same_values_in_any_order_of_calls(
    calls: list[tuple[int, int]],
) -> None:
    positions, whole = Positions(6), sinusoidal(60, 6)
    for start, length in calls:
        like = torch.zeros(2, length, 6, dtype=torch.float64)
        assert torch.equal(positions(start, like), whole[start : start + length])


def test_the_type_follows_the_input_and_costs_no_precision_on_the_way() -> None:
    positions = Positions(6)
    first = positions(3, torch.zeros(1, 4, 6, dtype=torch.float32))
    assert first.dtype == torch.float32
    assert torch.equal(first, sinusoidal(7, 6)[3:].float())
    assert torch.equal(
        positions(3, torch.zeros(1, 4, 6, dtype=torch.float64)), sinusoidal(7, 6)[3:]
    )


@settings(deadline=None, max_examples=40)
@given(query=st.integers(0, 400), key=st.integers(0, 400), shift=st.integers(0, 400))
def test_rotated_queries_and_keys_know_their_distance_alone(
    query: int, key: int, shift: int
) -> None:
    torch.manual_seed(0)
    q, k, encodings = torch.randn(1, 6).double(), torch.randn(1, 6).double(), sinusoidal(801, 6)

    def fit(t: int, s: int) -> float:
        return float((rotate(q, encodings[t : t + 1]) * rotate(k, encodings[s : s + 1])).sum())

    assert fit(query, key) == pytest.approx(fit(query + shift, key + shift), abs=1e-9)


def test_rotating_keeps_lengths_and_turns_each_pair_by_its_angle() -> None:
    x = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    turned = rotate(x, sinusoidal(5, 4))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), rtol=0, atol=1e-12)
    for t in range(5):
        for i in range(2):
            angle = torch.tensor(1j * t * 10000 ** (-2 * i / 4), dtype=torch.complex128).exp()
            expected = torch.view_as_complex(x[:, :, t, 2 * i : 2 * i + 2].contiguous()) * angle
            torch.testing.assert_close(turned[:, :, t, 2 * i], expected.real, rtol=0, atol=1e-12)
            torch.testing.assert_close(
                turned[:, :, t, 2 * i + 1], expected.imag, rtol=0, atol=1e-12
            )


def test_learned_positions_are_rows_of_a_table_and_end_with_it() -> None:
    learned = LearnedPositions(5, 6)
    assert torch.equal(learned(1, torch.zeros(2, 3, 6)), learned.embedding.weight[1:4] * 6**0.5)
    with pytest.raises(ValueError, match=r"^a sentence has 6 positions; 5 were learned$"):
        learned(3, torch.zeros(2, 3, 6))
