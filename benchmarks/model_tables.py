"""The tables of docs/before.md and docs/after.md, from the raw JSON of the benchmarks that they name."""

import statistics
from typing import Any

from figures import NOT_YET, raw, table

CURVES = (
    "![Learning curves over minutes and over epochs, and BLEU by the length of the source]"
    "(images/architectures.png)"
)
LOOKS = "![What each decoder looks at while it reads the same translation](images/architectures-attention.png)"


def architectures() -> str:
    """Every kind of model on Multi30k, at the same wall-clock and at the same epochs."""
    if (result := raw("architectures")) is None:
        return NOT_YET
    budgets, tests = result["budgets"], list(result["rows"]["minutes"][0]["bleu"])
    head = ("model", "recipe", "parameters", "target tokens/s", "epochs")
    head += tuple(f"{budgets['minutes']:g} minutes: {test}" for test in tests)
    head += (f"{budgets['epochs']:g} epochs: {tests[0]}",)
    rows = [
        (
            timed["name"],
            f"`{timed['recipe']}`",
            f"{timed['parameters']:,}",
            f"{timed['target_tokens_per_second']:,.0f}",
            f"{timed['training']['epochs']}",
            *(f"{timed['bleu'][test]:.2f}" for test in tests),
            f"{counted['bleu'][tests[0]]:.2f}",
        )
        for timed, counted in zip(result["rows"]["minutes"], result["rows"]["epochs"], strict=True)
    ]
    first = result["rows"]["minutes"][0]
    machine = f"{first['machine']['processor']}, {first['machine']['threads']} thread(s) each"
    verdicts = ", ".join(
        f"{name}: {verdict}" for name, verdict in result["verdicts"].items() if verdict
    )
    note = f"One seed, beam 4; {machine}; {first['signature']}. Paired tests against the {first['name']}: {verdicts}."
    parts = [table(head, *rows), note, *further_seeds(result), CURVES, by_length(result), LOOKS]
    return "\n\n".join(parts)


def further_seeds(result: Any) -> list[str]:
    """The two kinds in front with every seed, the first one included."""
    if not result["seeds"]:
        return []
    names, first = list(result["seeds"][0]["bleu"]), result["rows"]["minutes"]
    own = {row["name"]: row["bleu"] for row in first}
    seeds = [
        {"seed": first[0]["settings"]["train"]["seed"], "bleu": own, "p": result["p"]},
        *result["seeds"],
    ]
    columns = [(test, name) for test in first[0]["bleu"] for name in names]
    scores = [[row["bleu"][name][test] for test, name in columns] for row in seeds]
    scores.append([statistics.mean(column) for column in zip(*scores, strict=True)])
    begin = [*(f"{row['seed']}" for row in seeds), "mean"]
    end = [*(f"{row['p'][names[1]]:.3f}" for row in seeds), ""]
    rows = [
        (seed, *(f"{bleu:.2f}" for bleu in of), p)
        for seed, of, p in zip(begin, scores, end, strict=True)
    ]
    about = f"The two in front once more, with every seed; p is the paired bootstrap's on {columns[0][0]}:"
    return [about, table(("seed", *(f"{name}: {test}" for test, name in columns), "p"), *rows)]


def by_length(result: Any) -> str:
    buckets = result["by_length"]
    head = (
        "BLEU by words of the source",
        *(f"{each['bucket']} ({each['sentences']} sentences)" for each in buckets),
    )
    return table(
        head,
        *(
            (name, *(f"{each['bleu'][name]:.1f}" for each in buckets))
            for name in buckets[0]["bleu"]
        ),
    )


def blanks() -> str:
    """How many blanks the masked model fills so that the sentence agrees."""
    if (result := raw("blanks")) is None:
        return NOT_YET
    rows = [
        (kind, f"{of['asked']}", f"{of['right'] / of['asked']:.1%}")
        for kind, of in result["kinds"].items()
    ]
    asked = sum(of["asked"] for of in result["kinds"].values())
    rows.append(("all", f"{asked}", f"{result['accuracy']:.1%}"))
    return table(("blank", "asked", "agrees"), *rows)


def pretraining() -> str:
    """What a hundred labels teach, with and without pre-training."""
    if (result := raw("pretraining")) is None:
        return NOT_YET
    begun = {row["begun"]: None for row in result["rows"]}  # in their order, once each
    tests = list(result["rows"][0]["tests"])
    rows = []
    for name in begun:
        seeds = [row["tests"] for row in result["rows"] if row["begun"] == name]
        right = {test: [seed[test]["accuracy"] for seed in seeds] for test in tests}
        rows.append(
            (
                name,
                *(
                    f"{statistics.mean(of):.1%} ({min(of):.1%} to {max(of):.1%})"
                    for of in right.values()
                ),
            )
        )
    seeds = len({row["seed"] for row in result["rows"]})
    note = f"{result['labels']} labels, {seeds} seeds: mean, lowest and highest."
    return f"{table(('begun', *tests), *rows)}\n\n{note}"


def perplexities() -> str:
    """Counted n-grams and the Transformer over the same tokens."""
    if (result := raw("perplexity")) is None:
        return NOT_YET
    models = list(next(iter(next(iter(result["models"].values()))["tests"].values())))
    rows = [
        (f"`{name}`", test, *(f"{by[model]:.1f}" for model in models))
        for name, model_result in result["models"].items()
        for test, by in model_result["tests"].items()
    ]
    return table(("recipe", "test set", *models), *rows)
