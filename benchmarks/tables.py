"""Fill the tables of the READMEs and docs from the raw JSON in `results`: `make tables`.

A table stands between `<!-- NAME -->` and `<!-- /NAME -->`; nothing in there is typed by hand.
"""

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import complexity_table
import model_tables
import picture_tables
import speed_tables
from figures import NOT_YET, cards, computer, raw, table

from seq2see.recipe.schema import Recipe

HERE = Path(__file__).parent
ROOT = HERE.parent
NOT_RUN = "not run here"
OWN_LINE = "multi30k-??-??-*"  # the cards of our own line: a direction, a budget, a seed


def signed(card: Any) -> str:
    """The machine, and how BLEU was computed."""
    return f"{computer(card)}; {next(iter(card['tests'].values()))['signature']}"


def results(language: str) -> str:
    """The READMEs' table: what is measured, the figure, and the command that gives it."""

    def say(english: str, chinese: str) -> str:
        return english if language == "en" else chinese

    demo, base, decoding, tatoeba = (
        raw(name) for name in ("demo", "bench-base", "decoding", "tatoeba")
    )
    minutes = demo["training"]["seconds"] / 60
    test, structures = demo["tests"]["test"], demo["tests"]["test_structures"]
    held_out = tatoeba["tests"]["test"]
    return (
        table(
            (say("what", "内容"), say("measured", "测得"), say("command", "命令")),
            (
                say(
                    f"embedded captions, {test['sentences']:,} new sentences, {minutes:.1f} minutes of training",
                    f"内置语料，{test['sentences']:,} 个新句子，训练 {minutes:.1f} 分钟",
                ),
                f"BLEU {test['bleu']:.1f}",
                "`make demo`",
            ),
            (
                say("… clause structures never seen in training", "…… 训练中从未出现过的从句结构"),
                f"BLEU {structures['bleu']:.1f}",
                "`make demo`",
            ),
            *(
                (
                    say(
                        f"Multi30k {direction(card)}, test_2016, {card['recipe']['train']['minutes']:g} minutes, "
                        f"{len(seeds)} seeds, {card['machine']['threads']} thread(s)",
                        f"Multi30k {direction(card)}，test_2016，{card['recipe']['train']['minutes']:g} 分钟，"
                        f"{len(seeds)} 个种子，{card['machine']['threads']} 线程",
                    ),
                    "BLEU "
                    + " / ".join(
                        f"{each['tests']['test_2016_flickr']['bleu']:.1f}" for each in seeds
                    ),
                    f"`{command(card)}`",
                )
                for seeds in by_setting(OWN_LINE)
                for card in seeds[:1]
            ),
            (
                say(
                    f"Tatoeba German → English, held out, {tatoeba['training']['seconds'] / 60:.1f} minutes",
                    f"Tatoeba 德 → 英，留出集，{tatoeba['training']['seconds'] / 60:.1f} 分钟",
                ),
                f"BLEU {held_out['bleu']:.1f}",
                "`seq2see train tatoeba --data DIR`",
            ),
            (
                say(
                    f"training, base size (6+6, 512, 2048), Multi30k words, on {base['machine']['processor']}",
                    f"训练，base 规模（6+6，512，2048），Multi30k 单词，{base['machine']['processor']}",
                ),
                say(
                    f"{base['target_tokens_per_second']:.0f} target tokens/s, {base['utilisation']:.0%} of matrix peak",
                    f"{base['target_tokens_per_second']:.0f} 目标词元/秒，达矩阵乘峰值的 {base['utilisation']:.0%}",
                ),
                "`seq2see bench train multi30k-annotated`",
            ),
            (
                say(
                    f"beam {decoding['beam']}, {decoding['sentences']:,} sentences, against a loop without cache "
                    "and batch",
                    f"束宽 {decoding['beam']}，{decoding['sentences']:,} 句，相对于无缓存、无批处理的循环",
                ),
                say(f"{decoding['ratio']:.0f} × faster", f"快 {decoding['ratio']:.0f} 倍"),
                "`python benchmarks/decoding.py --model runs/multi30k --source test_2016_flickr.de.gz`",
            ),
        )
        + f"\n\n{machines()}; {test['signature']}"
    )


def machines() -> str:
    """Which of the README's figures come from which computer."""
    found: dict[str, list[str]] = {}
    names = {
        "captions": "demo",
        "multi30k": OWN_LINE,
        "tatoeba": "tatoeba",
        "bench": "bench-base",
        "beam": "decoding",
    }
    for name, pattern in names.items():
        for machine in {computer(card) for card in cards(pattern).values()}:
            found.setdefault(machine, []).append(name)
    return "; ".join(f"{machine}: {', '.join(names)}" for machine, names in found.items())


