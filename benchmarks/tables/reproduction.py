"""Tables of docs/reproduction.md, from `reproduction.py`."""

from typing import Any

from tables.raw import NOT_YET, raw, table

CURVE = "![Our losses beside the published points](images/reproduction-curve.png)"
HEADS = (
    "![Every head of every layer while it translates the second sentence]"
    "(images/reproduction-attention.png)"
)


def reproduction() -> str:
    """Compare the published run with ours."""
    if (result := raw("reproduction")) is None:
        return NOT_YET
    published = result["published"]
    ours = result["ours"]
    machine = result["machine"]
    tests = result.get("scorecard", {}).get("tests", {})
    rows = [
        ("loss of the first update", f"{published['first_loss']:.2f}", f"{ours['first_loss']:.2f}"),
        *(_validation(row, published["validation_loss"]) for row in ours["validation"]),
        (
            "target tokens/s",
            f"{published['target_tokens_per_second']:,}",
            f"{ours['target_tokens_per_second']:.0f}",
        ),
        (
            "hours",
            f"{published['hours']:g}",
            f"{ours['hours']:.1f} for {len(ours['validation'])} epochs",
        ),
        ("machine", published["machine"], f"{machine['processor']}, {machine['cores']} cores"),
        *(
            (f"BLEU on {name}", "not reported", f"{scores['bleu']:.2f}")
            for name, scores in tests.items()
        ),
    ]
    signatures = {scores["signature"] for scores in tests.values()}
    return "\n\n".join([table(("", "published", "ours"), *rows), *signatures, CURVE])


def _validation(row: Any, published: dict[str, float]) -> tuple[str, str, str]:
    theirs = published.get(str(row["epoch"]))
    return (
        f"validation loss after epoch {row['epoch']}",
        "" if theirs is None else f"{theirs:g}",
        f"{row['loss']:.4f} (greedy BLEU {row['bleu']:.1f} on the head of val)",
    )


def samples() -> str:
    """Show three sentences in the format of the published notebook."""
    result = raw("reproduction") or {}
    if "scorecard" not in result:
        return NOT_YET
    lines = []
    for number, sample in enumerate(result["samples"]):
        lines.append(f"Example {number} ========\n")
        lines += [f"{name:<27}: {text}" for name, text in sample.items()]
        lines.append("")
    text = "\n".join(lines).strip()
    return f"```text\n{text}\n```\n\n{HEADS}"
