"""The embedded corpus end to end: train, score, translate, look; for a first quarter of an hour with seq2see."""

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from seq2see.recipe.schema import Recipe
from seq2see.see import alignment, figures
from seq2see.tasks.run import train
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.captions import Caption

HEADS_CHOSEN_ON, HEADS_REPORTED_ON = 300, 1000


def demo(out: Path, minutes: float | None, device: str, console: Console) -> None:
    """Train `captions` into `out` (or go on with it), then show what it can do."""
    recipe = Recipe.load("captions", [] if minutes is None else [f"train.minutes={minutes}"])
    finished = (out / "scorecard.json").exists()
    translator = train(recipe, out=out, resume=True, device=device, console=console)
    assert isinstance(translator, Translator)  # the recipe is one of translation
    if finished:
        for name, scores in json.loads((out / "scorecard.json").read_text(encoding="utf-8"))[
            "tests"
        ].items():
            console.print(
                f"{name}: BLEU {scores['bleu']:.2f} ({scores['signature']})", highlight=False
            )
    _align(translator, out, console)
    example = _example().source
    for source in (
        example,
        *(caption.source for caption in captions.generate("test_structures", 2)),
    ):
        console.print(
            f"[dim]{source}[/dim]\n[cyan]{escape(translator.translate([source])[0])}[/cyan]",
            highlight=False,
        )
    figures.save(figures.attention(translator.explain(example)), out / "attention.png")
    command = Path(sys.argv[0])  # as it was called: it may not be on the path
    console.print(
        f"\nevery head of the first sentence: {out}/attention.png\n"
        f"its best head beside the gold alignment: {out}/alignment.png\n\n"
        f'your own sentence:  {command} translate --model {out} "{example}"\n'
        f'your own picture:   {command} see attention --model {out} "{example}" --out a.png\n'
        f"your own data:      {command} train tiny --set data.train=pairs.tsv --out runs/mine",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if sys.stdin.isatty() and sys.stdout.isatty():
        _converse(translator, console)


def _example() -> Caption:
    """A test caption that fits a page and whose word order differs between the languages."""
    return next(
        caption
        for caption in captions.generate("test", 200)
        if 10 <= len(captions.words(caption.source)) <= 13
        and any(i - j >= 4 for i, j in caption.alignment)
        and any(j - i >= 1 for i, j in caption.alignment)
    )


def _align(translator: Translator, out: Path, console: Console) -> None:
    """Find the head that aligns best on val, and say how well it does on test."""
    rates = alignment.head_error_rates(translator, captions.generate("val", HEADS_CHOSEN_ON))
    best = min(rates, key=lambda head: rates[head])
    examples = captions.generate("test", HEADS_REPORTED_ON)
    rate = alignment.head_error_rates(translator, examples)[best]
    name, head = best
    title = f"{name}, head {head + 1}"
    console.print(
        f"[bold]alignment error rate[/bold] of the best cross-attention head ({title}; chosen on val): "
        f"{rate:.1%} on {len(examples)} test captions",
        highlight=False,
    )
    for caption, weights in alignment.cross_attention(translator, [_example()]):
        picture = figures.alignment(
            weights[name][head],
            set(caption.alignment),
            captions.words(caption.source),
            captions.words(caption.target),
            title,
        )
        figures.save(picture, out / "alignment.png")


def _converse(translator: Translator, console: Console) -> None:
    console.print("\nType a German caption (an empty line ends):")
    try:
        while text := console.input("[bold]de>[/bold] ").strip():
            console.print(
                f"[bold]en>[/bold] [cyan]{escape(translator.translate([text])[0])}[/cyan]",
                highlight=False,
            )
    except EOFError:
        console.print()
