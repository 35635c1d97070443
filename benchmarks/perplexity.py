"""How well is the next word foreseen? Counted n-grams beside a trained language model, over the same tokens.

    python benchmarks/perplexity.py --model runs/captions-language --model runs/multi30k-language

The n-grams count the text that the model was trained on, cut by the model's own tokenizer, and both are asked for every
token of the test sets, </s> included. `results/perplexity.json` gets the perplexities.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from seq2see.scoring.card import machine
from seq2see.tasks.table import load_language
from seq2see.text import corpora
from seq2see.text.ngrams import NGrams

HERE = Path(__file__).parent
ORDERS = (1, 2, 3, 4, 5)


def measured(folder: Path) -> dict[str, Any]:
    model = load_language(folder, task="language")
    tokenizer, card = (
        model.tokenizers.target,
        json.loads((folder / "scorecard.json").read_text(encoding="utf-8")),
    )
    corpus = corpora.load(model.recipe.data, None)
    read = {
        name: [tokenizer.encode(target) for _, target in parallel.pairs]
        for name, parallel in {"train": corpus.train, **corpus.tests}.items()
    }
    found: dict[str, dict[str, float]] = {name: {} for name in corpus.tests}
    for order in ORDERS:
        counted = NGrams(order, len(tokenizer), read["train"])
        for name in corpus.tests:
            found[name][f"{order}-grams"] = counted.perplexity(read[name])
            print(
                f"{folder.name}, {name}, {order}-grams: {found[name][f'{order}-grams']:.2f}",
                flush=True,
            )
    for name in corpus.tests:
        assert not card["tests"][name]["left_out"], f"{folder}: {name} was not read whole"
        found[name]["Transformer"] = card["tests"][name]["perplexity"]
    return {
        "recipe": card["recipe"],
        "training": card["training"],
        "vocabulary": len(tokenizer),
        "tests": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, action="append", required=True, help="a model of task language"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results" / "perplexity.json")
    given = parser.parse_args()
    result = {
        "models": {folder.name: measured(folder) for folder in given.model},
        "machine": machine(),
    }
    given.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
