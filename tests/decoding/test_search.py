"""Search against exhaustive search, a plain beam search and single sentences."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.batches import Ids, pad
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import beam_search, greedy, limits, search
from seq2see.errors import InputError
from seq2see.text.specials import BEGIN, END, PAD, UNKNOWN

SOURCES: list[Ids] = [[5, 4], [6], [4, 4, 6, 5, 5, 6], [5, 6, 4], [6]]


few = settings(deadline=None, max_examples=30)


seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class Row:
    """The state of the table model: the sentence of each row and the last id it has read."""

    sentence: Tensor  # (B,)
    last: Tensor  # (B,)

    def select(self, rows: Tensor) -> "Row":
        return Row(self.sentence[rows], self.last[rows])


@dataclass
class TableModel:
    """log p(next | source, last two ids), drawn at random: small enough to list every sequence."""

    seed: int
    size: int = 6
    end: float = 0.0  # added to the logit of </s>
    rows: list[int] = field(default_factory=list)  # how many each step has seen

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        shape = (5, self.size, self.size, self.size)
        self.table = 2 * torch.randn(shape, dtype=torch.float64, generator=generator)
        self.table[..., END] += self.end

    def encode(self, source: Tensor) -> Tensor:
        return (source * (source != PAD)).sum(1) % 5

    def start(self, memory: Tensor) -> Row:
        return Row(memory, torch.full_like(memory, BEGIN))

    def step(self, state: Row, ids: Tensor) -> tuple[Tensor, Row]:
        assert ids.shape == (len(state.last), 1)
        self.rows.append(len(ids))
        return self.table[state.sentence, state.last, ids[:, 0]][:, None], Row(
            state.sentence, ids[:, 0]
        )

    def log_p(self, source: Ids, prefix: Ids) -> Tensor:
        sentence = (sum(source) + END) % 5
        last, now = [BEGIN, BEGIN, *prefix][-2:]
        return self.table[sentence, last, now].log_softmax(-1)


@dataclass(frozen=True)
class Short(Search):
    """A search with a limit of its own, so that all sequences can be listed."""

    longest: int = 4  # with </s>

    def limit(self, tokens: int, forced: int = 0) -> int:
        return self.longest


def allowed(prefix: Ids, size: int, config: Short) -> list[int]:
    """Ids that may follow: never <s> or padding, no </s> too early, only </s> at the limit."""
    if len(prefix) + 1 >= config.longest:
        return [END]
    ids = [id for id in range(size) if id not in (BEGIN, PAD, END)]
    return ids if len(prefix) < config.min_length else [*ids, END]


def hypothesis(ids: Ids, log_probability: float, config: Search) -> Hypothesis:
    return Hypothesis(ids, log_probability, log_probability / config.penalty(len(ids) + 1))


def exhaustive(model: TableModel, source: Ids, config: Short) -> list[Hypothesis]:
    """Every sequence up to the limit, best first."""

    def continuations(prefix: Ids, total: float) -> Iterator[Hypothesis]:
        log_p = model.log_p(source, prefix)
        for id in allowed(prefix, model.size, config):
            if id == END:
                yield hypothesis(prefix, total + float(log_p[END]), config)
            else:
                yield from continuations([*prefix, id], total + float(log_p[id]))

    return sorted(continuations([], 0.0), key=lambda h: -h.score)


def plain_beam(
    model: TableModel, source: Ids, config: Short, *, to_the_end: bool = False
) -> list[Hypothesis]:
    """Beam search with lists, one sentence at a time, after the docstring of `beam_search`."""
    open_: list[tuple[float, Ids]] = [(0.0, [])]
    ended: list[Hypothesis] = []
    for position in range(1, config.longest + 1):
        candidates = []
        for total, prefix in open_:
            log_p = model.log_p(source, prefix)
            candidates += [
                (total + float(log_p[id]), prefix, id) for id in allowed(prefix, model.size, config)
            ]
        candidates.sort(key=lambda candidate: -candidate[0])
        ended += [
            hypothesis(prefix, total, config)
            for total, prefix, id in candidates[: config.beam]
            if id == END
        ]
        ended.sort(key=lambda h: -h.score)
        open_ = [(total, [*prefix, id]) for total, prefix, id in candidates if id != END][
            : config.beam
        ]
        if not open_:
            break
        settled = (
            len(ended) >= config.beam
            and open_[0][0] / config.penalty(position) <= ended[config.beam - 1].score
        )
        if settled and not to_the_end:
            break
    return ended[: config.beam]


def same(hypotheses: list[Hypothesis], expected: list[Hypothesis]) -> None:
    for left, right in zip(hypotheses, expected, strict=True):
        # The same transitions in another order are an exact tie of the table's probabilities.
        assert left.ids == right.ids or sorted(left.ids) == sorted(right.ids)
        assert left.log_probability == pytest.approx(right.log_probability, abs=1e-9)
        assert left.score == pytest.approx(right.score, abs=1e-9)


def sources_of(*sources: Ids) -> Tensor:
    return pad([[*source, END] for source in sources])


@few
@given(seed=seeds, alpha=st.floats(0, 2), min_length=st.integers(0, 2), longest=st.integers(3, 5))
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(
    seed: int, alpha: float, min_length: int, longest: int
) -> None:
    model = TableModel(seed, size=5)  # two ids that do not end: at most 31 sequences of 5
    config = Short(beam=32, length_penalty=alpha, min_length=min_length, longest=longest)
    results = beam_search(model, sources_of([5, 4], [6]), config)
    for source, hypotheses in zip([[5, 4], [6]], results, strict=True):
        same(hypotheses, exhaustive(model, source, config))


@few
@given(seed=seeds, prefix=st.lists(st.integers(4, 5), max_size=3))
def test_a_prefix_leaves_the_best_of_the_hypotheses_that_begin_with_it(
    seed: int, prefix: Ids
) -> None:
    model = TableModel(seed)
    config = Short(beam=64, longest=5)
    sources: list[Ids] = [[5, 4], [6]]
    forced, free = search(model, sources, config, 9, prefixes=[prefix, []])
    begins = [h for h in exhaustive(model, sources[0], config) if h.ids[: len(prefix)] == prefix]
    same(forced, begins[: len(forced)])
    same(free, exhaustive(model, sources[1], config)[: len(free)])
    greedily = search(model, sources, Short(beam=1, longest=5), prefixes=[prefix, []])
    assert greedily[0][0].ids[: len(prefix)] == prefix
    assert greedily[1] == search(model, sources[1:], Short(beam=1, longest=5))[0]


@few
@given(seed=seeds, forbidden=st.integers(UNKNOWN, 5), beam=st.sampled_from([1, 64]))
def test_forbidden_tokens_leave_the_best_of_the_hypotheses_without_them(
    seed: int, forbidden: int, beam: int
) -> None:
    model = TableModel(seed)
    config = Short(beam=beam, longest=5, forbidden=(forbidden,))
    (results,) = search(model, [[5, 4]], config, beam)
    assert all(forbidden not in hypothesis.ids for hypothesis in results)
    if beam > 1:  # wide enough for all sequences
        every = exhaustive(model, [5, 4], config)
        same(results, [h for h in every if forbidden not in h.ids][: len(results)])


def test_a_prefix_must_leave_a_position() -> None:
    with pytest.raises(InputError, match=r"prefixes\[1\]: 4 tokens; the model takes fewer than 4"):
        search(TableModel(1), [[5], [6]], Search(most=4), prefixes=[[], [4, 4, 4, 4]])


@few
@given(
    seed=seeds,
    beam=st.integers(1, 5),
    alpha=st.floats(0, 2),
    min_length=st.integers(0, 3),
    end=st.floats(-2, 3),
)
@example(seed=512, beam=4, alpha=0.0, min_length=1, end=0.0)
def test_beam_search_is_the_plain_one_for_every_sentence_of_the_batch(
    seed: int, beam: int, alpha: float, min_length: int, end: float
) -> None:
    model = TableModel(seed, end=end)
    config = Short(beam=beam, length_penalty=alpha, min_length=min_length, longest=7)
    results = beam_search(model, sources_of(*SOURCES), config)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        same(hypotheses, plain_beam(model, source, config))
        assert hypotheses[0].score <= exhaustive(model, source, config)[0].score + 1e-9


@few
@given(seed=seeds, beam=st.integers(1, 5), end=st.floats(-2, 3))
def test_without_a_length_penalty_stopping_early_loses_nothing(
    seed: int, beam: int, end: float
) -> None:
    """A log-probability only falls with length, so an open hypothesis never catches up."""
    model = TableModel(seed, end=end)
    config = Short(beam=beam, length_penalty=0.0, longest=7)
    results = beam_search(model, sources_of(*SOURCES), config)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        same(hypotheses, plain_beam(model, source, config, to_the_end=True))


@few
@given(seed=seeds, alpha=st.floats(0, 2), min_length=st.integers(0, 4), end=st.floats(-2, 3))
def test_beam_one_is_greedy(seed: int, alpha: float, min_length: int, end: float) -> None:
    model, config = TableModel(seed, end=end), Search(1, alpha, 1.5, min_length)
    source = sources_of(*SOURCES)
    for left, right in zip(
        beam_search(model, source, config), greedy(model, source, config), strict=True
    ):
        same(left, right)


@few
@given(seed=seeds, end=st.floats(-2, 3))
def test_greedy_takes_the_likeliest_id_each_time(seed: int, end: float) -> None:
    model, config = TableModel(seed, end=end), Search(beam=1)
    results = greedy(model, sources_of(*SOURCES), config)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        limit = 2 * len(source) + 10
        ids: Ids = []
        total = 0.0
        while True:
            log_p = model.log_p(source, ids)
            choices = allowed(ids, model.size, Short(longest=limit))
            best = max(choices, key=lambda id, log_p=log_p: float(log_p[id]))  # type: ignore[misc]
            total += float(log_p[best])
            if best == END:
                break
            ids.append(best)
        same(hypotheses, [hypothesis(ids, total, config)])


@few
@given(seed=seeds, beam=st.integers(2, 5), alpha=st.floats(0, 2), end=st.floats(-3, 3))
def test_the_n_best_are_distinct_sorted_ended_and_free_of_specials(
    seed: int, beam: int, alpha: float, end: float
) -> None:
    config = Search(beam, alpha, 1.5, min_length=2)
    for source, hypotheses in zip(
        SOURCES, search(TableModel(seed, end=end), SOURCES, config, n_best=beam), strict=True
    ):
        assert len(hypotheses) == beam
        assert len({tuple(h.ids) for h in hypotheses}) == beam
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for h in hypotheses:
            assert not {BEGIN, END, PAD} & set(h.ids)
            assert 2 <= len(h.ids) < math.ceil(1.5 * len(source)) + 10
            assert math.isfinite(h.log_probability)
            assert h.score == pytest.approx(
                h.log_probability / config.penalty(len(h.ids) + 1), abs=1e-12
            )


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_never_ends_is_ended_at_the_limit_of_each_sentence(beam: int) -> None:
    config = Search(beam=beam, max_ratio=1.5)
    for source, hypotheses in zip(
        SOURCES, search(TableModel(3, end=-50.0), SOURCES, config, n_best=beam), strict=True
    ):
        assert [len(h.ids) + 1 for h in hypotheses] == [math.ceil(1.5 * len(source)) + 10] * beam
        assert all(h.log_probability < -50 for h in hypotheses)  # what it was made to say counts


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_would_end_at_once_goes_on_to_the_least_length(beam: int) -> None:
    for min_length in (0, 4, 30):  # 30 exceeds the limit of every source: min_length wins
        config = Search(beam=beam, min_length=min_length)
        results = search(TableModel(3, end=50.0), SOURCES, config)
        assert [len(hypotheses[0].ids) for hypotheses in results] == [min_length] * len(SOURCES)
        assert all(math.isfinite(hypotheses[0].score) for hypotheses in results)


def test_limits_count_source_tokens_without_end_and_padding() -> None:
    limit = limits(sources_of(*SOURCES), Search(max_ratio=1.5))
    assert torch.equal(
        limits(sources_of(*SOURCES), Search(max_ratio=1.5, most=13)), limit.clamp(max=13)
    )
    assert limit.tolist() == [13, 12, 19, 15, 12]
    assert limit.dtype == torch.long


def test_length_penalty_is_that_of_wu_et_al() -> None:
    for length in (1, 4, 19):
        assert Search(length_penalty=0.6).penalty(length) == pytest.approx(
            (5 + length) ** 0.6 / 6**0.6, abs=1e-12
        )
        assert Search(length_penalty=0.0).penalty(length) == 1.0
    assert Search(length_penalty=0.9).penalty(1) == 1.0


def test_a_larger_length_penalty_never_prefers_a_shorter_best() -> None:
    for seed in range(20):
        model, lengths = TableModel(seed, size=5), []
        for alpha in (0.0, 0.5, 1.0, 2.0):
            config = Short(beam=32, length_penalty=alpha, longest=5)
            lengths.append(len(beam_search(model, sources_of([5]), config)[0][0].ids))
        assert lengths == sorted(lengths)


@pytest.mark.parametrize("beam", [1, 3])
def test_finished_sentences_leave_the_computation(beam: int) -> None:
    config = Search(beam=beam)
    run = greedy if beam == 1 else beam_search
    steps = []
    for source in SOURCES:
        alone = TableModel(11, end=1.0)
        run(alone, sources_of(source), config)
        assert set(alone.rows) == {beam}
        steps.append(len(alone.rows))
    assert len(set(steps)) > 1  # or there is nothing to see
    together = TableModel(11, end=1.0)
    run(together, sources_of(*SOURCES), config)
    assert together.rows == [beam * sum(count > t for count in steps) for t in range(max(steps))]


@pytest.mark.parametrize(
    ("beam", "tokens", "sentences"),
    [(1, 1, 1), (1, 20, 3), (1, 8192, 5), (3, 1, 1), (3, 20, 2), (3, 8192, 5)],
)
def test_results_stand_in_the_order_of_the_input_however_it_is_cut(
    beam: int, tokens: int, sentences: int
) -> None:
    config = Search(beam=beam)
    expected = [search(TableModel(11), [source], config, n_best=beam)[0] for source in SOURCES]
    model = TableModel(11)
    for hypotheses, one in zip(
        search(model, SOURCES, config, n_best=beam, batch_tokens=tokens), expected, strict=True
    ):
        same(hypotheses, one)
    assert max(model.rows) == beam * sentences


def test_nothing_in_nothing_out() -> None:
    model = TableModel(1)
    assert search(model, [], Search()) == []
    assert model.rows == []


@pytest.mark.parametrize("beam", [1, 3])
def test_a_source_without_a_token_is_searched_too(beam: int) -> None:
    (hypotheses,) = search(TableModel(1), [[]], Search(beam=beam))
    assert len(hypotheses) == 1 and len(hypotheses[0].ids) < 10


@pytest.mark.parametrize("n_best", [0, 4])
def test_n_best_must_fit_into_the_beam(n_best: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^n_best \({n_best}\) must be between 1 and the beam \(3\)$"
    ):
        search(TableModel(1), SOURCES, Search(beam=3), n_best)
