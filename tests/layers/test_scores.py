"""Score functions: shapes, formulas, and the reason to scale."""

import math
import typing

import torch

from seq2see.config import ModelConfig
from seq2see.layers.scores import SCORES, dot, scaled_dot


def test_dot_is_the_inner_product_of_every_pair() -> None:
    query, key = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    scores = dot(query, key)
    assert scores.shape == (2, 3, 5)
    for b in range(2):
        for t in range(3):
            for s in range(5):
                expected = sum(float(query[b, t, i] * key[b, s, i]) for i in range(4))
                assert math.isclose(float(scores[b, t, s]), expected, abs_tol=1e-12)


def test_scaled_dot_divides_by_the_root_of_the_head_size() -> None:
    query, key = torch.randn(2, 3, 7, dtype=torch.float64), torch.randn(2, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(scaled_dot(query, key), dot(query, key) / math.sqrt(7), rtol=0, atol=1e-12)


def test_scaled_scores_of_independent_unit_queries_and_keys_have_variance_one_at_every_head_size() -> None:
    generator = torch.Generator().manual_seed(3)
    for size in (4, 64):
        query = torch.randn(400, size, generator=generator)
        key = torch.randn(300, size, generator=generator)
        assert abs(float(scaled_dot(query, key).var()) - 1) < 0.1
        assert abs(float(dot(query, key).var()) / size - 1) < 0.1


def test_a_recipe_can_name_each_score_and_no_other() -> None:
    assert set(typing.get_args(ModelConfig.model_fields["score"].annotation)) == set(SCORES)
