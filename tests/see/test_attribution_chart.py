"""The figure of an attribution: values, tokens, axes and colours."""

import pytest
import torch

from seq2see.see import attribution_chart, figures
from seq2see.see.attribution import METHODS, Attribution

VALUES = torch.tensor([[0.5, -2.0, 0.1], [0.25, 1.0, 0.0]])
SOURCE, TARGET = ["▁drei", "▁$1$", "</s>"], ["▁three", "</s>"]


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_target_tokens_and_columns_source_tokens(method: str) -> None:
    signed = METHODS[method].signed
    values = VALUES if signed else VALUES.abs()
    figure = attribution_chart.draw(Attribution(method, "drei", "three", SOURCE, TARGET, values))
    axes, bar = figure.axes
    (image,) = axes.images
    assert image.get_array().tolist() == values.tolist()
    assert [label.get_text() for label in axes.get_xticklabels()] == figures.shown(SOURCE)
    assert [label.get_text() for label in axes.get_yticklabels()] == figures.shown(TARGET)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source token", "target token")
    assert image.get_clim() == ((-2.0, 2.0) if signed else (0.0, 2.0))
    assert bar.get_ylabel() == METHODS[method].unit


def test_nothing_attributed_is_drawn_blank() -> None:
    nothing = Attribution("erasure", "drei", "three", SOURCE, TARGET, torch.zeros(2, 3))
    (image,) = attribution_chart.draw(nothing).axes[0].images
    low, high = image.get_clim()
    assert low < 0 < high
