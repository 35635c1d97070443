"""Tables of docs/painting.md, from `scenes_judge.py`, score cards and `seq2see bench paint`."""

from collections.abc import Callable
from typing import Any

from seq2see.scoring.painting import ATTRIBUTES, COLUMNS, HEADS
from tables.raw import NOT_YET, cards, computer, raw, table

WEAR = ("clean", "worn", "most worn")
TRAINING = ("minutes", "threads", "training pictures")
CLASSES = {"generated": "painted", "real": "real, of `val`", "noise": "noise"}
MEASURED = ("paint-64", "paint-64-finest", "paint-32")  # results of `bench paint`


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


def painted() -> str:
    """Show how often painted scenes are right, for each model that was trained to its end."""
    head = ("recipe", *TRAINING, "test set", "prompts", "guidance", "% right")
    rows = [
        (
            f"`{recipe.removeprefix('painted-')}`",
            *_training(card),
            f"`{name}`",
            f"{test['prompts']:,}",
            f"{card['recipe']['diffusion']['guidance']:g}",
            f"{100 * test['accuracy']:.1f}",
            *(_right(test["attributes"].get(part)) for part in ATTRIBUTES),
        )
        for recipe, card in cards("painted-*").items()
        for name, test in card["tests"].items()
    ]
    return table((*head, *(f"% {part}" for part in ATTRIBUTES)), *rows) if rows else NOT_YET


def _right(attribute: dict[str, Any] | None) -> str:
    """The share of an attribute that is right; empty if no prompt says it."""
    return "" if attribute is None else f"{100 * attribute['accuracy']:.1f}"


def classes() -> str:
    """Show how pictures painted by class compare with real ones, in the eyes of a classifier."""
    card, classifier = raw("fashion-painter"), raw("fashion-classifier")
    report = raw("fashion-painted")
    if report is None:
        return NOT_YET
    rows = []
    for name, figures in {"generated": report, **report["anchors"]}.items():
        others = (f"{figures[key]:.3f}" for key in COLUMNS[1:])
        accuracy = f"{100 * figures['accuracy']:.1f}"
        rows.append((CLASSES[name], f"{figures['pictures']:,}", accuracy, *others))
    minutes, threads, pictures = _training(card)
    training = f"{minutes} minutes of training on {threads} thread(s), {pictures} pictures"
    sampling = f"{report['sampling']['steps']} steps, guidance {report['sampling']['guidance']:g}"
    reference = f"compared with {report['held_out']:,} pictures of `test`"
    accuracy = f"{100 * classifier['tests']['test']['accuracy']:.1f} %"
    judge = f"the classifier is right on {accuracy} of them"
    note = f"{training}; {sampling}; {reference}; {judge}"
    head = ("pictures", "number", "% of their class", *HEADS[1:])
    return f"{table(head, *rows)}\n\n{note}; {computer(card)}"


def _training(card: Any) -> tuple[str, str, str]:
    """Minutes from the command to the choice of weights, threads, and pictures seen."""
    return (
        f"{card['training']['seconds'] / 60:.0f}",
        f"{card['machine']['threads']}",
        f"{card['training']['target_tokens']:,}",
    )


def paint_merging() -> str:
    """Show what merging positions saves and costs, for each model that was measured."""
    return _each(_merging)


def paint_parts() -> str:
    """Show the time by part at each size, for each model that was measured."""
    return _each(_parts)


def _each(show: Callable[[Any], str]) -> str:
    results = [raw(name) for name in MEASURED]
    return "\n\n".join(show(result) for result in results if result is not None) or NOT_YET


def _merging(result: Any) -> str:
    head = ("pixels", "merging", "s a picture", "faster", "one alone", "faster", "memory")
    head += ("% right", "became wrong", "became right", "p", "Fréchet distance")
    note = (
        f"{result['count']} pictures a call, {result['sampling']['steps']} steps, "
        f"merging on grids of at least {result['min_tokens']} positions, "
        f"medians of {result['rounds']} round(s) in turn; {computer(result)}"
    )
    if quality := result["quality"]:
        note += (
            f"; {quality['pictures']:,} prompts of `{quality['test']}`, by {quality['judge']}; "
            f"Fréchet distance: {quality['frechet_features']}"
        )
    return f"{table(head, *map(_merging_row, result['rows']))}\n\n{note}"


def _merging_row(row: Any) -> tuple[str, ...]:
    merged = row["p_value"] is not None
    return (
        f"{row['size']}",
        _merging_name(row),
        f"{row['seconds_per_picture']:.3f}",
        f"{row['speedup']:.2f} ×",
        f"{row['one_picture_seconds']:.3f}",
        f"{row['one_picture_speedup']:.2f} ×",
        f"{row['peak_memory_mb']:.0f} MB",
        "" if row["accuracy"] is None else f"{100 * row['accuracy']:.1f}",
        f"{row['became_wrong']}" if merged else "",
        f"{row['became_right']}" if merged else "",
        f"{row['p_value']:.2f}" if merged else "",
        "" if row["frechet_distance"] is None else f"{row['frechet_distance']:.3f}",
    )


def _parts(result: Any) -> str:
    names = ("self-attention", "cross-attention", "feed-forward", "convolutions", "the rest")
    head = ("pixels", "merging", "ms a step", *(f"% {name}" for name in names))
    body = [
        (
            f"{row['size']}",
            _merging_name(row) + ("" if row["fused"] else ", not fused"),
            f"{1000 * row['seconds_per_step']:.2f}",
            *(f"{100 * share:.1f}" for share in row["shares"].values()),
        )
        for row in result["parts"]
    ]
    note = f"a model of {result['own_size']} pixels, a picture's share of a batch, on one thread"
    return f"{table(head, *body)}\n\n{note}; {computer(result)}"


def _merging_name(row: Any) -> str:
    if not row["ratio"]:
        return "untouched"
    reused = f", every {row['every']} steps" if row["every"] > 1 else ""
    return f"{row['ratio']:g} {row['method']}{reused}"