def by_setting(pattern: str) -> list[list[Any]]:
    """Score cards that differ in nothing but the seed, together."""
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
    data, minutes = card["recipe"]["data"], card["recipe"]["train"]["minutes"]
    name = "multi30k" if data["source"] == "de" else "multi30k-en-de"
    usual = Recipe.load(name).data.target
    target = [f"--set data.target={data['target']}"] if data["target"] != usual else []
    return " ".join([f"seq2see train {name}", *target, f"--minutes {minutes:g}"])


def multi30k() -> str:
    """Our own line on Multi30k: each direction and budget, every test set, every seed."""
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
    return table(head, *rows) + f"\n\n{signed(next(iter(cards(OWN_LINE).values())))}"


# Score cards of a recipe that has another name there, or several seeds.
CARDS = {
    "captions": "demo",
    "multi30k": "multi30k-de-en-60min-*",
    "multi30k-en-de": "multi30k-en-de-60min-*",
}


def recipes() -> str:
    """One line for every recipe that is shipped and translates."""
    rows = []
    for path in sorted((ROOT / "recipes").glob("*.toml")):
        name = path.stem
        if Recipe.load(path).task != "translate":
            continue
        if name == "multi30k-annotated":
            found = [raw("reproduction")["scorecard"]] if finished() else []
        else:
            found = list(cards(CARDS.get(name, name)).values())
        for card in found:
            spent = f"{card['training']['seconds'] / 60:.0f}", f"{card['machine']['threads']}"
            for test, scores in card["tests"].items():
                rows.append(
                    (f"`{name}`", test, f"{scores['bleu']:.2f}", f"{scores['chrf']:.2f}", *spent)
                )
        if not found:
            rows.append((f"`{name}`", NOT_RUN, "", "", "", ""))
    return table(("recipe", "test set", "BLEU", "chrF", "minutes", "threads"), *rows)


def finished() -> bool:
    return "scorecard" in (raw("reproduction") or {})


def choices() -> str:
    """What averaging, beam, length penalty, sampling and smoothing are worth on val."""
    if (found := raw("choices")) is None:
        return NOT_YET
    seeds = [str(seed) for seed in next(iter(found["rows"]))["bleu"]]
    shipped = next(row for row in found["rows"] if row["value"] == "as shipped")["bleu"]
    kinds = [row["what"] for row in found["rows"]]
    rows = []
    for row in sorted(found["rows"], key=lambda row: kinds.index(row["what"])):
        gains = [row["bleu"][seed] - shipped[seed] for seed in seeds]
        rows.append(
            (
                row["what"],
                row["value"],
                " / ".join(f"{row['bleu'][seed]:.2f}" for seed in seeds),
                " / ".join(f"{gain:+.2f}" for gain in gains),
            )
        )
    note = f"{found['on']['sentences']:,} sentences of val, {found['steps']:,} updates; {found['signature']}"
    return (
        table(("what", "value", "BLEU on val, by seed", "against as shipped"), *rows)
        + f"\n\n{note}"
    )


def reproduction() -> str:
    """The published run and ours, side by side."""
    if (found := raw("reproduction")) is None:
        return NOT_YET
    published, ours = found["published"], found["ours"]
    rows = [
        ("loss of the first update", f"{published['first_loss']:.2f}", f"{ours['first_loss']:.2f}")
    ]
    for row in ours["validation"]:
        theirs = published["validation_loss"].get(str(row["epoch"]))
        rows.append(
            (
                f"validation loss after epoch {row['epoch']}",
                "" if theirs is None else f"{theirs:g}",
                f"{row['loss']:.4f} (greedy BLEU {row['bleu']:.1f} on the head of val)",
            )
        )
    rows.append(
        (
            "target tokens/s",
            f"{published['target_tokens_per_second']:,}",
            f"{ours['target_tokens_per_second']:.0f}",
        )
    )
    rows.append(
        (
            "hours",
            f"{published['hours']:g}",
            f"{ours['hours']:.1f} for {len(ours['validation'])} epochs",
        )
    )
    machine = found["machine"]
    rows.append(
        ("machine", published["machine"], f"{machine['processor']}, {machine['cores']} cores")
    )
    tests = found.get("scorecard", {}).get("tests", {})
    rows += [
        (f"BLEU on {name}", "not reported", f"{scores['bleu']:.2f}")
        for name, scores in tests.items()
    ]
    signatures = {scores["signature"] for scores in tests.values()}
    picture = "![Our losses beside the published points](images/reproduction-curve.png)"
    return "\n\n".join([table(("", "published", "ours"), *rows), *signatures, picture])


