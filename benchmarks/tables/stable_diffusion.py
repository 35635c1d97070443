"""Tables of docs/painting.md, from `stable_diffusion.py`."""

from tables.raw import NOT_YET, computer, raw, table

KERNELS = {"fused": "fused", "open": "not fused"}
MERGING = {"none": "none", "tomesd": "tomesd", "seq2see": "`merge_in`"}
PARTS = {
    "self": "self-attention",
    "cross": "cross-attention",
    "feed_forward": "feed-forward",
    "convolutions": "convolutions",
    "merging": "merging and sums",
    "rest": "the rest",
}
PUBLISHED_ATTENTION = 83  # % of the time, in a published experiment with Stable Diffusion


def steps() -> str:
    """Show time and memory of one step of Stable Diffusion's U-Net, by kernel and merging."""
    if (result := raw("stable-diffusion")) is None:
        return NOT_YET
    head = ("pixels", "attention", "merging", "s a step", "faster", "faster than fused, unmerged")
    body = [
        (
            f"{row['size']} × {row['size']}",
            KERNELS[row["kernel"]],
            MERGING[row["merging"]],
            f"{row['seconds']:.2f}",
            f"{row['speedup']:.2f} ×",
            f"{row['speedup_over_fused']:.2f} ×",
            f"{row['peak_mb'] / 1024:.1f} GB" if "peak_mb" in row else "",
        )
        for row in result["rows"]
    ]
    versions = result["versions"]
    names = ", ".join(f"{name} {versions[name]}" for name in ("diffusers", "tomesd", "torch"))
    note = (
        f"{result['parameters'] / 1e6:,.0f} M parameters, {result['dtype']}, "
        f"batch {result['batch']}, {result['prompt_tokens']} prompt tokens, "
        f"ratio {result['ratio']:g}; medians of {len(result['rows'][0]['rounds'])} round(s) in turn; "
        f"{names}; {computer(result)}"
    )
    return f"{table((*head, 'peak memory'), *body)}\n\n{note}"


def parts() -> str:
    """Show the share of time of each part, beside the published share of attention."""
    if (result := raw("stable-diffusion")) is None:
        return NOT_YET
    names = ("attention, both", *PARTS.values())
    head = ("pixels", "attention", "merging", *(f"% {name}" for name in names))
    body = [("published experiment", "", "", f"{PUBLISHED_ATTENTION}", *[""] * (len(names) - 1))]
    for row in result["rows"]:
        total = sum(row["parts"].values())
        shares = {part: 100 * seconds / total for part, seconds in row["parts"].items()}
        body.append(
            (
                f"{row['size']} × {row['size']}",
                KERNELS[row["kernel"]],
                MERGING[row["merging"]],
                f"{shares['self'] + shares['cross']:.1f}",
                *(f"{shares[part]:.1f}" for part in PARTS),
            )
        )
    return f"{table(head, *body)}\n\none step each; {computer(result)}"
