"""The tables of docs/pictures.md and docs/cheaper.md, from score cards and the raw JSON of `seq2see bench reduce`."""

from typing import Any

from figures import NOT_YET, cards, computer, raw, table

WITHOUT_AMOUNT = ("untouched", "as trained", "keep as many", "keep random as many")
REDUCED = {
    "reduced-merged": "merging",
    "reduced-pruned": "learned thresholds",
    "reduced-top-budget": "as many in each picture, the shares of the layers taken from the thresholds",
    "reduced-top-even": "as many in each picture and in each layer",
}
MEASURES = {"accuracy": "% right", "bleu": "BLEU"}


def accuracies() -> str:
    """Every recipe of pictures that was trained to its end."""
    rows = []
    for name, card in cards("vit-*").items():
        ((_, test),) = card["tests"].items()
        rows.append(
            (
                f"`{name}`",
                f"{card['parameters']:,}",
                f"{card['training']['epochs']}",
                f"{card['training']['seconds'] / 60:.1f}",
                f"{card['machine']['threads']}",
                f"{test['sentences']:,}",
                f"{100 * test['accuracy']:.2f}",
            )
        )
    return table(
        ("recipe", "parameters", "epochs", "minutes", "threads", "test pictures", "% right"), *rows
    )


def plain() -> str:
    """A Vision Transformer that was trained with all its tokens."""
    return _frontier("reduce-plain", "![Quality against speed and FLOPs](images/reduce-plain.png)")


def merged() -> str:
    """The same, trained on with merging."""
    return _frontier("reduce-merged")


def pruned() -> str:
    """The same, trained on with learned thresholds."""
    return _frontier("reduce-pruned")


def trained() -> str:
    """All that were trained on with fewer tokens, on the whole test set."""
    plain, rows = raw("vit-fashion-patch2")["tests"]["test"]["accuracy"], []
    for name, card in cards("reduced-*").items():
        accuracy = card["tests"]["test"]["accuracy"]
        rows.append((REDUCED[name], f"{100 * accuracy:.2f}", f"{100 * (accuracy - plain):+.2f}"))
    return table(
        ("10,000 pictures of test", "% right", "against plain"),
        ("plain", f"{100 * plain:.2f}", ""),
        *rows,
    )


def long() -> str:
    """A translation model on long inputs."""
    return _frontier("reduce-long", "![Quality against speed and FLOPs](images/reduce-long.png)")


def _frontier(name: str, picture: str = "") -> str:
    """Every setting beside the untouched model of its run; `against plain`: to the model trained with all tokens."""
    result = raw(name)
    whole = raw("reduce-long" if name == "reduce-long" else "reduce-plain")
    if result is None or whole is None:
        return NOT_YET
    first, reference = result["rows"][0], whole["rows"][0]["quality"]
    decodes = any(row["encoded_per_second"] != row["per_second"] for row in result["rows"])
    head = (
        "",
        "a second",
        "faster",
        *(["encoder faster"] if decodes else []),
        "FLOPs",
        "tokens left",
        "memory",
    )
    rows = [_row(row, first, reference, decodes=decodes) for row in result["rows"]]
    machine = computer(result)
    note = f"{result['count']:,} of {result['text']}, medians of {result['rounds']} round(s) in turn; {machine}"
    if result["trained"]:
        left = " · ".join(f"{each:.1f}" for each in result["rows"][1]["layer_tokens"])
        note += f"; as trained: `{result['trained']}`, tokens left after each layer {left}"
    return "\n\n".join(
        [
            table((*head, MEASURES[result["measure"]], "against plain"), *rows),
            note,
            *([picture] if picture else []),
        ]
    )


def _row(row: Any, first: Any, reference: float, *, decodes: bool) -> tuple[str, ...]:
    faster = ["per_second", *(["encoded_per_second"] if decodes else [])]
    return (
        row["kind"] if row["kind"] in WITHOUT_AMOUNT else f"{row['kind']} {row['amount']:g}",
        f"{row['per_second']:,.0f}" if row["per_second"] >= 100 else f"{row['per_second']:.1f}",
        *(f"{row[key] / first[key]:.2f} ×" for key in faster),
        f"{row['gflops_share']:.0%}",
        f"{row['layer_tokens'][-1]:.0f}",
        f"{row['peak_memory_mb']:.0f} MB",
        f"{row['quality']:.2f}",
        f"{row['quality'] - reference:+.2f}",
    )
