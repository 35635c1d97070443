"""Score functions: formulas pair by pair, heads one by one, and their variance at the start."""

import itertools
import math
import statistics
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.layers import scores as scores_module
from seq2see.layers.attention import MultiHeadAttention
from seq2see.layers.scores import SCORES, Additive, Bilinear, Projected, dot, scaled_dot
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig

B, H, T, S, QUERY, KEY, INNER = 2, 3, 4, 5, 6, 7, 8  # mutually different, so that swapped axes fail
MAKERS: dict[str, Any] = {
    "additive": lambda heads=None: Additive(QUERY, KEY, INNER, heads),
    "bilinear": lambda heads=None: Bilinear(QUERY, KEY, heads),
    "projected": lambda heads=None: Projected(QUERY, KEY, INNER, heads),
}

learned = pytest.mark.parametrize("name", MAKERS)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def by_hand(score: Any, query: list[float], key: list[float], head: int | None = None) -> float:
    """The score of one pair, written out."""
    weights = {
        name: (weight if head is None else weight[head]).squeeze().tolist()
        for name, weight in score.named_parameters()
    }

    def times(vector: list[float], matrix: list[list[float]]) -> list[float]:
        return [
            sum(x * row[j] for x, row in zip(vector, matrix, strict=True))
            for j in range(len(matrix[0]))
        ]

    def product(left: list[float], right: list[float]) -> float:
        return sum(x * y for x, y in zip(left, right, strict=True))

    if isinstance(score, Bilinear):
        return product(times(query, weights["weight"]), key) / math.sqrt(len(key))
    queried, keyed = times(query, weights["query_weight"]), times(key, weights["key_weight"])
    if isinstance(score, Projected):
        return product(queried, keyed) / math.sqrt(INNER)
    return product(
        weights["vector"], [math.tanh(x + y) for x, y in zip(queried, keyed, strict=True)]
    )


def test_dot_is_the_inner_product_of_every_pair() -> None:
    query, key = drawn(2, 3, 4), drawn(2, 5, 4)
    scores = dot(query, key)
    assert scores.shape == (2, 3, 5)
    for b in range(2):
        for t in range(3):
            for s in range(5):
                expected = sum(float(query[b, t, i] * key[b, s, i]) for i in range(4))
                assert math.isclose(float(scores[b, t, s]), expected, abs_tol=1e-12)


def test_scaled_dot_divides_by_the_root_of_the_head_size() -> None:
    query, key = drawn(2, 3, 7), drawn(2, 5, 7)
    torch.testing.assert_close(
        scaled_dot(query, key), dot(query, key) / math.sqrt(7), rtol=0, atol=1e-12
    )


@learned
def test_a_learned_score_is_its_formula_for_every_pair_of_different_sizes(name: str) -> None:
    score, query, key = MAKERS[name]().double(), drawn(B, T, QUERY), drawn(B, S, KEY)
    scores = score(query, key).detach()
    assert scores.shape == (B, T, S)
    for b, t, s in itertools.product(range(B), range(T), range(S)):
        expected = by_hand(score, query[b, t].tolist(), key[b, s].tolist())
        assert math.isclose(float(scores[b, t, s]), expected, abs_tol=1e-12)


@learned
def test_each_head_scores_with_weights_of_its_own(name: str) -> None:
    score, query, key = MAKERS[name](H).double(), drawn(B, H, T, QUERY), drawn(B, H, S, KEY)
    together = score(query, key).detach()
    assert together.shape == (B, H, T, S)
    for head in range(H):
        alone = MAKERS[name]().double()
        for part, weight in score.named_parameters():
            own = alone.get_parameter(part)
            own.data.copy_(weight[head].reshape(own.shape))
        torch.testing.assert_close(
            together[:, head], alone(query[:, head], key[:, head]).detach(), rtol=0, atol=1e-12
        )
        expected = by_hand(score, query[1, head, 2].tolist(), key[1, head, 3].tolist(), head)
        assert math.isclose(float(together[1, head, 2, 3]), expected, abs_tol=1e-12)


