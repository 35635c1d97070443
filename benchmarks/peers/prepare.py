"""Input of all systems: the same batches to train on, the same weights and text to translate."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from systems import SHORTLIST

from seq2see.batches import TextExamples, collate, epoch_batches, padding_share, sizes_of
from seq2see.ct2.export import export
from seq2see.files import sha256
from seq2see.recipe.schema import Recipe
from seq2see.tasks.table import load
from seq2see.tasks.text import fitting
from seq2see.tasks.translate import Translate
from seq2see.tasks.translator import Translator
from seq2see.text import corpora, tokenizers
from seq2see.text.specials import SPECIALS

RECIPE = "multi30k-annotated"
SIZES = {
    "base": {"layers": 6, "width": 512, "feed_forward": 2048, "heads": 8},
    "small": {"layers": 3, "width": 256, "feed_forward": 1024, "heads": 4},
    "tiny": {"layers": 1, "width": 32, "feed_forward": 64, "heads": 2},  # a trial of the workers
}
DEV = 100  # pairs of a development set that some systems require
PARITY = 16  # sentences on which copied weights must reproduce our logits
TEST = "test_2016_flickr"

Facts = dict[str, Any]


def training(folder: Path) -> Facts:
    """Write the batches of the recipe's first epoch, as ids, as files of words and as pairs.

    A word with id 17 is written `w17`, so that no system splits or normalises it; `w3`, the unknown
    word, is in no vocabulary.
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
    encoded = Translate(recipe).encode(pair, corpus.train)
    pairs = [encoded[line] for line in fitting(sizes_of(encoded), recipe.data.max_length, "train")]
    lengths = TextExamples(pairs).lengths
    batches = epoch_batches(lengths, recipe.train, epoch=1)
    accumulate = recipe.train.accumulate
    sentences = recipe.train.batch_sentences
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
        "padding": padding_share(lengths, batches[:whole]),
    }


def overrides(size: str) -> list[str]:
    """Return the recipe overrides of a model size."""
    values = dict(SIZES[size])
    values["encoder_layers"] = values["decoder_layers"] = values.pop("layers")
    return [f"model.{key}={value}" for key, value in values.items()]


def translation(folder: Path, model: Path, known: Facts | None) -> tuple[Facts, list[str]]:
    """Write weights, sentences, expected logits and exports; return job facts and references.

    `known` are the facts of the exports that earlier rounds used, if any.
    """
    folder.mkdir(parents=True, exist_ok=True)
    translator = load(model, "cpu")
    recipe = translator.recipe
    config = recipe.model
    _check(model, recipe)
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
    digest = sha256(model / "model.safetensors")
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
        "weights_sha256": digest,
        "exported": _exported(folder, model, digest, corpus, known),
        "decode": recipe.decode.model_dump(),
    }
    return facts, [target for _, target in test.pairs]


def _check(model: Path, recipe: Recipe) -> None:
    """Refuse a model whose weights do not fit every peer."""
    config = recipe.model
    requirements = (
        ("model.norm", config.norm, "pre"),
        ("model.tie", recipe.tie, "all"),
        ("model.positions", config.positions, "sinusoidal"),
        ("layers of encoder and decoder", config.encoder_layers, config.decoder_layers),
    )
    wrong = [
        f"{name} is {value!r}, not {needed!r}"
        for name, value, needed in requirements
        if value != needed
    ]
    if not (model / "tokenizer.model").is_file():
        wrong.append("it needs SentencePiece")
    if wrong:
        raise SystemExit(f"{model}: cannot be copied to every peer: {'; '.join(wrong)}")


def _exported(
    folder: Path, model: Path, digest: str, corpus: corpora.Corpus, known: Facts | None
) -> Facts:
    """Export for CTranslate2 without and with a shortlist, or reuse the known exports.

    They are calibrated and their loss of BLEU is measured on the validation set.
    """
    path = folder / "exported.json"
    if known and path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        same_shortlist = known.get("ct2-shortlist", {}).get("shortlist") == SHORTLIST
        if stored == known | {"weights_sha256": digest} and same_shortlist:
            return known
    path.unlink(missing_ok=True)
    sources, references = zip(*corpus.val.pairs, strict=True)
    exports = {}
    for name, shortlist in (("ct2", 0), ("ct2-shortlist", SHORTLIST)):
        shutil.rmtree(folder / name, ignore_errors=True)
        options = {
            "sources": sources,
            "references": references,
            "shortlist": shortlist,
            "pairs": [*corpus.train.pairs],
        }
        exports[name] = export(model, folder / name, quantization="int8", **options)
        exports[name].pop("out")
    path.write_text(json.dumps(exports | {"weights_sha256": digest}), encoding="utf-8")
    return exports


def _parity(translator: Translator, pairs: list[corpora.Pair]) -> dict[str, np.ndarray]:
    """Return our logits under forced decoding of the references."""
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
    """Write one value per line, so that a worker can read them one by one."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
