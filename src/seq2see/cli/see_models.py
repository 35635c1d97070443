"""`seq2see see`: the figures of a model at work: attention, heads, search, shapes."""

from pathlib import Path
from typing import Annotated

import typer

from seq2see.cli.options import Dark, Device, Drawing, Model, read_texts
from seq2see.errors import InputError


def see_attention(
    model: Model,
    text: Annotated[
        str, typer.Argument(help="A sentence in the source language, or a picture's file.")
    ],
    out: Drawing,
    target: Annotated[
        str | None, typer.Option(help="Explain this translation instead of the model's own.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only this attention: encoder, decoder or cross.")
    ] = None,
    layer: Annotated[int | None, typer.Option(min=1, help="Only this layer, from 1.")] = None,
    head: Annotated[
        int | None,
        typer.Option(min=1, help="Only this head of --layer, large; by default cross-attention."),
    ] = None,
    device: Device = "auto",
    dark: Dark = False,
) -> None:
    """Draw every head, or one: encoder, decoder, cross-attention.

    Rows are query positions, columns are key positions. A figure too tall for one page becomes
    several files: a-1.png, a-2.png and so on. For image models, maps are drawn over the picture.
    """
    from seq2see.see import attention, figures, pictures
    from seq2see.tasks.picture_model import PictureModel
    from seq2see.tasks.table import open_model

    figures.check(out, dark)
    if kind is not None and kind not in attention.KINDS:
        raise InputError(f"--kind {kind!r} is not one of {', '.join(attention.KINDS)}")
    if head is not None and layer is None:
        raise InputError(f"--head {head} needs its --layer")
    opened = open_model(model, device, tasks=("translate", "images"))
    if isinstance(opened, PictureModel):
        _refuse_for_pictures(target=target, kind=kind, layer=layer)
        seen = opened.explain(text)
        figures.save(pictures.draw(seen), out, dark)
        print(seen.prediction.label)
        return
    explanation = opened.explain(text, target)
    if head is not None and layer is not None:
        pages = [attention.draw_head(explanation, kind or "cross", layer - 1, head - 1)]
    else:
        pages = attention.draw(explanation, kind, None if layer is None else layer - 1)
    paths = figures.save_pages(pages, out, dark)
    print("\n".join([explanation.target, *(map(str, paths) if len(paths) > 1 else [])]))


def _refuse_for_pictures(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} {value!r}: for translation, not for an image model")


def see_attribution(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence in the source language.")],
    out: Drawing,
    method: Annotated[
        str, typer.Option(help="erasure, gradient, integrated, norm, rollout or attention.")
    ] = "erasure",
    target: Annotated[
        str | None, typer.Option(help="Explain this translation instead of the model's own.")
    ] = None,
    device: Device = "auto",
    dark: Dark = False,
) -> None:
    """Draw which source tokens each target token was chosen for.

    Rows are target tokens, columns are source tokens.
    """
    from seq2see.see import attribution, attribution_chart, figures
    from seq2see.tasks.table import load

    figures.check(out, dark)
    attribution.method_of(method)
    attributed = attribution.attribute_text(load(model, device), text, target, method)
    figures.save(attribution_chart.draw(attributed), out, dark)
    print(attributed.target)


def see_heads(
    model: Model,
    out: Drawing,
    sentences: Annotated[
        int, typer.Option(min=1, max=10_000, help="Pairs to measure the heads on.")
    ] = 200,
    source: Annotated[
        Path | None, typer.Option(help="Sentences; by default those of the embedded captions.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Their translations.")] = None,
    device: Device = "auto",
    dark: Dark = False,
) -> None:
    """Measure every head: entropy, distance, alignment.

    Also the share of its weight on the previous, the same and the next token. Alignments are scored
    on the embedded captions, which have gold links.
    """
    from seq2see.see import figures, head_statistics, heads
    from seq2see.tasks.table import load

    figures.check(out, dark)
    if source is not None and reference is None:
        raise InputError(f"--source {source} needs the --reference that translates it")
    sources, references = read_texts(source, reference)
    translator = load(model, device)
    if sources:
        source_ids = translator.ids("source", sources[:sentences], source)
        target_ids = translator.ids("target", references[:sentences], reference)
        pairs = list(zip(source_ids, target_ids, strict=True))
        statistics = head_statistics.head_statistics(translator, pairs)
    else:
        examples = heads.captions_for(translator.recipe.data, sentences)
        statistics = head_statistics.caption_statistics(translator, examples)
    if not statistics:
        raise InputError(f"{model}: this model has no attention to measure")
    figures.save(heads.draw(statistics), out, dark)
    print("\n".join(heads.report(statistics)))


def see_beam(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence in the source language.")],
    out: Drawing,
    beam: Annotated[int, typer.Option(min=1, max=8, help="Beam size.")] = 3,
    device: Device = "auto",
    dark: Dark = False,
) -> None:
    """Draw a beam search as a tree, with the greedy path."""
    from dataclasses import replace

    from seq2see.decoding.hypotheses import Search
    from seq2see.see import beam as picture
    from seq2see.see import beam_tree, figures
    from seq2see.tasks.table import load

    figures.check(out, dark)
    translator = load(model, device)
    (source,) = translator.ids("source", [_filled(text)])
    config = replace(Search.of(translator.recipe), beam=beam)
    tree = beam_tree.grow(translator, source, config)
    figures.save(picture.draw(tree, text), out, dark, picture.numbers(tree))
    print("\n".join(picture.report(tree)))


def see_shapes(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence in the source language.")],
    out: Drawing,
    device: Device = "auto",
    dark: Dark = False,
) -> None:
    """Draw the shape of every tensor, from ids to logits."""
    from seq2see.see import figures, shapes
    from seq2see.see.tensor_shapes import tensor_shapes
    from seq2see.tasks.table import load

    figures.check(out, dark)
    translator = load(model, device)
    (source,) = translator.ids("source", [_filled(text)])
    target = translator.target_ids(source, None)
    tensors = tensor_shapes(translator, source, target)
    figures.save(shapes.draw(tensors, text), out, dark, shapes.numbers(tensors))
    print("\n".join(shapes.report(tensors)))


def _filled(text: str) -> str:
    if not text.strip():
        raise InputError("the text is empty")
    return text


COMMANDS = (see_attention, see_attribution, see_heads, see_beam, see_shapes)
