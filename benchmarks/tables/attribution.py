"""Table of docs/looking.md, from `attribution.py`."""

from typing import Any

from seq2see.see.attribution import METHODS
from seq2see.see.figures import head_title
from tables.raw import NOT_YET, computer, raw, table

Rates = dict[str, float]  # alignment error rate, plain and both ways


def attribution() -> str:
    """Compare every method by erasure, by alignment and by time."""
    if (result := raw("attribution")) is None:
        return NOT_YET
    val, test = result["val"], result["test"]
    seconds = result["seconds"]
    counts = list(test["random"])
    rows = []
    for name, row in test["methods"].items():
        rates = val["methods"][name]["alignment_error_rate"], row["alignment_error_rate"]
        falls = [f"{row['fall'][count]:.2f}" for count in counts]
        time = f"{seconds['median'][name]:.3f}"
        rows.append((f"`{name}`: {METHODS[name].title}", *falls, *chosen(*rates), time))
    random = [f"{test['random'][count]:.2f}" for count in counts]
    rows.append(("source tokens at random", *random, "", "", ""))
    rows.append((*best_layer(val["norm_layers"], test["norm_layers"]), ""))
    rows.append((*best_head(val["heads"], test["heads"]), ""))
    erased = [f"{count} erased" for count in counts]
    head = ("method", *erased, "word links", "AER", f"seconds, {seconds['words']} words")
    note = (
        f"{test['captions']:,} test captions, {test['target_tokens']:,} target tokens; links, layer "
        f"and head were chosen on {val['captions']:,} of val; {computer(result)}, "
        f"{result['machine']['threads']} thread(s)"
    )
    return f"{table(head, *rows)}\n\n{note}"


def chosen(val: Rates, test: Rates) -> tuple[str, str]:
    """Name the links that are better on val, and return their error rate on test."""
    links = min(val, key=lambda name: val[name])
    return links, f"{test[links]:.1%}"


def best_layer(val: list[Rates], test: list[Rates]) -> tuple[str, ...]:
    """Return the row of the layer whose norms align best on val."""
    layer = min(range(len(val)), key=lambda i: min(val[i].values()))
    return f"`norm`, layer {layer + 1} alone", "", "", "", *chosen(val[layer], test[layer])


def best_head(val: dict[str, Any], test: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of the attention head that aligns best on val."""
    best = min(val, key=lambda head: val[head])
    name, _, head = best.rpartition(".")
    return head_title(name, int(head)), "", "", "", "plain", f"{test[best]:.1%}"
