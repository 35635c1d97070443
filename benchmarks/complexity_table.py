"""The table of docs/cost.md, from what `seq2see bench attention --json` printed."""

from figures import NOT_YET, raw, table

PICTURE = (
    "![Time, memory and the longest path of each layer, over the length](images/complexity.png)"
)
NAMES = {
    "recurrent": "recurrent (LSTM)",
    "convolutional": "convolutional",
    "self_attention": "self-attention, weights kept",
    "self_attention_fused": "self-attention, fused kernel",
    "window": "window attention",
}


def complexity() -> str:
    """Growth, fitted and in theory, and the costs and counts of the longest sequences."""
    if (found := raw("complexity")) is None:
        return NOT_YET
    longest = {
        row["kind"]: row
        for row in found["rows"]
        if row["length"] == found["settings"]["lengths"][-1]
    }
    head = ("layer", "time", "memory", "time, forward", "memory, forward")
    head += tuple(
        f"n = {found['settings']['lengths'][-1]:,}: {what}"
        for what in ("ms", "MB", "sequential", "path")
    )
    rows = [
        (
            name,
            f"n^{found['exponents'][kind]['time']:.2f} ({found['theory'][kind]['time']})",
            f"n^{found['exponents'][kind]['memory']:.2f} ({found['theory'][kind]['memory']})",
            f"n^{found['exponents'][kind]['forward_time']:.2f}",
            f"n^{found['exponents'][kind]['forward_memory']:.2f}",
            f"{longest[kind]['training_ms']:,.1f}",
            f"{longest[kind]['training_mb']:,.1f}",
            f"{longest[kind]['sequential']:,}",
            f"{longest[kind]['path']:,}",
        )
        for kind, name in NAMES.items()
    ]
    chosen, machine = found["settings"], found["machine"]
    note = (
        f"Forward and backward where nothing else is said; in brackets the theory. Growth over n = "
        f"{', '.join(f'{n:,}' for n in found['fitted_over'])}; d = {chosen['width']}, batch {chosen['batch']}, kernel "
        f"{chosen['kernel']}, reach {chosen['reach']}; medians of {found['rounds']} rounds; {machine['processor']}, "
        f"{machine['threads']} threads, torch {found['versions']['torch']}"
    )
    return f"{PICTURE}\n\n{table(head, *rows)}\n\n{note}"
