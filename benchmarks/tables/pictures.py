"""Tables of docs/pictures.md and docs/cheaper.md, from score cards and `seq2see bench reduce`."""

from typing import Any

from tables.raw import NOT_YET, cards, computer, raw, table

WITHOUT_AMOUNT = ("untouched", "as trained", "keep as many", "keep random as many")
REDUCED = {
    "reduced-merged": "merging",
    "reduced-pruned": "learned thresholds",
    "reduced-top-budget": (
        "as many in each picture, the shares of the layers taken from the thresholds"
    ),
    "reduced-top-even": "as many in each picture and in each layer",
}
MEASURES = {"accuracy": "% right", "bleu": "BLEU"}


def accuracies() -> str:
    """Score every image recipe that was trained to its end."""
    rows = []
    for name, card in cards("vit-*").items():
        ((_, test),) = card["tests"].items()
        rows.append(
            (
                f"`{name}`",
                f"{card['parameters']:,}",
                f"{card['training']['epochs']:.3g}",
                f"{card['training']['seconds'] / 60:.1f}",
                f"{card['machine']['threads']}",
                f"{test['sentences']:,}",
                f"{100 * test['accuracy']:.2f}",
            )
        )
    head = ("recipe", "parameters", "epochs", "minutes", "threads", "test pictures", "% right")
    return table(head, *rows)


def plain() -> str:
    """Measure a Vision Transformer trained with all its tokens."""
    return _frontier("reduce-plain", "![Quality against speed and FLOPs](images/reduce-plain.png)")


def merged() -> str:
    """Measure the same model, fine-tuned with merging."""
    return _frontier("reduce-merged")


def pruned() -> str:
    """Measure the same model, fine-tuned with learned thresholds."""
    return _frontier("reduce-pruned")


def trained() -> str:
    """Score all models fine-tuned with fewer tokens, on the whole test set."""
    plain = raw("vit-fashion-patch2")["tests"]["test"]["accuracy"]
    rows = [("plain", f"{100 * plain:.2f}", "")]
    for name, card in cards("reduced-*").items():
        accuracy = card["tests"]["test"]["accuracy"]
        rows.append((REDUCED[name], f"{100 * accuracy:.2f}", f"{100 * (accuracy - plain):+.2f}"))
    return table(("10,000 pictures of test", "% right", "against plain"), *rows)


def long() -> str:
    """Measure a translation model on long inputs."""
    return _frontier("reduce-long", "![Quality against speed and FLOPs](images/reduce-long.png)")


def _frontier(name: str, picture: str = "") -> str:
    """Compare settings with the untouched model, and with the one trained with all tokens."""
    result = raw(name)
    plain = raw("reduce-long" if name == "reduce-long" else "reduce-plain")
    if result is None or plain is None:
        return NOT_YET
    first = result["rows"][0]
    reference = plain["rows"][0]["quality"]
    decodes = any(row["encoded_per_second"] != row["per_second"] for row in result["rows"])
    speeds = ["per_second", "encoded_per_second"] if decodes else ["per_second"]
    head = ("", "a second", "faster", "encoder faster")[: 2 + len(speeds)]
    head += ("FLOPs", "tokens left", "memory", MEASURES[result["measure"]], "against plain")
    rows = [_row(row, first, reference, speeds) for row in result["rows"]]
    note = (
        f"{result['count']:,} of {result['text']}, "
        f"medians of {result['rounds']} round(s) in turn; {computer(result)}"
    )
    if result["trained"]:
        left = " · ".join(f"{tokens:.1f}" for tokens in result["rows"][1]["layer_tokens"])
        note += f"; as trained: `{result['trained']}`, tokens left after each layer {left}"
    return "\n\n".join(filter(None, [table(head, *rows), note, picture]))


def _row(row: Any, first: Any, reference: float, speeds: list[str]) -> tuple[str, ...]:
    rate = row["per_second"]
    return (
        row["kind"] if row["kind"] in WITHOUT_AMOUNT else f"{row['kind']} {row['amount']:g}",
        f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}",
        *(f"{row[key] / first[key]:.2f} ×" for key in speeds),
        f"{row['gflops_share']:.0%}",
        f"{row['layer_tokens'][-1]:.0f}",
        f"{row['peak_memory_mb']:.0f} MB",
        f"{row['quality']:.2f}",
        f"{row['quality'] - reference:+.2f}",
    )
