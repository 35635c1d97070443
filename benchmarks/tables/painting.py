"""Table of docs/painting.md, from `scenes_judge.py`."""

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
