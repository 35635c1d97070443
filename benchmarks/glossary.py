"""Cost of a glossary: how often a term comes out as wished, and the BLEU of all sentences.

    python benchmarks/glossary.py --model runs/multi30k

Each term has two translations: the one that the training references use most, and another one that
a user may wish for. A glossary of each kind is compared with none on a test set; its references use
the first kind. Writes `results/glossary.json`.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from seq2see.ct2.engines import load
from seq2see.scoring.bleu import score
from seq2see.scoring.card import machine
from seq2see.tasks.translation_engine import TranslationEngine
from seq2see.text import corpora
from seq2see.text.documents import Glossary, run, together, translate_document

RESULTS = Path(__file__).parent / "results"
TEST = "test_2016_flickr"
TERMS = {  # German → usual, other
    "Mann": ("man", "guy"),
    "Frau": ("woman", "lady"),
    "Mädchen": ("girl", "lass"),
    "Junge": ("boy", "lad"),
    "Männer": ("men", "guys"),
    "Frauen": ("women", "ladies"),
    "Kind": ("child", "kid"),
    "Kinder": ("children", "kids"),
    "Hund": ("dog", "hound"),
    "Hunde": ("dogs", "hounds"),
    "Straße": ("street", "road"),
    "Leute": ("people", "folks"),
    "Personen": ("people", "persons"),
    "Fahrrad": ("bike", "bicycle"),
    "Gebäude": ("building", "structure"),
    "Strand": ("beach", "shore"),
    "Gras": ("grass", "lawn"),
    "Tisch": ("table", "desk"),
    "Jacke": ("jacket", "coat"),
    "Stadt": ("city", "town"),
    "Feld": ("field", "meadow"),
    "Mütze": ("hat", "cap"),
    "Boden": ("ground", "floor"),
    "Berg": ("mountain", "hill"),
    "Menschenmenge": ("crowd", "throng"),
    "Foto": ("picture", "photo"),
    "Pferd": ("horse", "pony"),
    "Brille": ("glasses", "spectacles"),
    "Wald": ("forest", "woods"),
    "Auto": ("car", "automobile"),
}


def shares(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Count the pairs whose source has a term, and those whose reference has its translations."""
    counts = {}
    for term, translations in TERMS.items():
        references = [target for source, target in pairs if occurrences(term, source)]
        counts[term] = {
            "translations": translations,
            "pairs": len(references),
            "references": [
                sum(occurrences(translation, reference) > 0 for reference in references)
                for translation in translations
            ],
        }
    return counts


def occurrences(word: str, text: str) -> int:
    """Count a word in a text, in any case."""
    return sum(1 for _ in _alone(word).occurrences(text, 0, len(text)))


@cache
def _alone(word: str) -> Glossary:
    return Glossary({word: word})


def measure(
    translator: TranslationEngine,
    pairs: Sequence[tuple[str, str]],
    kind: int | None,
    known: dict[str, str],
) -> dict[str, Any]:
    """Translate with a glossary of a kind; count its terms, the texts asked for, and BLEU.

    Texts with a known translation are not translated again.
    """
    terms = {} if kind is None else {term: both[kind] for term, both in TERMS.items()}
    steps = together(
        translate_document(source, source="de", target="en", glossary=terms) for source, _ in pairs
    )
    rounds: list[int] = []

    def translate(texts: list[str]) -> list[str]:
        rounds.append(len(texts))
        new = [text for text in texts if text not in known]
        known.update(zip(new, translator.translate(new), strict=True))
        return [known[text] for text in texts]

    outputs = run(steps, translate)
    wanted: Counter[int] = Counter()
    there = 0
    for (source, _), output in zip(pairs, outputs, strict=True):
        for index in (0, 1):
            needs: Counter[str] = Counter()
            for term, both in TERMS.items():
                needs[both[index]] += occurrences(term, source)
            for translation, times in needs.items():
                wanted[index] += min(times, occurrences(translation, output))
        there += sum(occurrences(term, source) for term in TERMS)
    scores = score(outputs, [target for _, target in pairs])
    return {
        "occurrences": there,
        "usual": wanted[0],
        "other": wanted[1],
        "bleu": scores.bleu,
        "signature": scores.signature,
        "texts_by_round": rounds,
        "outputs": outputs[:20],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a model of Multi30k, de → en")
    parser.add_argument("--out", type=Path, default=RESULTS / "glossary.json")
    options = parser.parse_args()
    translator = load(options.model)
    corpus = corpora.load(translator.recipe.data, None)
    pairs = list(corpus.tests[TEST].pairs)
    card = json.loads((options.model / "scorecard.json").read_text(encoding="utf-8"))
    rows = {}
    known: dict[str, str] = {}
    for name, kind in (("none", None), ("usual", 0), ("other", 1)):
        rows[name] = measure(translator, pairs, kind, known)
        print(name, {key: rows[name][key] for key in ("usual", "other", "bleu")}, flush=True)
    result = {
        "test": TEST,
        "sentences": len(pairs),
        "terms": shares(list(corpus.train.pairs)),
        "rows": rows,
        "training": card["training"],
        "machine": machine(),
    }
    options.out.write_text(
        json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
