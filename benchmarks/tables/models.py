"""Tables of docs/before.md and docs/after.md.

From `architectures.py`, `blanks.py`, `pretraining.py` and `perplexity.py`.
"""

import statistics
from typing import Any

from tables.raw import NOT_YET, raw, table

CURVES = (
    "![Learning curves over minutes and over epochs, and BLEU by the length of the source]"
    "(images/architectures.png)"
)
CROSS_ATTENTION = (
    "![Cross-attention of each decoder over the same sentence pair]"
    "(images/architectures-attention.png)"
)


def architectures() -> str:
    """Compare every kind of model on Multi30k, at equal wall-clock time and at equal epochs."""
    if (result := raw("architectures")) is None:
        return NOT_YET
    by_minutes = result["rows"]["minutes"]
    by_epochs = result["rows"]["epochs"]
    budgets = result["budgets"]
    tests = list(by_minutes[0]["bleu"])
    head = ("model", "recipe", "parameters", "target tokens/s", "epochs")
    head += tuple(f"{budgets['minutes']:g} minutes: {test}" for test in tests)
    head += (f"{budgets['epochs']:g} epochs: {tests[0]}",)
    rows = [
        (
            timed["name"],
            f"`{timed['recipe']}`",
            f"{timed['parameters']:,}",
            f"{timed['target_tokens_per_second']:,.0f}",
            f"{timed['training']['epochs']:.3g}",
            *(f"{timed['bleu'][test]:.2f}" for test in tests),
            f"{counted['bleu'][tests[0]]:.2f}",
        )
        for timed, counted in zip(by_minutes, by_epochs, strict=True)
    ]
    first = by_minutes[0]
    machine = f"{first['machine']['processor']}, {first['machine']['threads']} thread(s) each"
    verdicts = ", ".join(
        f"{name}: {verdict}" for name, verdict in result["verdicts"].items() if verdict
    )
    note = (
        f"One seed, beam 4; {machine}; {first['signature']}. "
        f"Paired tests against the {first['name']}: {verdicts}."
    )
    parts = [table(head, *rows), note, *_further_seeds(result), CURVES, _by_length(result)]
    return "\n\n".join([*parts, CROSS_ATTENTION])


def _further_seeds(result: Any) -> list[str]:
    """Compare the two best kinds with every seed, the first one included."""
    if not result["seeds"]:
        return []
    first = result["rows"]["minutes"]
    names = list(result["seeds"][0]["bleu"])
    seeds = [
        {
            "seed": first[0]["settings"]["train"]["seed"],
            "bleu": {row["name"]: row["bleu"] for row in first},
            "p": result["p"],
        },
        *result["seeds"],
    ]
    columns = [(test, name) for test in first[0]["bleu"] for name in names]
    scores = [[row["bleu"][name][test] for test, name in columns] for row in seeds]
    rows = [
        (f"{row['seed']}", *_scores(values), f"{row['p'][names[1]]:.3f}")
        for row, values in zip(seeds, scores, strict=True)
    ]
    means = [statistics.mean(column) for column in zip(*scores, strict=True)]
    rows.append(("mean", *_scores(means), ""))
    about = (
        "The two in front once more, with every seed; "
        f"p is the paired bootstrap's on {columns[0][0]}:"
    )
    return [about, table(("seed", *(f"{name}: {test}" for test, name in columns), "p"), *rows)]


def _scores(values: list[float]) -> list[str]:
    return [f"{value:.2f}" for value in values]


def _by_length(result: Any) -> str:
    buckets = result["by_length"]
    sizes = [f"{bucket['bucket']} ({bucket['sentences']} sentences)" for bucket in buckets]
    rows = [
        (name, *(f"{bucket['bleu'][name]:.1f}" for bucket in buckets))
        for name in buckets[0]["bleu"]
    ]
    return table(("BLEU by words of the source", *sizes), *rows)


def blanks() -> str:
    """Count the blanks that the masked model fills grammatically."""
    if (result := raw("blanks")) is None:
        return NOT_YET
    kinds = result["kinds"]
    rows = [
        (kind, f"{count['asked']}", f"{count['right'] / count['asked']:.1%}")
        for kind, count in kinds.items()
    ]
    asked = sum(count["asked"] for count in kinds.values())
    rows.append(("all", f"{asked}", f"{result['accuracy']:.1%}"))
    return table(("blank", "asked", "agrees"), *rows)


def pretraining() -> str:
    """Compare accuracy after a hundred labels, with and without pre-training."""
    if (result := raw("pretraining")) is None:
        return NOT_YET
    tests = list(result["rows"][0]["tests"])
    rows = []
    for begun in dict.fromkeys(row["begun"] for row in result["rows"]):
        runs = [row["tests"] for row in result["rows"] if row["begun"] == begun]
        rows.append((begun, *(_spread([run[test]["accuracy"] for run in runs]) for test in tests)))
    seeds = len({row["seed"] for row in result["rows"]})
    note = f"{result['labels']} labels, {seeds} seeds: mean, lowest and highest."
    return f"{table(('begun', *tests), *rows)}\n\n{note}"


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.1%} ({min(values):.1%} to {max(values):.1%})"


def perplexities() -> str:
    """Compare n-grams with the Transformer over the same tokens."""
    if (result := raw("perplexity")) is None:
        return NOT_YET
    tests = [
        (recipe, test, by_model)
        for recipe, measured in result["models"].items()
        for test, by_model in measured["tests"].items()
    ]
    models = list(tests[0][2])
    rows = [
        (f"`{recipe}`", test, *(f"{by_model[model]:.1f}" for model in models))
        for recipe, test, by_model in tests
    ]
    return table(("recipe", "test set", *models), *rows)
