"""Tables of docs/documents.md, from `glossary.py` and `hard.py`."""

from typing import Any

from tables.raw import NOT_YET, computer, raw, table


def glossary() -> str:
    """Compare a glossary of the references' words, and one of other words, with none."""
    if (result := raw("glossary")) is None:
        return NOT_YET
    names = {
        "none": "none",
        "usual": "the words that references use most",
        "other": "other words",
    }
    rows = []
    for name, row in result["rows"].items():
        shares = [f"{row[kind] / row['occurrences']:.1%}" for kind in ("usual", "other")]
        first, *second = row["texts_by_round"]
        rows.append((names[name], *shares, f"{row['bleu']:.2f}", f"{first:,}", f"{sum(second):,}"))
    head = ("glossary", "usual word", "other word", "BLEU", "texts asked first", "asked again")
    training = result["training"]
    note = (
        f"{len(result['terms'])} terms, {result['rows']['none']['occurrences']:,} times in the "
        f"{result['sentences']:,} sentences of {result['test']}; a model after "
        f"{training['epochs']:.1f} epochs; {computer(result)}; "
        f"{result['rows']['none']['signature']}. The references use the usual words."
    )
    return f"{table(head, *rows)}\n\n{note}"


def hard() -> str:
    """Compare what hard sentences keep, by kind, with and without `decode.keep`."""
    if (result := raw("hard")) is None:
        return NOT_YET
    without, with_keep = result["hard"].values()
    rows = []
    for kind, share in with_keep.items():
        shares = [f"{one['kept']:.0%}" for one in (without[kind], share)]
        rows.append((kind, f"{share['sentences']}", *shares))
    head = ("kind", "sentences", "come through without `decode.keep`", "with it")
    return f"{table(head, *rows)}\n\n{_hard_note(result)}"


def _hard_note(result: Any) -> str:
    capitals = result["hard"]["decode.keep = true"]["capitals"]
    ordinary = result["ordinary"]
    without, with_keep = ordinary["systems"]
    searched = list(ordinary["searched"].values())
    p_values = [with_keep["bleu"][key] for key in ("p_bootstrap", "p_randomisation")]
    return (
        f"Capitals: BLEU {capitals['bleu']:.1f}, and {capitals['bleu_lower_case']:.1f} of the same "
        f"sentences in lower case, both regardless of case. Ordinary sentences, "
        f"{ordinary['sentences']:,} of the public test set: BLEU {without['bleu']['score']:.2f} "
        f"without and {with_keep['bleu']['score']:.2f} with (p ≤ {max(p_values):.3f} in both paired "
        f"tests); {ordinary['changed']:,} translations differ, and "
        f"{searched[1] / searched[0] - 1:.0%} more texts are searched. One seed, "
        f"{result['training']['seconds'] / 60:.0f} minutes of training; {computer(result)}; "
        f"{ordinary['signatures']['bleu']['bootstrap']}"
    )
