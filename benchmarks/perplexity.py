"""Perplexity of n-grams and of a trained language model over the same tokens.

    python benchmarks/perplexity.py --model runs/captions-language --model runs/multi30k-language

The n-grams are counted on the model's training text, split by the model's own tokenizer; both
predict every token of the test sets, </s> included. Writes `results/perplexity.json`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from seq2see.scoring.card import machine
from seq2see.tasks.table import load_language
from seq2see.text import corpora
from seq2see.text.ngrams import NGrams

RESULTS = Path(__file__).parent / "results"
ORDERS = (1, 2, 3, 4, 5)


def measure(folder: Path) -> dict[str, Any]:
    """Return the perplexities of all models on every test set of a run."""
    model = load_language(folder, task="language")
    tokenizer = model.tokenizers.target
    card = json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))
    corpus = corpora.load(model.recipe.data, None)
    ids = {
        name: [tokenizer.encode(target) for _, target in parallel.pairs]
        for name, parallel in {"train": corpus.train, **corpus.tests}.items()
    }
    perplexities: dict[str, dict[str, float]] = {name: {} for name in corpus.tests}
    for order in ORDERS:
        ngrams = NGrams(order, len(tokenizer), ids["train"])
        for name, by_model in perplexities.items():
            perplexity = ngrams.perplexity(ids[name])
            by_model[f"{order}-grams"] = perplexity
            print(f"{folder.name}, {name}, {order}-grams: {perplexity:.2f}", flush=True)
    for name, by_model in perplexities.items():
        assert not card["tests"][name]["left_out"], f"{folder}: {name} was not scored completely"
        by_model["Transformer"] = card["tests"][name]["perplexity"]
    return {
        "recipe": card["recipe"],
        "training": card["training"],
        "vocabulary": len(tokenizer),
        "tests": perplexities,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, action="append", required=True, help="a model of task language"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "perplexity.json")
    options = parser.parse_args()
    result = {
        "models": {folder.name: measure(folder) for folder in options.model},
        "machine": machine(),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
