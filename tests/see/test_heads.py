"""Charts of heads: each figure at its layer and head, and the aligner framed."""

import math

import pytest

from seq2see.errors import InputError
from seq2see.recipe.schema import DataConfig
from seq2see.see import heads
from seq2see.see.head_statistics import HeadStatistics, caption_statistics
from seq2see.see.numbers import numbers_of
from seq2see.tasks.translator import Translator
from seq2see.text import captions


def statistic(layer: str, head: int, rate: float | None, entropy: float = 1.5) -> HeadStatistics:
    return HeadStatistics(layer, head, entropy, 2.0, 0.1, 0.2, 0.3, None, rate)


STATISTICS = [
    statistic("encoder.0.self", 0, None, entropy=0.25),
    statistic("encoder.0.self", 1, None),
    statistic("encoder.0.self", 2, None),
    statistic("decoder.0.cross", 0, 0.5),
    statistic("decoder.1.cross", 0, 0.4),
    statistic("decoder.0.cross", 1, 0.6),
    statistic("decoder.1.cross", 1, 0.125),
    statistic("decoder.0.cross", 2, 0.7),
    statistic("decoder.1.cross", 2, 0.8),
]


def test_maps_are_layers_by_heads_and_the_aligner_is_framed() -> None:
    figure = heads.draw(STATISTICS)
    assert figure.get_suptitle().endswith(
        "cross-attention, layer 2, head 2, alignment error rate 12.5%"
    )
    tables = numbers_of(figure)
    assert [table.caption.strip() for table in tables] == [
        *["Entropy", "Mean distance", "Previous token", "Same position", "Next token"] * 2,
        "Alignment error",
    ]
    assert tables[0].rows == [["1", "0.25", "1.5", "1.5"]]
    assert tables[-1].head == ["layer ↓  head →", "1", "2", "3"]
    assert tables[-1].rows == [["1", "0.5", "0.6", "0.7"], ["2", "0.4", "0.125", "0.8"]]
    framed = [axes for axes in figure.axes if axes.lines]
    (frame,) = framed[0].lines
    assert len(framed) == 1 and {*frame.get_xdata()} == {0.5, 1.5} == {*frame.get_ydata()}


def test_without_gold_links_there_is_no_aligner() -> None:
    assert heads.aligner(STATISTICS[:3]) is None
    assert heads.draw(STATISTICS[:3]).get_suptitle() == "What each head does"
    assert len(heads.report(STATISTICS[:3])) == 4
    assert heads.report(STATISTICS)[-1] == (
        "the aligner: cross-attention, layer 2, head 2, alignment error rate 12.5%"
    )


def test_captions_are_turned_for_a_model_of_the_other_direction(tiny: Translator) -> None:
    forward = heads.captions_for(DataConfig(train="x", source="de", target="en"), 3)
    turned = heads.captions_for(DataConfig(train="x", source="en", target="de"), 3)
    assert forward == captions.generate("test", 3)
    for one, other in zip(forward, turned, strict=True):
        assert (one.source, one.target) == (other.target, other.source)
        assert {*one.alignment} == {(j, i) for i, j in other.alignment}
    with pytest.raises(
        InputError, match=r"^the captions are in two of de, en, zh, the model is fr → en"
    ):
        heads.captions_for(DataConfig(train="x", source="fr", target="en"), 3)
    measured = caption_statistics(tiny, turned)
    assert math.isfinite(heads.aligner(measured).error_rate)  # type: ignore[union-attr, arg-type]
    heads.draw(measured).draw_without_rendering()