@learned
def test_gradients_of_a_learned_score_are_right(name: str) -> None:
    for heads in (None, H):
        lead = () if heads is None else (2, H)
        score = MAKERS[name](heads).double()
        query, key = drawn(*lead, T, QUERY).requires_grad_(), drawn(*lead, S, KEY).requires_grad_()

        def scored(query: Tensor, key: Tensor, *weights: Tensor, score: nn.Module = score) -> Any:
            return torch.func.functional_call(
                score, dict(zip(dict(score.named_parameters()), weights, strict=True)), (query, key)
            )

        assert torch.autograd.gradcheck(scored, (query, key, *score.parameters()))


@pytest.mark.parametrize("heads", [None, H])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_additive_scores_in_blocks_of_rows_equal_those_in_one_block(
    heads: int | None, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(rows)
    score = Additive(QUERY, KEY, INNER, heads).double()
    query, key = drawn(B, H, T, QUERY).requires_grad_(), drawn(B, H, S, KEY).requires_grad_()
    slopes = drawn(B, H, T, S)
    results = []
    for most in (2**22, B * H * S * INNER * rows):
        monkeypatch.setattr(scores_module, "BUFFER_SIZE", most)
        scores = score(query, key)
        results.append(
            (scores, *torch.autograd.grad(scores, (query, key, *score.parameters()), slopes))
        )
    for whole, by_rows in zip(*results, strict=True):
        torch.testing.assert_close(by_rows, whole, rtol=0, atol=1e-12)


MEASURE = """
import torch
from seq2see.layers.scores import Additive

def highest_mb():
    status = open("/proc/self/status").read()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024

torch.set_num_threads(1)
score = Additive(256, 256, 256)
query, key = (torch.randn(8, 256, 256, requires_grad=True) for _ in range(2))
score(query[:1, :2], key[:1, :2]).sum().backward()
before = highest_mb()
score(query, key).sum().backward()
print(highest_mb() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory as Linux tells it")
def test_additive_scores_of_long_sentences_take_little_memory() -> None:
    """All pairs of 8 × 256 tokens take 512 MB in float32, and several times that with gradients."""
    # Not ru_maxrss: a new process begins with that of the one which started it.
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE], check=True, capture_output=True, text=True
    )
    assert float(measured.stdout) < 128


def test_no_query_and_no_key_is_no_error() -> None:
    for make in MAKERS.values():
        for targets, sources in ((0, S), (T, 0), (0, 0)):
            scores = make().double()(drawn(B, targets, QUERY), drawn(B, sources, KEY))
            assert scores.shape == (B, targets, sources)
            scores.sum().backward()


def test_one_key_may_serve_many_queries() -> None:
    """Leading axes broadcast: one set of keys for several sets of queries."""
    for name, make in MAKERS.items():
        score, query, key = make().double(), drawn(B, H, T, QUERY), drawn(H, S, KEY)
        scores = score(query, key)
        assert scores.shape == (B, H, T, S), name
        torch.testing.assert_close(scores[1], score(query[1], key), rtol=0, atol=1e-12)


def variance(scores: Tensor) -> float:
    return float(scores.detach().var())


def test_scaled_scores_of_unit_queries_and_keys_have_variance_one_at_every_size() -> None:
    generator = torch.Generator().manual_seed(3)
    for size in (4, 64):
        query = torch.randn(400, size, generator=generator)
        key = torch.randn(300, size, generator=generator)
        assert variance(scaled_dot(query, key)) == pytest.approx(1, abs=0.1)
        assert variance(dot(query, key)) / size == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("query_size", "key_size", "inner"), [(16, 16, 16), (64, 64, 64), (512, 64, 128), (32, 256, 64)]
)
@learned
def test_a_learned_score_starts_with_variance_one(
    name: str, query_size: int, key_size: int, inner: int
) -> None:
    torch.manual_seed(4)
    makers = {
        "additive": lambda heads: Additive(query_size, key_size, inner, heads),
        "bilinear": lambda heads: Bilinear(query_size, key_size, heads),
        "projected": lambda heads: Projected(query_size, key_size, inner, heads),
    }
    heads = 48  # enough to average out the luck of one matrix
    query, key = torch.randn(heads, 30, query_size), torch.randn(heads, 30, key_size)
    # Not the variance over the pairs of a head: additive scores differ mostly between queries.
    assert float(makers[name](heads)(query, key).detach().square().mean()) == pytest.approx(
        1, abs=0.2
    )


def attentions(score: str, width: int, heads: int) -> list[MultiHeadAttention]:
    """The attentions of a fresh model; several, to average out the luck of one."""
    sizes = {
        "width": width,
        "heads": heads,
        "encoder_layers": 6,
        "decoder_layers": 1,
        "feed_forward": 8,
    }
    model = Transformer(ModelConfig.model_validate(sizes | {"score": score}), 9, 9)
    return [layer.self_attention for layer in model.encoder]


def first_scores(attention: MultiHeadAttention, keys: int = 60) -> Tensor:
    """Scores of queries and keys from sequences of variance one."""
    width = attention.query.in_features
    query, memory = torch.randn(4, 50, width), torch.randn(4, keys, width)
    queries = attention.query(query).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
    return attention.score(queries, attention.project(memory, memory).keys)


def first_variance(score: str, width: int) -> float:
    return statistics.mean(
        variance(first_scores(attention)) for attention in attentions(score, width, 4)
    )


@pytest.mark.parametrize("score", [name for name in SCORES if name != "dot"])
def test_a_model_s_first_scores_have_variance_one_at_every_width(score: str) -> None:
    torch.manual_seed(5)
    for width in (64, 512):
        assert first_variance(score, width) == pytest.approx(1, abs=0.25), width


def test_a_model_s_first_plain_dots_grow_with_the_width() -> None:
    torch.manual_seed(6)
    for width in (64, 512):
        assert first_variance("dot", width) == pytest.approx(width / 4, rel=0.25)


def test_an_attention_by_itself_starts_alike_at_every_width_but_for_plain_dots() -> None:
    torch.manual_seed(9)
    for score in SCORES:
        narrow, wide = (
            statistics.mean(
                variance(first_scores(MultiHeadAttention(width, 4, score=score))) for _ in range(6)
            )
            for width in (64, 512)
        )
        assert wide / narrow == pytest.approx(512 / 64 if score == "dot" else 1, rel=0.3), score


def test_unscaled_scores_are_plain_dots_of_smaller_queries() -> None:
    torch.manual_seed(7)
    for width in (64, 512):
        unscaled, plain = attentions("unscaled", width, 4)[0], attentions("dot", width, 4)[0]
        assert unscaled.score is dot
        ratio = float(plain.query.weight.detach().std() / unscaled.query.weight.detach().std())
        assert ratio == pytest.approx(math.sqrt(width / 4), rel=0.05)


def sensitivity(scores: Tensor) -> float:
    """max |∂p/∂s| = p (1 − p) of the weights p = softmax(s) of a query; median over queries."""
    weights = scores.detach().softmax(-1)
    return float((weights * (1 - weights)).amax(-1).median())


def test_why_the_paper_divides_by_the_root_of_d() -> None:
    """Large dots push the softmax to where it has next to no gradient (section 3.2.1)."""
    torch.manual_seed(8)
    queries, keys = {}, {}
    for size in (4, 64, 512):
        queries[size], keys[size] = torch.randn(300, size), torch.randn(40, size)
        assert variance(dot(queries[size], keys[size])) == pytest.approx(size, rel=0.15)
    small, large = (sensitivity(scaled_dot(queries[size], keys[size])) for size in (4, 512))
    assert large == pytest.approx(small, rel=0.25)
    assert sensitivity(dot(queries[512], keys[512])) < large / 10
    # The same, as a model meets it: scaled scores, and dots of smaller queries, hold the gradient.
    first = {}
    for score in ("dot", "scaled_dot", "unscaled"):
        first[score] = sensitivity(first_scores(attentions(score, 512, 1)[0]))
    assert first["dot"] < first["scaled_dot"] / 10
    assert first["unscaled"] == pytest.approx(first["scaled_dot"], rel=0.25)


def test_sensitivity_is_the_largest_gradient_of_a_weight_by_its_own_score() -> None:
    scores = drawn(1, 5).requires_grad_()
    slopes = [
        float(torch.autograd.grad(scores.softmax(-1)[0, s], scores)[0][0, s]) for s in range(5)
    ]
    assert sensitivity(scores) == pytest.approx(max(slopes))


def test_a_recipe_can_name_each_score_and_no_other() -> None:
    assert set(typing.get_args(ModelConfig.model_fields["score"].annotation)) == set(SCORES)
