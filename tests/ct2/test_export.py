"""Exports to CTranslate2 are verified; an unsupported model is refused and leaves nothing."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seq2see.ct2 import calibration, convert, parity
from seq2see.ct2 import engine as ct2
from seq2see.ct2 import export as module
from seq2see.ct2.convert import positions
from seq2see.ct2.engine import Engine, Setting
from seq2see.ct2.export import export
from seq2see.ct2.parity import Parity, compare, logged, sentences
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import search
from seq2see.errors import InputError, WorkError
from seq2see.models.build import build
from seq2see.recipe.schema import ModelConfig, Recipe, shipped
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text import tokenizers
from seq2see.text.tokenizers import Tokenizers
from seq2see.text.vocab import BEGIN, END, PAD, Vocab
from seq2see.text.words import Words
from seq2see.training.checkpoint import weights

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
        (one,), (other,) = engine.force([([5, 6, 7], [])]), engine.force([([7, 5, 6], [])])
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
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {
        "engine.json",
        "scorecard.json",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # and nothing beside it
    engine = ct2.load(tmp_path / "out")
    assert engine.recipe == Recipe.load(trained / "recipe.toml")
    assert engine.translate(["zwei vier", "drei acht eins"]) == ["two four", "three eight one"]
    about = json.loads((tmp_path / "out" / "engine.json").read_bytes())
    assert about["precision"] == quantization and about["cores"] == ct2.cores()
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


def test_the_sample_comes_from_the_text_or_the_log_and_never_changes(
    trained: Path, translator: Translator
) -> None:
    texts = logged(trained / "log.jsonl")
    assert texts and all(
        f"{text}\t" in (trained.parent / "pairs.tsv").read_text(encoding="utf-8") for text in texts
    )
    assert logged(trained / "none.jsonl") == []
    real, drawn = sentences(translator, ["zwei vier", " ", "acht " * 200])
    assert real == [translator.tokenizers.source.encode("zwei vier")]
    assert drawn == sentences(translator, [])[1] and [len(ids) for ids in drawn][::23] == [
        1,
        39,
    ]


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


def test_other_translations_are_let_pass_only_at_a_near_tie(
    exported: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = translator.tokenizers.source.encode("zwei vier"), translator.tokenizers.target
    engine = ct2.load(exported)
    (right,) = engine.hypotheses([source], Search(beam=1))
    wrong = [Hypothesis([*right[0].ids[:-1], target.encode("ten")[-1]], 0.0, 0.0)]
    monkeypatch.setattr(Engine, "hypotheses", lambda *_: [wrong])
    with pytest.raises(WorkError, match="of a greedy translation is"):
        compare(translator, engine, [source])
    cut = [Hypothesis(right[0].ids[:-1], 0.0, 0.0)]
    monkeypatch.setattr(Engine, "hypotheses", lambda *_: [cut])
    with pytest.raises(WorkError, match="is '</s>' instead of "):
        compare(translator, engine, [source])
    monkeypatch.setattr(parity, "_check_near_tie", lambda *_: None)
    assert compare(translator, engine, [source]) == Parity(
        len(right[0].ids) + 1 + 1 + 65 + 129, pytest.approx(0, abs=1e-4), 1, near_ties=1
    )


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
        with pytest.raises(
            InputError, match="exported for CTranslate2; it is for translate --engine ct2 alone"
        ):
            use()


def test_heads_of_another_width_are_named(toy: Any, translator: Translator) -> None:
    recipe = toy.recipe("model.width=12", "model.heads=3", "model.attention_width=24")
    with pytest.raises(
        InputError,
        match=r"^model.attention_width = 24 cannot be exported to CTranslate2: it takes .*12",
    ):
        convert.refuse(recipe, translator.tokenizers)


@pytest.mark.parametrize("key", ["kind", "norm", "score", "positions"])
def test_what_cannot_be_exported_is_named(translator: Translator, key: str) -> None:
    model = ModelConfig.model_construct(**(translator.recipe.model.model_dump() | {key: "rotary"}))
    recipe = translator.recipe.model_copy(update={"model": model})
    with pytest.raises(
        InputError, match=rf"^model.{key} = 'rotary' cannot be exported to CTranslate2; only "
    ):
        convert.refuse(recipe, translator.tokenizers)


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


def test_too_many_positions_are_named(toy: Any, translator: Translator) -> None:
    recipe = toy.recipe("data.max_length=10000", "decode.max_ratio=30.0")
    with pytest.raises(
        InputError, match=r"data.max_length = 10000 with decode.max_ratio = 30.0 allows .* 300010"
    ):
        convert.refuse(recipe, translator.tokenizers)


def test_positions_fit_the_longest_source_and_the_longest_translation(toy: Any) -> None:
    assert positions(toy.recipe("data.max_length=50", "decode.max_ratio=0.1")) == 51
    assert positions(toy.recipe("data.max_length=50", "decode.max_ratio=3.0")) == 160
    assert positions(toy.recipe("data.max_length=5", "decode.min_length=500")) == 501
    assert positions(toy.recipe("model.positions=learned", "model.max_positions=300")) == 300


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


def test_names_must_be_unique(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "pieces", lambda _: ["<s>", "a", "b", "a"])
    with pytest.raises(InputError, match="the vocabulary has 'a' twice"):
        convert.refuse(translator.recipe, translator.tokenizers)


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


@pytest.mark.parametrize("fastest", [Setting(3, 1, 4096), Setting(1, 3, 4096)])
def test_calibration_takes_the_fastest(
    exported: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch, fastest: Setting
) -> None:
    monkeypatch.setattr(calibration, "CALIBRATION", 120.0)
    monkeypatch.setattr(calibration, "cores", lambda: 3)
    tried: dict[Setting, list[int]] = {}
    clock = [0.0]

    def hypotheses(engine: Engine, sources: list[list[int]], config: Search) -> None:
        tried.setdefault(engine.setting, []).append(len(sources))
        if sum(map(len, tried.values())) == 5:  # disturb the first try of 4096 by workers
            clock[0] += 5.0
        if engine.setting == fastest:
            clock[0] += 1.0
        else:
            clock[0] += 1.5 if engine.setting.batch_tokens == 4096 else 2.0

    monkeypatch.setattr(Engine, "hypotheses", hypotheses)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    before = torch.get_num_threads()
    assert calibration.calibrate(exported, translator, [[5, 6]]) == fastest
    assert torch.get_num_threads() == before
    assert set(tried) == {
        *(Setting(3, 1, tokens) for tokens in calibration.BATCHES),
        Setting(1, 3, 4096),
    }
    assert tried[Setting(3, 1, 4096)] == [80, 80] and tried[Setting(1, 3, 4096)] == [
        80
    ]  # 16 took two seconds
