"""Attention of image models: properties of the rollout, and a panel for every head."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from seq2see.models.reduced import with_pruning
from seq2see.see import pictures
from seq2see.tasks.one_sided import Labelled
from seq2see.tasks.picture_model import PictureExplanation
from seq2see.tasks.table import load_pictures

TOKENS, HEADS, GRID = 7, 3, (2, 3)


def attention(layers: int, tokens: int = TOKENS) -> list[Tensor]:
    torch.manual_seed(layers)
    return [torch.randn(HEADS, tokens, tokens).double().mul(2).softmax(-1) for _ in range(layers)]


def test_rows_of_a_rollout_sum_to_one() -> None:
    rolled = pictures.rollout(attention(4))
    assert rolled.shape == (TOKENS, TOKENS) and (rolled >= 0).all()
    torch.testing.assert_close(rolled.sum(-1), torch.ones(TOKENS).double())


def test_the_rollout_of_identities_is_the_identity() -> None:
    identity = torch.eye(TOKENS).expand(HEADS, -1, -1)
    assert torch.equal(pictures.rollout([identity] * 5), torch.eye(TOKENS))


def test_one_layer_is_half_the_mean_of_its_heads_and_half_the_residual() -> None:
    (weights,) = attention(1)
    torch.testing.assert_close(
        pictures.rollout([weights]), (weights.mean(0) + torch.eye(TOKENS)) / 2
    )


def test_layers_are_multiplied_last_layer_first() -> None:
    """Two layers of attention to the next token: a quarter comes from the next but one."""
    following = torch.eye(TOKENS).roll(1, dims=1).expand(HEADS, -1, -1)
    rolled = pictures.rollout([following, following])
    assert rolled[0].tolist() == [0.25, 0.5, 0.25, 0, 0, 0, 0]
    first, second = attention(2)
    mixed = [(layer.mean(0) + torch.eye(TOKENS)) / 2 for layer in (first, second)]
    torch.testing.assert_close(pictures.rollout([first, second]), mixed[1] @ mixed[0])


def test_patch_shares_come_from_the_class_token_or_the_mean_of_all() -> None:
    (weights,) = attention(1)
    shares = pictures.on_patches(weights, GRID)
    assert (
        shares.shape == (HEADS, *GRID)
        and shares[1, 1, 2] == weights[1, 0, 6]
        and shares[1, 0, 0] == weights[1, 0, 1]
    )
    (weights,) = attention(1, tokens=6)
    shares = pictures.on_patches(weights, GRID)
    torch.testing.assert_close(shares.sum((1, 2)), torch.ones(HEADS).double())
    assert shares[2, 1, 0] == pytest.approx(float(weights[2, :, 3].mean()))


def test_pruned_tokens_are_left_out_of_means() -> None:
    first = torch.tensor(
        [[[0.2, 0.4, 0.4], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]]
    )  # one head, three patches
    second = torch.tensor(
        [[[0.5, 0.5, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 0.0]]]
    )  # the third is gone
    rolled = pictures.rollout([first, second])
    torch.testing.assert_close(rolled.sum(-1), torch.tensor([1.0, 1.0, 0.0]))
    torch.testing.assert_close(pictures.on_patches(rolled, (1, 3)).sum(), torch.tensor(1.0))
    torch.testing.assert_close(
        pictures.on_patches(second, (1, 3)), torch.tensor([[[0.3, 0.7, 0.0]]])
    )


@pytest.mark.parametrize(("channels", "tokens"), [(1, 7), (3, 6)])
def test_the_figure_has_panels_for_the_input_the_rollout_and_every_head(
    channels: int, tokens: int
) -> None:
    pixels = torch.randint(0, 256, (channels, 8, 12), dtype=torch.uint8)
    prediction = Labelled("a $cat", {"a $cat": 0.9, "dog": 0.1})
    explanation = PictureExplanation(pixels, prediction, attention(2, tokens), GRID)
    figure = pictures.draw(explanation)
    titles = [axes.get_title().partition("\n")[0] for axes in figure.axes if axes.get_title()]
    heads = [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3)]
    assert titles == ["input", "rollout", *heads]
    queries = "the class token" if tokens == 7 else "all patches"
    title, subtitle = figure.get_suptitle().splitlines()
    assert title == "a $cat (90.0%)" and subtitle.endswith(f"attention of {queries}")
    heat = figure.axes[1].images[1].get_array()
    assert heat is not None and heat.shape == GRID


def test_shares_are_zero_when_every_patch_is_pruned(pictured: Path) -> None:
    opened = load_pictures(pictured, "cpu")
    # Everything but the class token is pruned after the first layer.
    opened.model = with_pruning(opened.model, [99.0, 99.0])
    figure = pictures.draw(opened.explain(pictured.parent / "digit.png"))
    figure.draw_without_rendering()
    assert figure.axes[-1].get_title() == "layer 2, head 2\nat most 0% per patch"
    assert (figure.axes[-1].images[1].get_alpha() == 0).all()  # type: ignore[union-attr]