def samples() -> str:
    """Three sentences in the form of the published notebook."""
    if not finished():
        return NOT_YET
    lines = []
    for number, sample in enumerate(raw("reproduction")["samples"]):
        lines.append(f"Example {number} ========\n")
        lines += [f"{name:<27}: {text}" for name, text in sample.items()] + [""]
    picture = "![Every head of every layer while it translates the second sentence](images/reproduction-attention.png)"
    return "```text\n" + "\n".join(lines).strip() + f"\n```\n\n{picture}"


def score_functions() -> str:
    """Every score function trained alike on the embedded corpus."""
    if (found := raw("scores")) is None:
        return NOT_YET
    scaled = next(row["bleu"] for row in found["rows"] if row["score"] == "scaled_dot")
    rows = [
        (
            f"`{row['score']}`",
            f"{row['lr']:g}",
            f"{row['bleu']:.2f}",
            f"{row['bleu'] - scaled:+.2f}",
            f"{row['parameters']:,}",
            f"{row['sharpness']['fresh']:.2f} → {row['sharpness']['trained']:.2f}",
        )
        for row in found["rows"]
    ]
    head = (
        "`model.score`",
        "`train.lr`",
        "BLEU",
        "against `scaled_dot`",
        "parameters",
        "largest weight of a row",
    )
    note = f"{found['steps']:,} updates, one seed; {found['rows'][0]['signature']}"
    return table(head, *rows) + f"\n\n{note}"


def attention_cost() -> str:
    """`attend` beside torch's kernel, and what additive scores hold."""
    found, memory = raw("attention"), raw("attention_memory")
    if found is None or memory is None:
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
        for row in found["rows"]
    ]
    machine, worst = found["machine"], memory["rows"][-1]
    note = (
        f"{found['batch']} sentences, {found['heads']} heads of {found['size']}, medians of {found['pairs']} "
        f"alternating pairs; {machine['processor']}, {machine['threads']} threads, torch {found['versions']['torch']}"
    )
    additive = (
        f"Additive scores of {memory['batch']} sentences of {worst['length']} tokens and size {memory['size']} take "
        f"{worst['training_mb']:,.0f} MB forward and backward; all pairs at once are {worst['at_once_mb']:,.0f} MB."
    )
    head = ("length", "weights returned", "pass", "`attend`, ms", "torch's kernel, ms", "ratio")
    return table(head, *rows) + f"\n\n{note}\n\n{additive}"


def peers(name: str, *raw: Path) -> Callable[[], str]:
    """A table of the comparison with others, from its own raw file or the one given."""
    return lambda: str(runpy.run_path(str(HERE / "peers" / "table.py"))[name](*raw))


PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"results": lambda: results("en")},
    "README.zh-CN.md": {"results": lambda: results("zh")},
    "docs/attention.md": {"score functions": score_functions, "attention cost": attention_cost},
    "docs/after.md": {
        name: getattr(model_tables, name) for name in ("perplexities", "blanks", "pretraining")
    },
    "docs/before.md": {"architectures": model_tables.architectures},
    "docs/cheaper.md": {
        name: getattr(picture_tables, name)
        for name in ("plain", "merged", "pruned", "trained", "long")
    },
    "docs/cost.md": {"complexity": complexity_table.complexity},
    "docs/pictures.md": {"accuracies": picture_tables.accuracies},
    "docs/reproduction.md": {"reproduction": reproduction, "samples": samples},
    "docs/speed.md": {
        "peers training": peers("training"),
        "peers training, quiet": peers("training", HERE / "results" / "peers-train-quiet.json"),
        "peers translation": peers("translation"),
        **{name: getattr(speed_tables, name) for name in ("utilisation", "frontier", "optimizers")},
    },
    "docs/scores.md": {"recipes": recipes, "multi30k": multi30k, "choices": choices},
}


def filled(page: str, text: str) -> str:
    """The page with its tables made anew."""
    for name, make in PAGES[page].items():
        body = make()
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text, count = block.subn(lambda match, body=body: match[1] + body + match[2], text)
        if count != 1:
            raise SystemExit(f"{page}: the table {name!r} must stand there once, not {count} times")
    return text


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(page, path.read_text(encoding="utf-8")), encoding="utf-8")
