"""Search with a Transformer: companions do not matter, scores are those of forced decoding."""

import pytest
import torch

from seq2see.batches import Ids, collate
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import search
from seq2see.errors import WorkError
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.specials import END

WORDS: list[Ids] = [
    [5, 9, 8, 8, 4, 15],
    [7],
    [4, 11, 6],
    [12, 12, 13, 5],
    [10, 4],
    [14, 6, 7, 8, 9, 10, 11, 12, 13],
]


def same(hypotheses: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [h.ids for h in hypotheses] == [h.ids for h in expected]
    for left, right in zip(hypotheses, expected, strict=True):
        assert left.log_probability == pytest.approx(right.log_probability, abs=1e-9)
        assert left.score == pytest.approx(right.score, abs=1e-9)


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
    model, config = transformer(norm), Search(beam=beam)
    together = search(model, WORDS, config, n_best=beam)
    assert len({len(hypotheses[0].ids) for hypotheses in together}) > 1
    for source, hypotheses in zip(WORDS, together, strict=True):
        same(hypotheses, search(model, [source], config, n_best=beam)[0])


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_log_probabilities_are_those_of_forced_decoding(beam: int, norm: str) -> None:
    model = transformer(norm)
    for source, hypotheses in zip(
        WORDS, search(model, WORDS, Search(beam=beam), n_best=beam), strict=True
    ):
        for h in hypotheses:
            batch = collate([(source, h.ids)], [0])
            with torch.no_grad():
                log_p = model(batch).log_softmax(-1).gather(-1, batch.target_out[..., None])
            assert h.log_probability == pytest.approx(float(log_p.sum()), abs=1e-9)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_broken_model_is_named_as_such(beam: int) -> None:
    model = Transformer(
        ModelConfig(width=8, heads=2, encoder_layers=1, decoder_layers=1), 9, 9
    ).eval()
    torch.nn.init.constant_(model.output.weight, float("nan"))
    with pytest.raises(WorkError, match="NaN"):
        search(model, [[4, 5]], Search(beam))
