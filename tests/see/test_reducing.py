"""Figures of merging and pruning: merged tokens are joined, pruned ones fade."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch, Rectangle
from PIL import Image

from seq2see.cli import main as cli
from seq2see.errors import InputError
from seq2see.layers.reduction.plans import SoftPruning
from seq2see.models.reduced import plan_of, with_plan, with_pruning
from seq2see.see import reducing, reduction_charts, reduction_trace
from seq2see.see.reduction_trace import ReductionTrace

See = Callable[..., tuple[int, str, str]]
TOKENS = ["▁drei", "▁ach", "t", "▁$vier", "</s>"]
TRACE = ReductionTrace(
    [[0, 1, 1, 2, 3], [0, 1, 1, 0, 2], [0, -1, -1, 0, 1]],
    operations=[8.0, 6.0, 3.0],
    full_operations=[10.0, 10.0, 10.0],
)


@pytest.fixture
def see(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> See:
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "see", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def test_each_layer_has_a_line_with_its_reduction() -> None:
    assert TRACE.remaining() == [4, 3, 2]
    assert TRACE.report(TOKENS) == [
        "layer 1: 4 of 5 tokens · 80% FLOPs · merged: ▁ach + t",
        "layer 2: 3 of 5 tokens · 60% FLOPs · merged: ▁drei + ▁$vier, ▁ach + t",
        "layer 3: 2 of 5 tokens · 30% FLOPs · merged: ▁drei + ▁$vier · pruned: ▁ach, t",
    ]
    assert reduction_trace.groups([0, 1, -1, 0, 2, -1]) == [[0, 3]]


def test_words_are_joined_and_fade() -> None:
    figure = reduction_charts.draw_text(TRACE, TOKENS, "drei acht $vier")
    (axes,) = figure.axes
    shown = ["·drei", "·ach", "t", "·$vier", "</s>"]
    words = [text for text in axes.texts if text.get_text() in shown]
    assert [text.get_text() for text in words] == shown * 4
    faded = [to_hex(text.get_color()) == reduction_charts.FADED for text in words]
    assert faded == [False] * 15 + [False, True, True, False, False]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == 1 + 3 + 2  # neighbours share a box, others have one each
    assert len(axes.lines) == 2  # from ▁drei to ▁$vier, in the last two layers
    colours = [to_hex(box.get_edgecolor()) for box in boxes]
    first, second = colours[:2]
    assert first != second and colours == [first, second, second, first, second, second]
    assert figure.get_supxlabel() == (
        "joined boxes of one colour are one token from that layer on; grey words are pruned"
    )
    figure.draw_without_rendering()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("first", [0, 1])
def test_patches_are_outlined_and_pruned_ones_are_white(channels: int, first: int) -> None:
    pixels = torch.randint(0, 256, (channels, 4, 6), dtype=torch.uint8)
    places = [0] * first + [
        first,
        first,
        -1,
        first + 1,
        first,
        first + 2,
    ]  # two rows of three patches
    figure = reduction_charts.draw_picture(
        ReductionTrace([places], [1.0], [2.0]), pixels, (2, 3), "a $picture"
    )
    before, after = (axes for axes in figure.axes if axes.get_title())
    assert (before.get_title(), after.get_title()) == (
        "input",
        f"layer 1\n{3 + first} of {6 + first} tokens · 50% FLOPs",
    )
    tints = {
        patch.get_xy(): to_hex(patch.get_facecolor())
        for patch in after.patches
        if isinstance(patch, Rectangle) and patch.get_xy()[1] < 4
    }
    three = to_hex(reduction_charts.SIZES(reduction_charts.NORM(3)))
    assert tints == {
        (0.0, 0.0): three,
        (2.0, 0.0): three,
        (2.0, 2.0): three,
        (4.0, 0.0): "#ffffff",
    }
    names = [text.get_text() for text in after.texts]
    assert names == ["class token: alone"] * first
    assert figure.get_supxlabel() == "hatched: pruned"
    borders: Any = after.collections[0]
    assert len(borders.get_segments()) == 5
    figure.draw_without_rendering()


def test_the_commands_draw_and_print(see: See, trained: Path, tmp_path: Path) -> None:
    model, out = ("--model", trained), ("--out", tmp_path / "seen.png")
    text = "drei acht vier fünf sechs"
    code, said, error = see("merging", *model, text, *out, "--merge", 2, "--neighbours")
    assert (code, error) == (0, "")
    assert " · merged: " in said and " + " in said
    assert matplotlib.image.imread(tmp_path / "seen.png").shape[1] > 300
    code, said, _ = see("pruning", *model, text, *out, "--keep", 0.5)
    assert code == 0 and " · pruned: " in said
    code, said, _ = see("pruning", *model, text, *out, "--threshold", 1)
    assert code == 0 and " · pruned: " in said and "</s>" not in said  # it is protected
    for arguments, says in (
        (("pruning", *model, text, *out), "neither to merge nor to prune"),
        (("pruning", *model, text, *out, "--keep", 0.5, "--threshold", 0.1), "give one"),
        (
            ("merging", *model, text, *out, "--neighbours"),
            "--neighbours restricts which words --merge merges; give both",
        ),
        (("merging", *model, " ", *out, "--merge", 1), "the text has 0 tokens"),
        (
            ("merging", *model, text, "--out", "x.gif", "--merge", 1),
            "must end in .png, .svg or .html",
        ),
    ):
        code, _, error = see(*arguments)
        assert code == 2 and says in error


def test_a_picture_is_followed_through_its_model(see: See, pictured: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("L", (8, 8), 90).save(path)
    code, said, error = see(
        "merging", "--model", pictured, path, "--out", tmp_path / "seen.svg", "--merge", 1
    )
    assert (code, error) == (0, "")
    assert said.startswith("layer 1: ") and (tmp_path / "seen.svg").stat().st_size > 1000


def test_soft_thresholds_are_taken_hard(trained: Path) -> None:
    subject = reducing.read_subject(trained, "drei acht vier fünf sechs")
    soft = with_plan(subject.model, SoftPruning([9.0], temperature=0.01, penalty=0.1))
    trace = reduction_trace.follow(soft, subject.batch)
    assert trace == reduction_trace.follow(with_pruning(subject.model, [9.0]), subject.batch)
    assert trace.remaining() == [1]  # </s> is protected
    assert isinstance(plan_of(soft), SoftPruning)


def test_other_models_are_refused(toy: Any, tmp_path: Path) -> None:
    toy.path.write_text(
        toy.path.read_text(encoding="utf-8").replace("heads = 2\n", ""), encoding="utf-8"
    )
    toy.train(tmp_path / "lstm", "model.kind=lstm", "train.steps=1")
    with pytest.raises(
        InputError, match=r"lstm: model\.kind 'lstm' has no encoder that can merge or prune$"
    ):
        reducing.read_subject(tmp_path / "lstm", "drei")
    with pytest.raises(InputError, match="no such model directory"):
        reducing.read_subject(tmp_path / "none", "text")
