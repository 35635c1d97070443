"""Fill the tables of both READMEs from the raw JSON beside this file: `make tables`.

A table stands between `<!-- results -->` and `<!-- /results -->`; nothing in there is typed by hand.
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HEADS = {
    "README.md": ("what", "measured", "command"),
    "README.zh-CN.md": ("内容", "测得", "命令"),
}


def raw(name: str) -> Any:
    return json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))


def rows(language: str) -> list[tuple[str, str, str]]:
    """What is measured, the figure, and the command that gives it."""

    def say(english: str, chinese: str) -> str:
        return english if language == "README.md" else chinese

    demo, base, decoding, tatoeba = (raw(name) for name in ("demo", "bench-base", "decoding", "tatoeba"))
    minutes = demo["training"]["seconds"] / 60
    test, structures = demo["tests"]["test"], demo["tests"]["test_structures"]
    held_out = tatoeba["tests"]["test"]
    return [
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
                "training, base size (6+6, 512, 2048), Multi30k words",
                "训练，base 规模（6+6，512，2048），Multi30k 单词",
            ),
            say(
                f"{base['target_tokens_per_second']:.0f} target tokens/s, {base['utilisation']:.0%} of matrix peak",
                f"{base['target_tokens_per_second']:.0f} 目标词元/秒，达矩阵乘峰值的 {base['utilisation']:.0%}",
            ),
            "`seq2see bench train multi30k-annotated`",
        ),
        (
            say(
                f"beam {decoding['beam']}, {decoding['sentences']:,} sentences, against a loop without cache and batch",
                f"束宽 {decoding['beam']}，{decoding['sentences']:,} 句，相对于无缓存、无批处理的循环",
            ),
            say(f"{decoding['ratio']:.0f} × faster", f"快 {decoding['ratio']:.0f} 倍"),
            "`python benchmarks/decoding.py --model runs/multi30k --source test_2016_flickr.de.gz`",
        ),
    ]


def table(language: str) -> str:
    lines = [HEADS[language], ("---",) * 3, *rows(language)]
    machine = raw("demo")["machine"]
    note = f"{machine['processor']}, {machine['cores']} cores; {raw('demo')['tests']['test']['signature']}"
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + f"\n\n{note}"


def filled(language: str, text: str) -> str:
    """The page with its table made anew."""
    return re.sub(
        r"(<!-- results -->\n).*?(\n<!-- /results -->)",
        lambda match: match[1] + table(language) + match[2],
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for language in HEADS:
        page = HERE.parent / language
        page.write_text(filled(language, page.read_text(encoding="utf-8")), encoding="utf-8")
