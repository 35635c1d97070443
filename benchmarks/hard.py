"""Share of hard sentences that come through with `decode.keep` and without it, and what it costs.

    python benchmarks/hard.py --model runs/tatoeba --source test.de --reference test.en

The hard sentences are those of `seq2see evaluate --hard`. On ordinary ones, sacreBLEU's paired
tests compare both settings, and the texts that are searched are counted. Writes
`results/hard.json`.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import seq2see
from seq2see.scoring.card import machine
from seq2see.scoring.compare import Systems, compare
from seq2see.scoring.tokenization import tokenization
from seq2see.tasks.hard import evaluate_hard
from seq2see.tasks.translator import Translator
from seq2see.text.lines import read_lines

RESULTS = Path(__file__).parent / "results"
NAMES = {False: "decode.keep = false", True: "decode.keep = true"}


def with_keep(directory: Path, keep: bool) -> Translator:
    """Open a model whose translations keep what they must, or do not."""
    translator = seq2see.load(directory, engine="torch")
    recipe = translator.recipe
    decode = recipe.decode.model_copy(update={"keep": keep})
    translator.recipe = recipe.model_copy(update={"decode": decode})
    return translator


def translated(translator: Translator, sources: Sequence[str]) -> tuple[list[str], int]:
    """Translate, and count the texts that are searched."""
    searched = 0
    search = translator.hypotheses

    def counting(texts: Sequence[Any], *settings: Any, **options: Any) -> Any:
        nonlocal searched
        searched += len(texts)
        return search(texts, *settings, **options)

    translator.hypotheses = counting  # type: ignore[method-assign]
    outputs = translator.translate(sources)
    return outputs, searched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=RESULTS / "hard.json")
    options = parser.parse_args()
    sources = read_lines(options.source)
    references = read_lines(options.reference)
    hard: dict[str, Any] = {}
    systems: Systems = {}
    searched: dict[str, int] = {}
    for keep, name in NAMES.items():
        translator = with_keep(options.model, keep)
        hard[name] = {kind: asdict(share) for kind, share in evaluate_hard(translator).items()}
        systems[name], searched[name] = translated(translator, sources)
    target = translator.recipe.data.target
    compared = compare(systems, references, sources, tokenize=tokenization(target))
    card = json.loads((options.model / "scorecard.json").read_bytes())
    result = {
        "machine": machine(),
        "training": card["training"],
        "languages": translator.tokenizers.languages,
        "hard": hard,
        "ordinary": {
            "test": options.source.name,
            "sentences": len(sources),
            "searched": searched,
            "systems": [asdict(system) for system in compared.systems],
            "signatures": compared.signatures,
            "changed": sum(
                first != second for first, second in zip(*systems.values(), strict=True)
            ),
        },
    }
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
