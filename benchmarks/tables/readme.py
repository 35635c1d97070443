"""Table of the two READMEs."""

from typing import Any

from tables.raw import cards, computer, raw, table
from tables.scores import OWN_LINE, by_setting, command, direction

Words = tuple[str, str]  # English, Chinese
Row = tuple[Words, str | Words, str | Words]  # subject, figure, command

HEAD: Row = (("what", "项目"), ("measured", "结果"), ("command", "命令"))
SOURCES = {  # score cards and benchmarks behind the figures, by the name shown to readers
    "captions": "demo",
    "Chinese captions": "captions-zh-en",
    "multi30k": OWN_LINE,
    "tatoeba": "tatoeba",
    "bench": "bench-base",
    "beam": "decoding",
}


def results(language: str) -> str:
    """List the main figures, each with the command that gives it."""
    demo = raw("demo")
    rows = [
        HEAD,
        *_captions(demo),
        _chinese(raw("captions-zh-en")),
        *(_multi30k(seeds) for seeds in by_setting(OWN_LINE)),
        _tatoeba(raw("tatoeba")),
        _training(raw("bench-base")),
        _decoding(raw("decoding")),
    ]
    place = ("en", "zh").index(language)
    cells = [tuple(cell if isinstance(cell, str) else cell[place] for cell in row) for row in rows]
    return f"{table(*cells)}\n\n{machines()}; {demo['tests']['test']['signature']}"


def _captions(demo: Any) -> list[Row]:
    minutes = demo["training"]["seconds"] / 60
    test = demo["tests"]["test"]
    structures = demo["tests"]["test_structures"]
    count = f"{test['sentences']:,}"
    return [
        (
            (
                f"embedded captions, {count} new sentences, {minutes:.1f} minutes of training",
                f"内置语料，{count} 个新句子，训练 {minutes:.1f} 分钟",
            ),
            f"BLEU {test['bleu']:.1f}",
            "`make demo`",
        ),
        (
            ("… clause structures never seen in training", "…… 训练中从未出现过的从句结构"),
            f"BLEU {structures['bleu']:.1f}",
            "`make demo`",
        ),
    ]


def _chinese(card: Any) -> Row:
    minutes = f"{card['training']['seconds'] / 60:.1f}"
    return (
        (
            f"embedded captions, Chinese → English, {minutes} minutes",
            f"内置语料，中 → 英，{minutes} 分钟",
        ),
        f"BLEU {card['tests']['test']['bleu']:.1f}",
        "`seq2see demo --languages zh-en`",
    )


def _multi30k(seeds: list[Any]) -> Row:
    card = seeds[0]
    minutes = f"{card['recipe']['train']['minutes']:g}"
    threads = card["machine"]["threads"]
    scores = [f"{card['tests']['test_2016_flickr']['bleu']:.1f}" for card in seeds]
    return (
        (
            f"Multi30k {direction(card)}, test_2016, {minutes} minutes, "
            f"{len(seeds)} seeds, {threads} thread(s)",
            f"Multi30k {direction(card)}，test_2016，{minutes} 分钟，"
            f"{len(seeds)} 个随机种子，{threads} 线程",
        ),
        f"BLEU {' / '.join(scores)}",
        f"`{command(card)}`",
    )


def _tatoeba(card: Any) -> Row:
    minutes = f"{card['training']['seconds'] / 60:.1f}"
    return (
        (
            f"Tatoeba German → English, held out, {minutes} minutes",
            f"Tatoeba 德 → 英，留出集，{minutes} 分钟",
        ),
        f"BLEU {card['tests']['test']['bleu']:.1f}",
        "`seq2see train tatoeba --data DIR`",
    )


def _training(base: Any) -> Row:
    processor = base["machine"]["processor"]
    rate = f"{base['target_tokens_per_second']:.0f}"
    utilisation = f"{base['utilisation']:.0%}"
    return (
        (
            f"training, base size (6+6, 512, 2048), Multi30k words, on {processor}",
            f"训练，base 规模（6+6，512，2048），Multi30k 词级词表，{processor}",
        ),
        (
            f"{rate} target tokens/s, {utilisation} of matrix peak",
            f"{rate} 目标词元/秒，达矩阵乘峰值的 {utilisation}",
        ),
        "`seq2see bench train multi30k-annotated`",
    )


def _decoding(result: Any) -> Row:
    beam = result["beam"]
    count = f"{result['sentences']:,}"
    ratio = f"{result['ratio']:.0f}"
    script = "python benchmarks/decoding.py --model runs/multi30k --source test_2016_flickr.de.gz"
    return (
        (
            f"beam {beam}, {count} sentences, against a loop without cache and batch",
            f"束宽 {beam}，{count} 句，相对于无缓存、无批处理的循环",
        ),
        (f"{ratio} × faster", f"快 {ratio} 倍"),
        f"`{script}`",
    )


def machines() -> str:
    """Name the machines, each with the figures measured on it."""
    names_by_machine: dict[str, list[str]] = {}
    for name, pattern in SOURCES.items():
        for machine in {computer(card) for card in cards(pattern).values()}:
            names_by_machine.setdefault(machine, []).append(name)
    return "; ".join(
        f"{machine}: {', '.join(names)}" for machine, names in names_by_machine.items()
    )
