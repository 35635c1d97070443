"""Exports to CTranslate2 are verified; a failed one leaves nothing behind."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seq2see.ct2 import calibration, convert
from seq2see.ct2 import engine as ct2
from seq2see.ct2 import export as module
from seq2see.ct2.batches import Setting
from seq2see.ct2.engine import Engine
from seq2see.ct2.export import export
from seq2see.ct2.library import cores
from seq2see.ct2.parity import compare, sentences
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.errors import InputError, WorkError
from seq2see.models.build import build
from seq2see.models.weights import weights
from seq2see.recipe.schema import Recipe, shipped
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import tokenizers
from seq2see.text.history import History
from seq2see.text.specials import BEGIN, END, PAD
from seq2see.text.tokenizers import Tokenizers
from seq2see.text.vocab import Vocab
from seq2see.text.words import Words

KINDS = {
    "unigram": ["all", "target", "none"],
    "bpe": ["all"],
    "char": ["all"],
    "words": ["target", "none"],
    "two": ["target", "none"],
}


CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def short_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "CALIBRATION", 0.0)


def vocabulary(recipe: Recipe, toy: Any) -> Tokenizers:
    rows = [line.split("\t") for line in toy.pairs.read_text(encoding="utf-8").splitlines()]
    texts = [(source, target) for source, target in rows]
    return tokenizers.train(recipe.tokenizer, recipe.data.source, recipe.data.target, texts)


def untrained(recipe: Recipe, pair: Tokenizers, *, orderly: bool = False) -> Translator:
    """A model with random weights; an orderly one ends soon and never writes <s> or <blank>."""
    torch.manual_seed(5)
    model = build(recipe, len(pair.source), len(pair.target))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        if orderly:
            model.output.bias[[BEGIN, PAD]] = -30.0
            model.output.bias[END] += 4.0
    return Translator(recipe, pair, model, CPU)


def small(toy: Any, kind: str, *overrides: str) -> Recipe:
    tokenizer = {of: [f"tokenizer.kind={of}"] for of in ("words", "bpe", "char")} | {
        "two": ["tokenizer.joint=false"]
    }
    sizes = [
        "tokenizer.size=40",
        "data.max_length=20",
        "model.width=12",
        "model.heads=3",
        "model.feed_forward=20",
    ]
    return toy.recipe(*sizes, *tokenizer.get(kind, []), *overrides)


def converted(translator: Translator, folder: Path, quantization: str = "float32") -> Engine:
    convert.convert(translator, folder, quantization)
    return Engine(folder, translator.recipe, translator.tokenizers, Setting(1, 1, 2048))


def save(translator: Translator, folder: Path) -> Path:
    folder.mkdir()
    translator.recipe.save(folder / "recipe.toml")
    tokenizers.save(translator.tokenizers, folder, translator.recipe.tokenizer, "")
    safetensors.torch.save_file(weights(translator.model), folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("kind", "tie"), [(kind, tie) for kind, ties in KINDS.items() for tie in ties]
)
def test_every_model_a_recipe_can_describe_is_the_same(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tie: str
) -> None:
    if kind == "words":
        pytest.importorskip("spacy")
    # An untrained model is indifferent: with this patience CTranslate2 searches as far as ours.
    monkeypatch.setattr(ct2, "PATIENCE", 2)
    pair: Tokenizers | None = None
    scores = ("scaled_dot", "dot", "unscaled", "bilinear", "projected")
    more = [("pre", score, "learned", bias) for score in scores for bias in ("true", "false")]
    ways = itertools.product(
        ("pre", "post"), ("scaled_dot", "dot"), ("sinusoidal", "none"), ("true",)
    )
    for number, (norm, score, places, bias) in enumerate([*ways, *more]):
        settings = [
            f"model.norm={norm}",
            f"model.score={score}",
            f"model.positions={places}",
            f"model.tie={tie}",
        ]
        settings += [f"model.attention_bias={bias}", "model.max_positions=40"]
        recipe = small(toy, kind, *settings)
        pair = pair or vocabulary(recipe, toy)
        translator = untrained(recipe, pair)
        engine = converted(translator, tmp_path / str(number))
        real, drawn = sentences(translator, ["drei acht eins", "zwei", "漢 Q"])
        sources = [*real, *drawn]
        result = compare(translator, engine, sources)
        assert result.largest_difference < 1e-4 and result.translations == len(sources), settings
        orderly = untrained(recipe, pair, orderly=True)
        engine = converted(orderly, tmp_path / f"{number}.orderly")
        ours = search(orderly.model, sources, Search(beam=3), device=CPU)
        for (mine,), (other,) in zip(ours, engine.hypotheses(sources, Search(beam=3)), strict=True):
            assert other.score >= mine.score - 0.01, settings  # they stop by other rules


def translates(recipe: Recipe) -> bool:
    return recipe.task == "translate" and recipe.model.kind == "transformer"


@pytest.mark.parametrize("name", [name for name in shipped() if translates(Recipe.load(name))])
def test_every_shipped_transformer_can_be_exported(toy: Any, tmp_path: Path, name: str) -> None:
    sizes = ["model.width=16", "model.heads=2", "model.feed_forward=24", "tokenizer.size=60"]
    recipe = Recipe.load(name, sizes)
    if recipe.tokenizer.kind == "words":
        pytest.importorskip("spacy")
    model = save(untrained(recipe, vocabulary(recipe, toy), orderly=True), tmp_path / "model")
    export(model, tmp_path / "out")
    assert len(ct2.load(tmp_path / "out").translate(["drei acht eins", ""])) == 2


def test_the_order_of_words_matters_only_where_the_recipe_says_so(toy: Any, tmp_path: Path) -> None:
    for places in ("sinusoidal", "none"):
        recipe = small(toy, "unigram", f"model.positions={places}")
        engine = converted(untrained(recipe, vocabulary(recipe, toy)), tmp_path / places)
        one, other = engine.log_probabilities([([5, 6, 7], []), ([7, 5, 6], [])])
        assert (one == pytest.approx(other, abs=1e-5)) == (places == "none")


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_an_export_is_all_that_translating_needs(
    trained: Path, tmp_path: Path, quantization: str
) -> None:
    before = load(trained, "cpu").score(["zwei vier"], ["two four"])
    result = export(trained, tmp_path / "out", quantization=quantization)
    assert result["out"] == str(tmp_path / "out") and result["precision"] == quantization
    assert result["parity"]["largest_difference"] < 1e-4 and result["parity"]["near_ties"] == 0
    names = {
        "model.bin",
        "config.json",
        "shared_vocabulary.json",
        "recipe.toml",
        "tokenizer.json",
        "tokenizer.model",
        "lexicon.txt",
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {
        "engine.json",
        "history.safetensors",
        "scorecard.json",
    }
    whole, shipped = (History.load(path) for path in (trained, tmp_path / "out"))
    assert whole is not None and shipped is not None
    assert shipped.held_out.keys() == whole.held_out.keys() and not len(shipped.train)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # and nothing beside it
    engine = ct2.load(tmp_path / "out")
    assert engine.recipe == Recipe.load(trained / "recipe.toml")
    assert engine.translate(["zwei vier", "drei acht eins"]) == ["two four", "three eight one"]
    about = json.loads((tmp_path / "out" / "engine.json").read_bytes())
    assert about["precision"] == quantization and about["cores"] == cores()
    card = json.loads((tmp_path / "out" / "scorecard.json").read_bytes())
    assert card.pop("export") == {
        "precision": quantization,
        "shortlist": 0,
        "parity": result["parity"],
    }
    assert card == json.loads((trained / "scorecard.json").read_bytes())
    assert load(trained, "cpu").score(["zwei vier"], ["two four"]) == before


def test_quantizing_leaves_our_weights_alone(toy: Any, tmp_path: Path) -> None:
    recipe = small(toy, "unigram")
    translator = untrained(recipe, vocabulary(recipe, toy))
    before = {name: tensor.clone() for name, tensor in weights(translator.model).items()}
    sizes = [
        converted(translator, tmp_path / name, name)
        and (tmp_path / name / "model.bin").stat().st_size
        for name in ("int8", "float32")
    ]
    assert sizes[0] < sizes[1] / 1.5
    for name, tensor in weights(translator.model).items():
        assert torch.equal(tensor, before[name])


def test_the_cost_of_the_precision_is_measured(trained: Path, tmp_path: Path) -> None:
    sources = ["zwei vier", "neun sieben fünf zehn", "", "fünf"]
    references = ["two four", "nine seven five ten", "", "six"]
    result = export(trained, tmp_path / "out", sources=sources, references=references)
    assert result["bleu_float32"] == result["bleu"] > 20 and result["difference"] == 0.0
    assert "|tok:13a|" in result["signature"] and result["sentences"] == 4
    card = json.loads((tmp_path / "out" / "scorecard.json").read_bytes())["export"]
    assert card == {key: result[key] for key in card} and card["difference"] == 0.0


def wrong_weight(to: Any, norm: Any) -> None:
    to.gamma, to.beta = convert._copy(norm.weight) * 1.01, convert._copy(norm.bias)


def test_a_wrong_conversion_fails_and_leaves_nothing(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "_norm", wrong_weight)
    with pytest.raises(
        WorkError, match="the converted model is not ours: log p of a token differs by"
    ):
        export(trained, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage", [OSError(28, "No space left on device"), KeyboardInterrupt(), WorkError("no")]
)
def test_whatever_stops_it_leaves_nothing(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise damage

    monkeypatch.setattr(module, "calibrate", fail)
    with pytest.raises(type(damage)):
        export(trained, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_may_be_filled_and_a_full_one_not(
    trained: Path, exported: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    export(trained, tmp_path / "out")
    for out in (tmp_path / "out", exported, trained, Path(__file__)):
        with pytest.raises(InputError, match=r"already exists; an export needs a new folder"):
            export(trained, out)
    with pytest.raises(InputError, match=r"--out .*no/out: there is no folder .*no$"):
        export(trained, tmp_path / "no" / "out")
    with pytest.raises(InputError, match=r"--quantization 'int4' is not one of int8, float32"):
        export(trained, tmp_path / "other", quantization="int4")


def test_an_export_cannot_be_exported_nor_opened_by_torch(exported: Path, tmp_path: Path) -> None:
    for use in (lambda: load(exported, "cpu"), lambda: export(exported, tmp_path / "out")):
        with pytest.raises(InputError, match=r"an export for CTranslate2, .* give the model"):
            use()


def test_a_least_length_is_named(trained: Path, tmp_path: Path) -> None:
    model = Path(
        shutil.copytree(
            trained, tmp_path / "model", ignore=shutil.ignore_patterns("events", "checkpoints")
        )
    )
    with (model / "recipe.toml").open("a") as file:
        file.write("[decode]\nmin_length = 2\n")
    with pytest.raises(InputError, match=r"^decode.min_length = 2: must be 0 for CTranslate2"):
        export(model, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_letter_of_many_tokens_is_no_crash(toy: Any, tmp_path: Path) -> None:
    recipe = small(toy, "unigram", "data.max_length=1")
    translator = untrained(recipe, vocabulary(recipe, toy))
    engine = converted(translator, tmp_path / "model")
    assert len(translator.tokenizers.source.encode("漢")) > 1
    (ours,), (theirs,) = translator.search(["漢"], beam=1), engine.search(["漢"], beam=1)
    assert ours[0].text == theirs[0].text


def test_odd_words_keep_their_ids(toy: Any, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    words = [
        "\u2028",
        "\r",
        "\xa0",
        "  ",
        '"',
        "\\",
        "\x07",
        "\ufeff",
        "漢",
        "e\u0301",
        "é",
        "4",
        "<",
        "<s",
        "\U0001f600",
    ]
    pair = Tokenizers(Words(Vocab(words), "de"), Words(Vocab(words[::-1]), "en"))
    recipe = small(toy, "words")
    translator = untrained(recipe, pair)
    result = compare(
        translator, converted(translator, tmp_path / "model"), sentences(translator, [])[1]
    )
    assert result.largest_difference < 1e-4


@pytest.mark.parametrize("content", [b"{", b"[]"])
def test_a_broken_scorecard_is_named(trained: Path, tmp_path: Path, content: bytes) -> None:
    model = Path(
        shutil.copytree(
            trained, tmp_path / "model", ignore=shutil.ignore_patterns("events", "checkpoints")
        )
    )
    (model / "scorecard.json").write_bytes(content)
    with pytest.raises(InputError, match=r"scorecard.json: not "):
        export(model, tmp_path / "out")
