"""Position figures: dot products depend on distance alone; learned tables are drawn as they are."""

from pathlib import Path

import pytest
import torch

from seq2see.errors import InputError
from seq2see.see import positions
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator


def spread(products: torch.Tensor) -> float:
    """Largest difference between pairs of positions at the same distance."""
    length = len(products)
    return max(
        (d.max() - d.min()).item()
        for d in (products.diagonal(k) for k in range(1 - length, length))
    )


def test_products_depend_on_the_distance_alone() -> None:
    query, key = torch.randn(2, 14, dtype=torch.float64)
    for products in (
        positions.sinusoidal_products(30, 10),
        positions.rotary_products(30, query, key),
    ):
        assert products.shape == (30, 30) and products.std() > 0.1
        assert spread(products) < 1e-9


def test_sinusoidal_products_are_symmetric_and_largest_at_distance_zero() -> None:
    products = positions.sinusoidal_products(50, 16)
    assert products.diagonal().allclose(torch.tensor(8.0, dtype=torch.float64))
    assert (products - products.T).abs().max() < 1e-12
    assert (products[0, 1:] < products[0, 0]).all()


def test_rotary_products_distinguish_before_from_after() -> None:
    query, key = torch.eye(2, dtype=torch.float64)
    products = positions.rotary_products(5, query, key)
    assert products[1, 2] == pytest.approx(-products[2, 1]) and products[1, 2] != 0


def test_a_model_without_learned_positions_is_refused(translator: Translator) -> None:
    with pytest.raises(
        InputError, match=r'^m: model\.positions is "sinusoidal"; only "learned" ones'
    ):
        positions.learned(translator, Path("m"))


def test_a_learned_table_is_drawn_as_it_is(learned: Path) -> None:
    model = load(learned, "cpu")
    tables = positions.learned(model, learned)
    assert list(tables) == ["source", "target"]
    assert all(table.shape == (20, model.recipe.model.width) for table in tables.values())
    figure = positions.draw(12, 6, tables)
    panels = [axes for axes in figure.subfigs[2].axes if axes.images]
    assert torch.equal(
        torch.tensor(panels[0].images[0].get_array()),
        tables["source"].T / tables["source"].abs().max(),
    )
    assert torch.equal(
        torch.tensor(panels[3].images[0].get_array()), positions.cosine_similarity(tables["target"])
    )
    assert positions.cosine_similarity(tables["source"]).diagonal().allclose(torch.ones(20))
