"""Tables of docs/attention.md and docs/cost.md.

From `scores.py`, `attention.py` and `seq2see bench attention --json`.
"""

from typing import Any

from tables.raw import NOT_YET, raw, table

GROWTH = (
    "![Time, memory and the longest path of each layer, over the length](images/complexity.png)"
)
LAYERS = {
    "recurrent": "recurrent (LSTM)",
    "convolutional": "convolutional",
    "self_attention": "self-attention, weights kept",
    "self_attention_fused": "self-attention, fused kernel",
    "window": "window attention",
}


def score_functions() -> str:
    """Compare the score functions, trained alike on the embedded corpus."""
    if (result := raw("scores")) is None:
        return NOT_YET
    scaled = next(row["bleu"] for row in result["rows"] if row["score"] == "scaled_dot")
    rows = [
        (
            f"`{row['score']}`",
            f"{row['lr']:g}",
            f"{row['bleu']:.2f}",
            f"{row['bleu'] - scaled:+.2f}",
            f"{row['parameters']:,}",
            f"{row['sharpness']['fresh']:.2f} → {row['sharpness']['trained']:.2f}",
        )
        for row in result["rows"]
    ]
    head = ("`model.score`", "`train.lr`", "BLEU", "against `scaled_dot`", "parameters")
    head += ("largest weight of a row",)
    note = f"{result['steps']:,} updates, one seed; {result['rows'][0]['signature']}"
    return f"{table(head, *rows)}\n\n{note}"


def attention_cost() -> str:
    """Compare `attend` with torch's kernel, and state the memory of additive scores."""
    time = raw("attention")
    memory = raw("attention_memory")
    if time is None or memory is None:
        return NOT_YET
    rows = [
        (
            f"{row['length']}",
            "yes" if row["weights"] else "no",
            row["pass"],
            f"{row['attend_ms']:.2f}",
            f"{row['torch_ms']:.2f}",
            f"{row['ratio']:.2f}",
        )
        for row in time["rows"]
    ]
    machine = time["machine"]
    worst = memory["rows"][-1]
    note = (
        f"{time['batch']} sentences, {time['heads']} heads of {time['size']}, "
        f"medians of {time['pairs']} alternating pairs, ratio: median of the pairs' ratios; "
        f"{machine['processor']}, {machine['threads']} threads, torch {time['versions']['torch']}"
    )
    additive = (
        f"Additive scores of {memory['batch']} sentences of {worst['length']} tokens and size "
        f"{memory['size']} take {worst['training_mb']:,.0f} MB forward and backward; "
        f"all pairs at once are {worst['at_once_mb']:,.0f} MB."
    )
    head = ("length", "weights returned", "pass", "`attend`, ms", "torch's kernel, ms", "ratio")
    return f"{table(head, *rows)}\n\n{note}\n\n{additive}"


def complexity() -> str:
    """Show growth, fitted and in theory, and the costs and counts of the longest sequences."""
    if (result := raw("complexity")) is None:
        return NOT_YET
    settings = result["settings"]
    machine = result["machine"]
    longest = settings["lengths"][-1]
    head = ("layer", "time", "memory", "time, forward", "memory, forward")
    head += tuple(f"n = {longest:,}: {what}" for what in ("ms", "MB", "sequential", "path"))
    rows = [
        _layer(name, result["exponents"][kind], result["theory"][kind], row)
        for kind, name in LAYERS.items()
        for row in result["rows"]
        if (row["kind"], row["length"]) == (kind, longest)
    ]
    fitted_over = ", ".join(f"{n:,}" for n in result["fitted_over"])
    note = (
        "Forward and backward where nothing else is said; in brackets the theory. "
        f"Growth over n = {fitted_over}; "
        f"d = {settings['width']}, batch {settings['batch']}, "
        f"kernel {settings['kernel']}, reach {settings['reach']}; "
        f"medians of {result['rounds']} rounds; "
        f"{machine['processor']}, {machine['threads']} threads, torch {result['versions']['torch']}"
    )
    return f"{GROWTH}\n\n{table(head, *rows)}\n\n{note}"


def _layer(name: str, exponents: Any, theory: Any, row: Any) -> tuple[str, ...]:
    return (
        name,
        f"n^{exponents['time']:.2f} ({theory['time']})",
        f"n^{exponents['memory']:.2f} ({theory['memory']})",
        f"n^{exponents['forward_time']:.2f}",
        f"n^{exponents['forward_memory']:.2f}",
        f"{row['training_ms']:,.1f}",
        f"{row['training_mb']:,.1f}",
        f"{row['sequential']:,}",
        f"{row['path']:,}",
    )
