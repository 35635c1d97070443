"""Decoding: against exhaustive search, a plain beam search, forced decoding, and one sentence at a time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seq2see.batches import Ids, collate, pad
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import beam_search, greedy, limits, search
from seq2see.errors import WorkError
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import BEGIN, END, PAD

SOURCES: list[Ids] = [[5, 4], [6], [4, 4, 6, 5, 5, 6], [5, 6, 4], [6]]
few = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class Row:
    """The state of the table model: what each row translates and the last id it has read."""

    sentence: Tensor  # (B,)
    last: Tensor  # (B,)

    def select(self, rows: Tensor) -> "Row":
        return Row(self.sentence[rows], self.last[rows])


@dataclass
class TableModel:
    """log p(next | source, last two ids), drawn at random: a model whose every sequence can be listed."""

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

    def limit(self, tokens: int) -> int:
        return self.longest


def allowed(prefix: Ids, size: int, how: Short) -> list[int]:
    """The ids that may follow: never <s> or padding, no </s> too early, nothing else at the limit."""
    if len(prefix) + 1 >= how.longest:
        return [END]
    ids = [id for id in range(size) if id not in (BEGIN, PAD, END)]
    return ids if len(prefix) < how.min_length else [*ids, END]


def hypothesis(ids: Ids, log_probability: float, how: Search) -> Hypothesis:
    return Hypothesis(ids, log_probability, log_probability / how.penalty(len(ids) + 1))


def exhaustive(model: TableModel, source: Ids, how: Short) -> list[Hypothesis]:
    """Every sequence up to the limit, best first."""

    def continuations(prefix: Ids, total: float) -> Iterator[Hypothesis]:
        log_p = model.log_p(source, prefix)
        for id in allowed(prefix, model.size, how):
            if id == END:
                yield hypothesis(prefix, total + float(log_p[END]), how)
            else:
                yield from continuations([*prefix, id], total + float(log_p[id]))

    return sorted(continuations([], 0.0), key=lambda each: -each.score)


def plain_beam(
    model: TableModel, source: Ids, how: Short, *, to_the_end: bool = False
) -> list[Hypothesis]:
    """Beam search with lists, one sentence at a time, as the docstring of `beam_search` tells it."""
    open_: list[tuple[float, Ids]] = [(0.0, [])]
    ended: list[Hypothesis] = []
    for position in range(1, how.longest + 1):
        candidates = []
        for total, prefix in open_:
            log_p = model.log_p(source, prefix)
            candidates += [
                (total + float(log_p[id]), prefix, id) for id in allowed(prefix, model.size, how)
            ]
        candidates.sort(key=lambda each: -each[0])
        ended += [
            hypothesis(prefix, total, how)
            for total, prefix, id in candidates[: how.beam]
            if id == END
        ]
        ended.sort(key=lambda each: -each.score)
        open_ = [(total, [*prefix, id]) for total, prefix, id in candidates if id != END][
            : how.beam
        ]
        if not open_:
            break
        settled = (
            len(ended) >= how.beam
            and open_[0][0] / how.penalty(position) <= ended[how.beam - 1].score
        )
        if settled and not to_the_end:
            break
    return ended[: how.beam]


def same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [each.ids for each in found] == [each.ids for each in expected]
    for left, right in zip(found, expected, strict=True):
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
    how = Short(beam=32, length_penalty=alpha, min_length=min_length, longest=longest)
    found = beam_search(model, sources_of([5, 4], [6]), how)
    for source, hypotheses in zip([[5, 4], [6]], found, strict=True):
        same(hypotheses, exhaustive(model, source, how))


@few
@given(
    seed=seeds,
    beam=st.integers(1, 5),
    alpha=st.floats(0, 2),
    min_length=st.integers(0, 3),
    end=st.floats(-2, 3),
)
def test_beam_search_is_the_plain_one_for_every_sentence_of_the_batch(
    seed: int, beam: int, alpha: float, min_length: int, end: float
) -> None:
    model = TableModel(seed, end=end)
    how = Short(beam=beam, length_penalty=alpha, min_length=min_length, longest=7)
    found = beam_search(model, sources_of(*SOURCES), how)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        same(hypotheses, plain_beam(model, source, how))
        assert hypotheses[0].score <= exhaustive(model, source, how)[0].score + 1e-9


@few
@given(seed=seeds, beam=st.integers(1, 5), end=st.floats(-2, 3))
def test_without_a_length_penalty_stopping_early_loses_nothing(
    seed: int, beam: int, end: float
) -> None:
    """A log-probability only falls as a hypothesis grows, so an open one that is behind stays behind."""
    model = TableModel(seed, end=end)
    how = Short(beam=beam, length_penalty=0.0, longest=7)
    found = beam_search(model, sources_of(*SOURCES), how)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        same(hypotheses, plain_beam(model, source, how, to_the_end=True))


@few
@given(seed=seeds, alpha=st.floats(0, 2), min_length=st.integers(0, 4), end=st.floats(-2, 3))
def test_beam_one_is_greedy(seed: int, alpha: float, min_length: int, end: float) -> None:
    model, how = TableModel(seed, end=end), Search(1, alpha, 1.5, min_length)
    source = sources_of(*SOURCES)
    for left, right in zip(
        beam_search(model, source, how), greedy(model, source, how), strict=True
    ):
        same(left, right)


@few
@given(seed=seeds, end=st.floats(-2, 3))
def test_greedy_takes_the_likeliest_id_each_time(seed: int, end: float) -> None:
    model, how = TableModel(seed, end=end), Search(beam=1)
    for source, (found,) in zip(SOURCES, greedy(model, sources_of(*SOURCES), how), strict=True):
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
        same([found], [hypothesis(ids, total, how)])


@few
@given(seed=seeds, beam=st.integers(2, 5), alpha=st.floats(0, 2), end=st.floats(-3, 3))
def test_the_n_best_are_distinct_sorted_ended_and_free_of_specials(
    seed: int, beam: int, alpha: float, end: float
) -> None:
    how = Search(beam, alpha, 1.5, min_length=2)
    for source, found in zip(
        SOURCES, search(TableModel(seed, end=end), SOURCES, how, n_best=beam), strict=True
    ):
        assert len(found) == beam
        assert len({tuple(each.ids) for each in found}) == beam
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        for each in found:
            assert not {BEGIN, END, PAD} & set(each.ids)
            assert 2 <= len(each.ids) < math.ceil(1.5 * len(source)) + 10
            assert math.isfinite(each.log_probability)
            assert each.score == pytest.approx(
                each.log_probability / how.penalty(len(each.ids) + 1), abs=1e-12
            )


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_never_ends_is_ended_at_the_limit_of_each_sentence(beam: int) -> None:
    how = Search(beam=beam, max_ratio=1.5)
    for source, found in zip(
        SOURCES, search(TableModel(3, end=-50.0), SOURCES, how, n_best=beam), strict=True
    ):
        assert [len(each.ids) + 1 for each in found] == [math.ceil(1.5 * len(source)) + 10] * beam
        assert all(each.log_probability < -50 for each in found)  # what it was made to say counts


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_would_end_at_once_goes_on_to_the_least_length(beam: int) -> None:
    for min_length in (
        0,
        4,
        30,
    ):  # 30 is more than the limit of every source here: the least length goes before
        how = Search(beam=beam, min_length=min_length)
        found = search(TableModel(3, end=50.0), SOURCES, how)
        assert [len(hypotheses[0].ids) for hypotheses in found] == [min_length] * len(SOURCES)
        assert all(math.isfinite(hypotheses[0].score) for hypotheses in found)


def test_limits_count_source_tokens_without_end_and_padding() -> None:
    found = limits(sources_of(*SOURCES), Search(max_ratio=1.5))
    assert torch.equal(
        limits(sources_of(*SOURCES), Search(max_ratio=1.5, most=13)), found.clamp(max=13)
    )
    assert found.tolist() == [13, 12, 19, 15, 12]
    assert found.dtype == torch.long


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
            how = Short(beam=32, length_penalty=alpha, longest=5)
            lengths.append(len(beam_search(model, sources_of([5]), how)[0][0].ids))
        assert lengths == sorted(lengths)


@pytest.mark.parametrize("beam", [1, 3])
def test_finished_sentences_leave_the_computation(beam: int) -> None:
    how = Search(beam=beam)
    run = greedy if beam == 1 else beam_search
    steps = []
    for source in SOURCES:
        alone = TableModel(11, end=1.0)
        run(alone, sources_of(source), how)
        assert set(alone.rows) == {beam}
        steps.append(len(alone.rows))
    assert len(set(steps)) > 1  # or there is nothing to see
    together = TableModel(11, end=1.0)
    run(together, sources_of(*SOURCES), how)
    assert together.rows == [beam * sum(count > t for count in steps) for t in range(max(steps))]


@pytest.mark.parametrize(
    ("beam", "tokens", "sentences"),
    [(1, 1, 1), (1, 20, 3), (1, 8192, 5), (3, 1, 1), (3, 20, 2), (3, 8192, 5)],
)
def test_results_stand_in_the_order_of_the_input_however_it_is_cut(
    beam: int, tokens: int, sentences: int
) -> None:
    how = Search(beam=beam)
    expected = [search(TableModel(11), [source], how, n_best=beam)[0] for source in SOURCES]
    model = TableModel(11)
    for found, one in zip(
        search(model, SOURCES, how, n_best=beam, batch_tokens=tokens), expected, strict=True
    ):
        same(found, one)
    assert max(model.rows) == beam * sentences


def test_nothing_in_nothing_out() -> None:
    model = TableModel(1)
    assert search(model, [], Search()) == []
    assert model.rows == []


@pytest.mark.parametrize("beam", [1, 3])
def test_a_source_without_a_token_is_searched_too(beam: int) -> None:
    (found,) = search(TableModel(1), [[]], Search(beam=beam))
    assert len(found) == 1 and len(found[0].ids) < 10


@pytest.mark.parametrize("n_best", [0, 4])
def test_n_best_must_fit_into_the_beam(n_best: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^n_best \({n_best}\) must be between 1 and the beam \(3\)$"
    ):
        search(TableModel(1), SOURCES, Search(beam=3), n_best)


WORDS: list[Ids] = [
    [5, 9, 8, 8, 4, 15],
    [7],
    [4, 11, 6],
    [12, 12, 13, 5],
    [10, 4],
    [14, 6, 7, 8, 9, 10, 11, 12, 13],
]


def transformer(norm: str = "pre") -> Transformer:
    torch.manual_seed(5)
    sizes = {
        "width": 12,
        "heads": 3,
        "feed_forward": 20,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "norm": norm,
    }
    model = Transformer(ModelConfig.model_validate(sizes), 16, 18).double().eval()
    with torch.no_grad():  # surer of itself than fresh weights are, and about to end now and then
        model.output.weight.mul_(4)
        model.output.bias[END] = 1.5
    return model


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_companions_do_not_change_a_translation(beam: int, norm: str) -> None:
    model, how = transformer(norm), Search(beam=beam)
    together = search(model, WORDS, how, n_best=beam)
    assert len({len(found[0].ids) for found in together}) > 1
    for source, found in zip(WORDS, together, strict=True):
        same(found, search(model, [source], how, n_best=beam)[0])


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_log_probabilities_are_those_of_forced_decoding(beam: int, norm: str) -> None:
    model = transformer(norm)
    for source, found in zip(
        WORDS, search(model, WORDS, Search(beam=beam), n_best=beam), strict=True
    ):
        for each in found:
            batch = collate([(source, each.ids)], [0])
            with torch.no_grad():
                log_p = model(batch).log_softmax(-1).gather(-1, batch.target_out[..., None])
            assert each.log_probability == pytest.approx(float(log_p.sum()), abs=1e-9)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_broken_model_is_named_as_such(beam: int) -> None:
    model = Transformer(
        ModelConfig(width=8, heads=2, encoder_layers=1, decoder_layers=1), 9, 9
    ).eval()
    torch.nn.init.constant_(model.output.weight, float("nan"))
    with pytest.raises(WorkError, match="NaN"):
        search(model, [[4, 5]], Search(beam))
