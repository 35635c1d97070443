"""Tables of docs/painting.md, from `scenes_judge.py` and `stable_diffusion.py`."""

from tables.raw import NOT_YET, computer, raw, table

WEAR = ("clean", "worn", "most worn")


def judge() -> str:
    """Show how often the judge accepts right prompts and rejects wrong ones, by split."""
    if (result := raw("scenes")) is None:
        return NOT_YET
    rows = {(row["split"], row["wear"]): row for row in result["rows"]}
    splits = dict.fromkeys(split for split, _ in rows)
    head = ("%", *(f"accepted, {wear}" for wear in WEAR), *(f"rejected, {wear}" for wear in WEAR))
    body = [
        (
            f"`{split}`",
            *(f"{100 * rows[split, wear]['right']['all']:.3f}" for wear in WEAR),
            *(f"{100 * rows[split, wear]['refused']['all']:.3f}" for wear in WEAR),
        )
        for split in splits
    ]
    first = result["rows"][0]
    size = f"{first['size']} × {first['size']} pixels"
    speeds = [row["judged_per_second"] for row in result["rows"]]
    speed = f"{min(speeds):,.0f} to {max(speeds):,.0f} a second"
    note = f"{first['pictures']:,} pictures of {size} in each cell, judged at {speed}"
    return f"{table(head, *body)}\n\n{note}; {computer(result)}"


STABLE_DIFFUSION_KERNELS = {"fused": "fused", "open": "not fused"}
STABLE_DIFFUSION_MERGING = {"none": "none", "tomesd": "tomesd", "seq2see": "`merge_in`"}
STABLE_DIFFUSION_PARTS = {
    "self": "self-attention",
    "cross": "cross-attention",
    "feed_forward": "feed-forward",
    "convolutions": "convolutions",
    "merging": "merging and sums",
    "rest": "the rest",
}
PUBLISHED_ATTENTION = 83  # % of the time, in a published experiment with Stable Diffusion


def stable_diffusion() -> str:
    """Show time and memory of one step of Stable Diffusion's U-Net, by kernel and merging."""
    if (result := raw("stable-diffusion")) is None:
        return NOT_YET
    head = ("pixels", "attention", "merging", "s a step", "faster", "faster than fused, unmerged")
    body = [
        (
            f"{row['size']} × {row['size']}",
            STABLE_DIFFUSION_KERNELS[row["kernel"]],
            STABLE_DIFFUSION_MERGING[row["merging"]],
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


def stable_diffusion_parts() -> str:
    """Show the share of time of each part, beside the published share of attention."""
    if (result := raw("stable-diffusion")) is None:
        return NOT_YET
    names = ("attention, both", *STABLE_DIFFUSION_PARTS.values())
    head = ("pixels", "attention", "merging", *(f"% {name}" for name in names))
    body = [("published experiment", "", "", f"{PUBLISHED_ATTENTION}", *[""] * (len(names) - 1))]
    for row in result["rows"]:
        total = sum(row["parts"].values())
        shares = {part: 100 * seconds / total for part, seconds in row["parts"].items()}
        body.append(
            (
                f"{row['size']} × {row['size']}",
                STABLE_DIFFUSION_KERNELS[row["kernel"]],
                STABLE_DIFFUSION_MERGING[row["merging"]],
                f"{shares['self'] + shares['cross']:.1f}",
                *(f"{shares[part]:.1f}" for part in STABLE_DIFFUSION_PARTS),
            )
        )
    return f"{table(head, *body)}\n\none step each; {computer(result)}"
