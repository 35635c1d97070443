"""Table of docs/documents.md, from `glossary.py`."""

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
