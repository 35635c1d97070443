"""`seq2see demo`: the embedded corpus end to end: train, score, align, translate, draw."""

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from seq2see.recipe.schema import Recipe
from seq2see.see import alignment, attention, figures
from seq2see.tasks.run import train
from seq2see.tasks.translator import Translator
from seq2see.text import captions
from seq2see.text.captions import Caption
from seq2see.text.documents.sentences import spaced

NAMES = {"de": "German", "zh": "Chinese"}
VAL_CAPTIONS, TEST_CAPTIONS = 300, 1000  # to choose the best head, and to report its error rate


def demo(recipe_name: str, out: Path, minutes: float | None, device: str, console: Console) -> None:
    """Train a recipe of the captions in `out`, or resume it; then show what the model does."""
    recipe = Recipe.load(recipe_name, [] if minutes is None else [f"train.minutes={minutes}"])
    languages = (recipe.data.source, recipe.data.target)
    scorecard = out / "scorecard.json"
    before = scorecard.read_bytes() if scorecard.exists() else b""
    translator = train(recipe, out=out, resume=True, device=device, console=console)
    assert isinstance(translator, Translator)
    if scorecard.read_bytes() == before:  # otherwise training has just printed the scores
        for name, scores in json.loads(scorecard.read_text(encoding="utf-8"))["tests"].items():
            console.print(
                f"{name}: BLEU {scores['bleu']:.2f} ({scores['signature']})", highlight=False
            )
    example = _example(languages)
    _show_alignment(translator, example, out, console)
    for caption in [example, *captions.generate("test_structures", 2, languages=languages)]:
        translation = escape(translator.translate([caption.source])[0])
        console.print(f"[dim]{caption.source}[/dim]\n[cyan]{translation}[/cyan]", highlight=False)
    cross = attention.on_one_page(translator.explain(example.source), "cross")
    figures.save(cross, out / "attention.png")
    console.print(_next_steps(out, example.source), highlight=False, markup=False, soft_wrap=True)
    if sys.stdin.isatty() and sys.stdout.isatty():
        _converse(translator, languages, console)


def _example(languages: tuple[str, str]) -> Caption:
    """Pick a test caption of moderate length whose word order differs between the languages."""
    lengths = range(10, 14) if spaced(languages[0]) else range(16, 23)  # words, or characters
    return next(
        caption
        for caption in captions.generate("test", 200, languages=languages)
        if len(captions.words(caption.source)) in lengths
        and any(i - j >= 4 for i, j in caption.alignment)
        and any(j - i >= 1 for i, j in caption.alignment)
    )


def _show_alignment(translator: Translator, example: Caption, out: Path, console: Console) -> None:
    """Choose the head with the best alignments on val, and report its error rate on test."""
    data = translator.recipe.data
    val, test = (
        captions.generate(split, count, languages=(data.source, data.target))
        for split, count in (("val", VAL_CAPTIONS), ("test", TEST_CAPTIONS))
    )
    rates = alignment.head_error_rates(translator, val)
    name, head = best = min(rates, key=lambda candidate: rates[candidate])
    rate = alignment.head_error_rates(translator, test)[best]
    title = figures.head_title(name, head)
    console.print(
        f"[bold]alignment error rate[/bold] of the best head ({title}; chosen on val): "
        f"{rate:.1%} on {TEST_CAPTIONS} test captions",
        highlight=False,
    )
    for caption, weights in alignment.cross_attention(translator, [example]):
        figure = attention.with_gold(
            weights[name][head],
            set(caption.alignment),
            captions.words(caption.source),
            captions.words(caption.target),
            title,
        )
        figures.save(figure, out / "alignment.png")


def _next_steps(out: Path, example: str) -> str:
    command = Path(sys.argv[0])  # as it was called, since it may not be on the PATH
    return (
        f"\nevery head of the cross-attention for the first sentence: {out}/attention.png\n"
        f"the best head beside the gold alignment: {out}/alignment.png\n\n"
        f'your own sentence:  {command} translate --model {out} "{example}"\n'
        f'your own picture:   {command} see attention --model {out} "{example}" --out a.png\n'
        f"your own data:      {command} train tiny --set data.train=pairs.tsv --out runs/mine"
    )


def _converse(translator: Translator, languages: tuple[str, str], console: Console) -> None:
    source, target = languages
    console.print(f"\nType a {NAMES[source]} caption (an empty line ends):")
    try:
        while text := console.input(f"[bold]{source}>[/bold] ").strip():
            translation = escape(translator.translate([text])[0])
            console.print(f"[bold]{target}>[/bold] [cyan]{translation}[/cyan]", highlight=False)
    except EOFError:
        console.print()
