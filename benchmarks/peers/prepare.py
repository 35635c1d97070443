"""What all systems are given: the same batches to train on, the same weights and sentences to translate."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from systems import SHORTLIST

from seq2see.batches import collate, padding_share, plan
from seq2see.ct2.export import export
from seq2see.files import sha256
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import score
from seq2see.tasks.table import load
from seq2see.tasks.text import encode, fitting
from seq2see.tasks.translator import Translator
from seq2see.text import corpora, tokenizers
from seq2see.text.vocab import SPECIALS

RECIPE = "multi30k-annotated"
SIZES = {
    "base": {"layers": 6, "width": 512, "feed_forward": 2048, "heads": 8},
    "small": {"layers": 3, "width": 256, "feed_forward": 1024, "heads": 4},
    "tiny": {"layers": 1, "width": 32, "feed_forward": 64, "heads": 2},  # to try the workers out
}
DEV = 100  # pairs of a development set that nobody looks at
PARITY = 16  # sentences on which the copied weights must give our logits
TEST = "test_2016_flickr"

Facts = dict[str, Any]


def training(folder: Path) -> Facts:
    """Write the batches of the recipe's first epoch: as ids, as files of words, and for us as pairs with a recipe.

    A word is written `w17` for its id 17, so that no system cuts or normalises it; `w3` is in no vocabulary.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipe = Recipe.load(RECIPE)
    corpus = corpora.load(recipe.data, None)
    pair, _ = tokenizers.cached(
        recipe.tokenizer,
        recipe.data.source,
        recipe.data.target,
        corpus.train.pairs,
        folder / "tokenizer",
    )
    encoded = encode(recipe, pair, corpus.train)
    pairs = [encoded[line] for line in fitting(encoded, recipe.data.max_length, "train")]
    batches = plan(pairs, recipe.train, epoch=1)
    accumulate, sentences = recipe.train.accumulate, recipe.train.batch_sentences
    whole = len(pairs) // (accumulate * sentences) * accumulate
    updates = [batches[start : start + accumulate] for start in range(0, whole, accumulate)]
    lines = [line for update in updates for batch in update for line in batch]
    _lines(folder / "pairs.jsonl", pairs)
    _lines(
        folder / "updates.jsonl",
        [[[pairs[i] for i in batch] for batch in update] for update in updates],
    )
    tokens = [sum(len(pairs[i][1]) + 1 for batch in update for i in batch) for update in updates]
    (folder / "tokens.json").write_text(json.dumps(tokens), encoding="utf-8")
    recipe.save(folder / "recipe.toml")
    for side, name in enumerate(("source", "target")):
        _words(folder / f"train.{name}", [pairs[i][side] for i in lines])
        _words(folder / f"dev.{name}", [pairs[i][side] for i in lines[:DEV]])
        ids = range(len(SPECIALS), len((pair.source, pair.target)[side]))
        _words(folder / f"vocabulary.{name}", [[id] for id in ids])
    return {
        "source_size": len(pair.source),
        "target_size": len(pair.target),
        "batch_sentences": sentences,
        "accumulate": accumulate,
        "dropout": recipe.model.dropout,
        "label_smoothing": recipe.train.label_smoothing,
        "padding": padding_share(pairs, batches[:whole]),
    }


def overrides(size: str) -> list[str]:
    """The recipe's keys for another model size."""
    values = dict(SIZES[size])
    values["encoder_layers"] = values["decoder_layers"] = values.pop("layers")
    return [f"model.{key}={value}" for key, value in values.items()]


