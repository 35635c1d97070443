"""The benchmark of relations: what counts as shown, and a run of two updates."""

from dataclasses import replace

import layout
import pytest
import torch
from layout import Setting, learn, related, shows, withhold_coordinates

from seq2see.models.diffusion import PromptEncoder
from seq2see.models.unet import UNet
from seq2see.pictures.scenes import Drawing
from seq2see.recipe.schema import ModelConfig

OPPOSITES = {"above": "below", "below": "above", "left of": "right of", "right of": "left of"}


def shown(drawing: Drawing) -> bool:
    return shows(torch.from_numpy(drawing.picture).permute(2, 0, 1).float(), drawing)


def reversed_relation(drawing: Drawing) -> Drawing:
    said = drawing.prompt.said
    said = replace(said, relation=OPPOSITES[str(said.relation)])
    return replace(drawing, prompt=replace(drawing.prompt, said=said))


def test_drawings_show_their_relation_and_not_its_opposite() -> None:
    """Nearly all: a large object right above a small one may lean more across."""
    drawings = related()
    assert len(drawings) == layout.PROMPTS
    assert sum(map(shown, drawings)) > 0.95 * len(drawings)
    assert not any(shown(reversed_relation(drawing)) for drawing in drawings)


def test_coordinates_can_be_withheld() -> None:
    encoder = PromptEncoder(ModelConfig(width=8, heads=2, encoder_layers=1), 6)
    model = UNet(encoder, (3, 8, 8), channels=(8, 8), attention=(1,), heads=2)
    attending = [stage for stage in model.modules() if getattr(stage, "layer", None) is not None]
    assert len(attending) == 3 and all(stage.positions.any() for stage in attending)
    withhold_coordinates(model)
    assert not any(stage.positions.any() for stage in attending)


@pytest.mark.parametrize("known", [True, False])
def test_a_run_tells_how_many_relations_are_known(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "EVERY", 8)
    monkeypatch.setattr(layout, "PROMPTS", 5)
    smaller = ("train.batch_sentences=8", "diffusion.channels=[8, 8]", "data.limit=40")
    setting = Setting("tiny", (*smaller, "diffusion.attention_levels=[1]"), known)
    said: list[str] = []
    rows = learn(setting, 16, said.append)
    assert [row["pictures"] for row in rows] == [8, 16]
    assert all(0 <= row["right"] <= 1 for row in rows)
    assert said[0].startswith("tiny: ") and len(said) == 2
