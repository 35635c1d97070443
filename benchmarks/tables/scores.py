"""Tables of docs/scores.md, from score cards and `choices.py`."""

import json
from pathlib import Path
from typing import Any

from seq2see.recipe.schema import Recipe
from tables.raw import NOT_YET, cards, computer, raw, table

RECIPES = Path(__file__).parents[2] / "recipes"
NOT_RUN = "not run here"
OWN_LINE = "multi30k-??-??-*"  # score cards of the recipe multi30k: direction, budget, seed
CARDS = {  # score cards whose names differ from that of their recipe
    "captions": "demo",
    "multi30k": "multi30k-de-en-60min-*",
    "multi30k-en-de": "multi30k-en-de-60min-*",
}


def by_setting(pattern: str) -> list[list[Any]]:
    """Group the score cards that differ in nothing but the seed."""
    groups: dict[str, list[Any]] = {}
    for card in cards(pattern).values():
        recipe = json.loads(json.dumps(card["recipe"]))
        recipe["train"].pop("seed")
        groups.setdefault(json.dumps(recipe), []).append(card)
    return sorted(
        groups.values(),
        key=lambda group: (direction(group[0]), group[0]["recipe"]["train"]["minutes"]),
    )


def direction(card: Any) -> str:
    return f"{card['recipe']['data']['source']} → {card['recipe']['data']['target']}"


def command(card: Any) -> str:
    """Return the command that trains the model of a score card."""
    data = card["recipe"]["data"]
    name = "multi30k" if data["source"] == "de" else "multi30k-en-de"
    parts = [f"seq2see train {name}"]
    if data["target"] != Recipe.load(name).data.target:
        parts.append(f"--set data.target={data['target']}")
    parts.append(f"--minutes {card['recipe']['train']['minutes']:g}")
    return " ".join(parts)


def multi30k() -> str:
    """Score the recipe multi30k: every direction and budget, every test set, every seed."""
    rows = []
    for seeds in by_setting(OWN_LINE):
        for name in seeds[0]["tests"]:
            tests = [card["tests"][name] for card in seeds]
            rows.append(
                (
                    f"`{command(seeds[0])}`",
                    name,
                    " / ".join(f"{test['bleu']:.2f}" for test in tests),
                    " / ".join(f"{test['bleu_lowercased']:.2f}" for test in tests),
                    " / ".join(f"{test['chrf']:.2f}" for test in tests),
                    " / ".join(f"{card['training']['seconds'] / 60:.1f}" for card in seeds),
                    f"{seeds[0]['machine']['threads']}",
                )
            )
    head = ("command", "test set", "BLEU, by seed", "lowercased", "chrF", "minutes", "threads")
    first = next(iter(cards(OWN_LINE).values()))
    signature = next(iter(first["tests"].values()))["signature"]
    return f"{table(head, *rows)}\n\n{computer(first)}; {signature}"


def recipes() -> str:
    """Score every shipped translation recipe."""
    rows = []
    for path in sorted(RECIPES.glob("*.toml")):
        if Recipe.load(path).task != "translate":
            continue
        trained = _trained(path.stem)
        for card in trained:
            minutes = f"{card['training']['seconds'] / 60:.0f}"
            threads = f"{card['machine']['threads']}"
            for test, scores in card["tests"].items():
                bleu = f"{scores['bleu']:.2f}"
                chrf = f"{scores['chrf']:.2f}"
                rows.append((f"`{path.stem}`", test, bleu, chrf, minutes, threads))
        if not trained:
            rows.append((f"`{path.stem}`", NOT_RUN, "", "", "", ""))
    return table(("recipe", "test set", "BLEU", "chrF", "minutes", "threads"), *rows)


def _trained(recipe: str) -> list[Any]:
    """Return the score cards of a recipe."""
    if recipe == "multi30k-annotated":
        card = (raw("reproduction") or {}).get("scorecard")
        return [card] if card else []
    return list(cards(CARDS.get(recipe, recipe)).values())


def choices() -> str:
    """Compare averaging, beam, length penalty, sampling and smoothing on val."""
    if (result := raw("choices")) is None:
        return NOT_YET
    seeds = [str(seed) for seed in result["rows"][0]["bleu"]]
    shipped = next(row for row in result["rows"] if row["value"] == "as shipped")["bleu"]
    kinds = [row["what"] for row in result["rows"]]
    rows = []
    for row in sorted(result["rows"], key=lambda row: kinds.index(row["what"])):
        gains = [row["bleu"][seed] - shipped[seed] for seed in seeds]
        rows.append(
            (
                row["what"],
                row["value"],
                " / ".join(f"{row['bleu'][seed]:.2f}" for seed in seeds),
                " / ".join(f"{gain:+.2f}" for gain in gains),
            )
        )
    head = ("what", "value", "BLEU on val, by seed", "against as shipped")
    sentences = f"{result['on']['sentences']:,} sentences of val"
    note = f"{sentences}, {result['steps']:,} updates; {result['signature']}"
    return f"{table(head, *rows)}\n\n{note}"
