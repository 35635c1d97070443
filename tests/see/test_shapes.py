"""The picture of shapes: later layers folded, and no parameter lost."""

from matplotlib.patches import Rectangle

from seq2see.see import shapes
from seq2see.see.tensor_shapes import NamedTensor, tensor_shapes
from seq2see.tasks.translator import Translator


def tensors(translator: Translator) -> list[NamedTensor]:
    sides = translator.tokenizers
    return tensor_shapes(
        translator, sides.source.encode("drei acht"), sides.target.encode("three eight one")
    )


def test_folding_keeps_every_parameter(tiny: Translator) -> None:
    every = tensors(tiny)
    folded = shapes.folded(every)
    counted = sum(parameter.numel() for parameter in tiny.model.parameters())
    assert sum(one.parameters for one in folded) == counted
    names = [one.name for one in folded]
    assert "decoder.0.cross_attention.query" in names and "decoder.1" in names
    assert not any(name.startswith("decoder.1.") for name in names)
    first, second = (
        sum(one.parameters for one in every if f"{one.name}.".startswith(f"decoder.{layer}."))
        for layer in (0, 1)
    )
    assert first == second == folded[names.index("decoder.1")].parameters


def test_a_line_for_each_tensor_and_a_bar_for_its_parameters(tiny: Translator) -> None:
    every = tensors(tiny)
    folded = shapes.folded(every)
    figure = shapes.draw(every, "drei acht")
    counted = sum(one.parameters for one in every)
    assert figure.get_suptitle() == f"drei acht\n{counted:,} parameters"
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert [text for text in texts if "×" in text] == [
        " × ".join(map(str, one.shape)) for one in folded
    ]
    bars = [patch for axes in figure.axes for patch in axes.patches]
    assert all(isinstance(bar, Rectangle) for bar in bars)
    assert len(bars) == sum(one.parameters > 0 for one in folded)
    assert [table.rows[-1][-1] for table in shapes.numbers(every)] == [f"{counted:,}"]
    assert shapes.report(every)[-1].split() == ["all", f"{counted:,}"]