def translation(folder: Path, model: Path, known: Facts | None) -> tuple[Facts, list[str]]:
    """Write weights, sentences, logits to compare with and an export; give the job's facts and the references.

    `known` is what was found of the export that earlier rounds used, if there were any.
    """
    folder.mkdir(parents=True, exist_ok=True)
    translator = load(model, "cpu")
    recipe, config = translator.recipe, translator.recipe.model
    wrong = [
        f"{name} is {value!r}, not {needed!r}"
        for name, value, needed in (
            ("model.norm", config.norm, "pre"),
            ("model.tie", recipe.tie, "all"),
            ("model.positions", config.positions, "sinusoidal"),
            ("layers of encoder and decoder", config.encoder_layers, config.decoder_layers),
        )
        if value != needed
    ]
    if wrong or not (model / "tokenizer.model").is_file():
        raise SystemExit(
            f"{model}: cannot be copied to every peer: {'; '.join(wrong) or 'it needs SentencePiece'}"
        )
    corpus = corpora.load(recipe.data, None)
    test = corpus.tests[TEST]
    (folder / "sources.txt").write_text(
        "\n".join(source for source, _ in test.pairs), encoding="utf-8"
    )
    shutil.copy(model / "tokenizer.model", folder / "tokenizer.model")
    tokenizer = translator.tokenizers.target
    pieces = [tokenizer.piece(id) for id in range(len(SPECIALS), len(tokenizer))]
    (folder / "pieces.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    weights = translator.model.state_dict()
    np.savez(folder / "weights.npz", **{name: tensor.numpy() for name, tensor in weights.items()})
    np.savez(folder / "parity.npz", **_parity(translator, test.pairs))
    sum_ = sha256(model / "model.safetensors")
    facts = {
        "model": {
            "layers": config.encoder_layers,
            "width": config.width,
            "feed_forward": config.inner,
            "heads": config.heads,
            "vocabulary": len(tokenizer),
            "norm_epsilon": torch.nn.LayerNorm(1).eps,
        },
        "model_directory": str(model.resolve()),
        "weights_sha256": sum_,
        "exported": _exported(folder, model, sum_, corpus, known),
        "decode": recipe.decode.model_dump(),
    }
    return facts, [target for _, target in test.pairs]


def _exported(
    folder: Path, model: Path, sum_: str, corpus: corpora.Corpus, known: Facts | None
) -> Facts:
    """What was found of two exports to CTranslate2, without and with a shortlist: those known and there, or new ones.

    They are calibrated on the machine as it is now, and their price is measured, both on the validation set.
    """
    path = folder / "exported.json"
    there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if (
        known
        and there == known | {"weights_sha256": sum_}
        and known.get("ct2-shortlist", {}).get("shortlist") == SHORTLIST
    ):
        return known
    path.unlink(missing_ok=True)
    sources, references = zip(*corpus.val.pairs, strict=True)
    found = {}
    for name, shortlist in (("ct2", 0), ("ct2-shortlist", SHORTLIST)):
        shutil.rmtree(folder / name, ignore_errors=True)
        options = {
            "sources": sources,
            "references": references,
            "shortlist": shortlist,
            "pairs": corpus.train.pairs,
        }
        found[name] = export(model, folder / name, quantization="int8", **options)
        found[name].pop("out")
    path.write_text(json.dumps(found | {"weights_sha256": sum_}), encoding="utf-8")
    return found


def bleu(outputs: list[str], references: list[str]) -> float:
    return score(outputs, references).bleu


def _parity(translator: Translator, pairs: list[corpora.Pair]) -> dict[str, np.ndarray]:
    """Our logits for given translations."""
    ids = [
        (translator.tokenizers.source.encode(source), translator.tokenizers.target.encode(target))
        for source, target in pairs[:PARITY]
    ]
    batch = collate(ids, range(len(ids)))
    with torch.inference_mode():
        logits = translator.model.eval()(batch)
    return {
        "source": batch.source.numpy(),
        "target": batch.target_in.numpy(),
        "logits": logits.numpy(),
    }


def _words(path: Path, rows: list[list[int]]) -> None:
    path.write_text(
        "".join(" ".join(f"w{id}" for id in row) + "\n" for row in rows), encoding="utf-8"
    )


def _lines(path: Path, values: Iterable[Any]) -> None:
    """One a line, so that a worker can read them one by one."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
