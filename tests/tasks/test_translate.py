"""A model directory in use: one out for one in, long lines in pieces, scores that agree, and wrong directories."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import search
from seq2see.errors import InputError, WorkError
from seq2see.models.directory import pick_device
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END, UNKNOWN

KNOWN = {
    "drei acht eins": "three eight one",
    "zwei vier": "two four",
    "neun sieben fünf zehn": "nine seven five ten",
}


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(
            trained, tmp_path / "copy", ignore=shutil.ignore_patterns("events", "checkpoints")
        )
    )


def test_a_trained_model_translates(translator: Translator) -> None:
    assert translator.translate(list(KNOWN)) == list(KNOWN.values())


def test_order_is_kept_and_blank_lines_stay_empty(translator: Translator) -> None:
    texts = ["", *KNOWN, "   ", "\t", *reversed(KNOWN), "\u3000\n"]
    expected = ["", *KNOWN.values(), "", "", *reversed(KNOWN.values()), ""]
    assert translator.translate(texts) == expected
    assert translator.translate([]) == [] and translator.translate([""]) == [""]


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=30), max_size=6))
def test_any_text_gives_one_text(texts: list[str], translator: Translator) -> None:
    found = translator.translate(texts, beam=2)
    assert len(found) == len(texts)
    assert all((output == "") or text.strip() for text, output in zip(texts, found, strict=True))


def test_long_lines_are_translated_in_pieces_and_said_so(translator: Translator) -> None:
    warnings: list[str] = []
    long = " ".join(["drei", "acht"] * 5000)
    texts = ["zwei vier", long, "", "x" * 5000, "drei acht eins"]
    found = translator.search(texts, beam=1, first_line=11, warn=warnings.append)
    assert [found[0][0].text, found[2][0].text, found[4][0].text] == [
        "two four",
        "",
        "three eight one",
    ]
    assert len(found[1][0].text.split()) >= 10_000 // 128 and len(found[3]) == 1
    first, second = warnings
    assert first.startswith("line 12: longer than the model's 128 tokens; translated in ")
    assert second.startswith("line 14: longer than the model's 128 tokens; translated in ")


def test_a_warning_goes_to_stderr(
    translator: Translator, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.translate(["zwei " * 200], beam=1)
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and error.startswith("line 1: longer than")


def test_n_best_comes_best_first_and_without_twins(translator: Translator) -> None:
    for found in translator.search(list(KNOWN), beam=4, n_best=3):
        assert len(found) == 3 and len({each.text for each in found}) > 1
        assert [each.score for each in found] == sorted(
            (each.score for each in found), reverse=True
        )
        assert all(each.log_probability < 0 for each in found)
    several = translator.translate(list(KNOWN), n_best=3)
    assert (
        [best[0] for best in several] == translator.translate(list(KNOWN)) == list(KNOWN.values())
    )


@pytest.mark.parametrize(("beam", "n_best"), [(2, 3), (0, 1), (-1, 1), (4, 0)])
def test_an_impossible_beam_is_refused(translator: Translator, beam: int, n_best: int) -> None:
    with pytest.raises(ValueError, match="n_best"):
        translator.search(["eins"], beam=beam, n_best=n_best)


def test_one_string_is_not_a_list_of_them(translator: Translator) -> None:
    with pytest.raises(TypeError, match="list of strings"):
        translator.translate("eins")


def test_forced_decoding_gives_the_probability_the_search_found(translator: Translator) -> None:
    source, target = translator.tokenizers.source, translator.tokenizers.target
    translator.model.eval()
    texts = [*KNOWN, "eins", "zehn zehn zehn zehn zehn zehn", "漢 Q"]
    checked = 0
    for beam in (1, 4):
        how = Search(beam, 0.6, translator.recipe.decode.max_ratio, min_length=beam)
        found = search(
            translator.model, list(map(source.encode, texts)), how, beam, translator.device
        )
        pairs = [
            (source.encode(text), each.ids)
            for text, some in zip(texts, found, strict=True)
            for each in some
        ]
        expected = [each.log_probability for some in found for each in some]
        assert [each.log_probability for each in translator.force(pairs)] == pytest.approx(
            expected, abs=1e-4
        )
        for text, some in zip(texts, found, strict=True):
            for each in some:
                if (
                    target.encode(target.decode(each.ids)) == each.ids
                ):  # else the same text in an unusual cut
                    checked += 1
                    score = translator.score([text], [target.decode(each.ids)])[0]
                    assert score == pytest.approx(each.log_probability, abs=1e-4)
    assert checked >= 12


IDS = st.lists(st.integers(UNKNOWN, 40), max_size=9)


@settings(max_examples=30)
@given(pairs=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6))
def test_forced_decoding_is_one_step_after_the_other_whatever_shares_the_batch(
    pairs: list[tuple[list[int], list[int]]], translator: Translator
) -> None:
    model: Any = translator.model
    together = translator.force(pairs)
    assert len(together) == len(pairs)
    for (source, target), found in zip(pairs, together, strict=True):
        with torch.inference_mode():
            state = model.start(model.encode(torch.tensor([[*source, END]])))
            expected, last = [], BEGIN
            for id in (*target, END):
                logits, state = model.step(state, torch.tensor([[last]]))
                expected.append(float(logits[0, -1].log_softmax(-1)[id]))
                last = id
        assert found.log_probabilities == pytest.approx(expected, abs=1e-4)
        assert (
            found.log_probability == pytest.approx(sum(expected), abs=1e-4)
            and max(found.log_probabilities) <= 0
        )
        assert found.tokens == [*map(translator.tokenizers.target.piece, target), "</s>"]
        alone = translator.force([(source, target)])[0]
        assert alone.log_probabilities == pytest.approx(found.log_probabilities, abs=1e-4)


def test_equal_pairs_score_equal_to_the_last_bit(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.tasks.translate.SCORED_TOKENS", 16)  # many batches
    sources = [*KNOWN, "acht " * 9, *KNOWN, "eins"]
    targets = [*KNOWN.values(), "eight " * 9, *KNOWN.values(), "ten"]
    first = translator.score_tokens(sources, targets)
    assert first[: len(KNOWN)] == first[len(KNOWN) + 1 : -1]
    monkeypatch.undo()
    scores = [each.log_probability for each in first]
    assert translator.score(sources, targets) == pytest.approx(scores, abs=1e-4)


def test_tokens_and_their_probabilities_make_up_the_score(translator: Translator) -> None:
    (found,) = translator.score_tokens(["zwei vier"], ["two four"])
    assert "".join(found.tokens) == "▁two▁four</s>" and len(found.log_probabilities) == len(
        found.tokens
    )
    assert (
        found.log_probability
        == sum(found.log_probabilities)
        == translator.score(["zwei vier"], ["two four"])[0]
    )
    assert translator.score([], []) == []
    assert "<unk>" in translator.score_tokens(["eins"], ["漢"])[0].tokens


def test_an_empty_text_is_the_end_alone(translator: Translator) -> None:
    empty, nothing, blank = translator.score_tokens(["zwei vier", "", " "], ["", "", " "])
    assert empty.tokens == nothing.tokens == ["</s>"] and nothing == blank
    assert translator.score_tokens([""], ["two"])[0].log_probability < 0


def test_the_right_translation_scores_above_wrong_ones(translator: Translator) -> None:
    right, wrong, empty = translator.score(["zwei vier"] * 3, ["two four", "four two", ""])
    assert right > wrong and right > empty


def test_what_cannot_be_scored(translator: Translator) -> None:
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        translator.score(["a"], ["b", "c"])
    with pytest.raises(TypeError, match="list of strings"):
        translator.score("a", "b")
    limit, fits = 128, "漢 " * 64  # a space mark and an unknown letter each
    assert len(translator.tokenizers.target.encode(fits)) == limit
    translator.score([fits], [fits])
    with pytest.raises(
        InputError, match=r"sources\[1\]: 130 tokens; the model takes at most data.max_length = 128"
    ):
        translator.score(["eins", fits + "漢"], ["one", "two"])
    with pytest.raises(InputError, match=r"targets\[0\]: 130 tokens"):
        translator.score(["eins"], [fits + "漢"])
    with pytest.raises(InputError, match=r"^lines.txt:2: 130 tokens"):
        translator.ids("target", ["one", fits + "漢"], Path("lines.txt"))


def test_companions_in_the_batch_change_nothing(translator: Translator) -> None:
    alone = [translator.search([text])[0][0] for text in KNOWN]
    together = translator.search([*KNOWN, "acht " * 40, "sieben"])
    for one, found in zip(alone, together, strict=False):
        assert one.text == found[0].text
        assert one.log_probability == pytest.approx(found[0].log_probability, abs=1e-4)


@pytest.mark.parametrize("target", [None, "three eight", "drei Q", ""])
def test_an_explanation_names_every_row_and_column(
    translator: Translator, target: str | None
) -> None:
    found = translator.explain("drei acht eins", target)
    assert found.target == ("three eight one" if target is None else target)
    source, reads, writes = len(found.source_tokens), len(found.target_in), len(found.target_out)
    assert found.source_tokens[-1] == found.target_out[-1] == "</s>" and found.target_in[0] == "<s>"
    assert found.target_in[1:] == found.target_out[:-1]
    assert "".join(found.source_tokens[:-1]).replace("▁", " ").strip() == "drei acht eins"
    assert {name: tuple(weights.shape) for name, weights in found.weights.items()} == {
        "encoder.0.self": (2, source, source),
        **{f"decoder.{i}.self": (2, reads, reads) for i in (0, 1)},
        **{f"decoder.{i}.cross": (2, writes, source) for i in (0, 1)},
    }
    for weights in found.weights.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert not found.weights["decoder.1.self"].triu(1).any()


def test_what_cannot_be_explained(translator: Translator) -> None:
    with pytest.raises(InputError, match="empty"):
        translator.explain(" ")
    with pytest.raises(InputError, match="more than the model's 128 tokens"):
        translator.explain("eins " * 200)


def test_unknown_letters_are_one_known_token(translator: Translator) -> None:
    assert UNKNOWN in translator.tokenizers.source.encode("漢")
    assert len(translator.translate(["漢", "eins 漢"])) == 2


@pytest.mark.parametrize(
    "name", ["recipe.toml", "model.safetensors", "tokenizer.json", "tokenizer.model"]
)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(InputError) as caught:
        load(copy, "cpu")
    assert name in str(caught.value) and str(copy) in str(caught.value)


def test_an_unfinished_run_says_how_to_go_on(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    (copy / "checkpoints").mkdir()
    with pytest.raises(InputError, match="its training is not finished; go on with --resume"):
        load(copy, "cpu")


@pytest.mark.parametrize("damage", ["empty", "short", "garbage", "header", "pickle"])
def test_corrupt_weights_are_refused(copy: Path, damage: str) -> None:
    path = copy / "model.safetensors"
    content = path.read_bytes()
    if damage == "pickle":
        torch.save({"a": torch.zeros(1)}, path)
    else:
        damaged = {
            "empty": b"",
            "short": content[:-8],
            "garbage": b"\xff" * 99,
            "header": content[:8] + b"[" + content[9:],
        }
        path.write_bytes(damaged[damage])
    with pytest.raises(InputError, match=r"model.safetensors: cannot read the weights"):
        load(copy, "cpu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("decoder_layers = 2", "decoder_layers = 1", "unknown weight 'decoder.1."),
        ("decoder_layers = 2", "decoder_layers = 3", "no weight 'decoder.2."),
        ("width = 32", "width = 16", "has shape "),
        ("heads = 2", "heads = 5", "must be divisible by model.heads"),
        ("[tokenizer]", "[tokenizer]\njoint = false", "no weight 'source_embedding.weight'"),
    ],
)
def test_a_recipe_that_does_not_fit_the_weights_is_refused(
    copy: Path, old: str, new: str, says: str
) -> None:
    path = copy / "recipe.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as caught:
        load(copy, "cpu")
    assert says in str(caught.value) and str(copy) in str(caught.value)


def test_two_vocabularies_do_not_fit_a_recipe_with_one(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", "train.steps=1", "tokenizer.joint=false", "tokenizer.size=40")
    path = tmp_path / "run" / "recipe.toml"
    path.write_text(path.read_text().replace("joint = false", "joint = true"))
    with pytest.raises(
        InputError,
        match=r"recipe.toml and tokenizer.json do not fit: tie 'all' needs one vocabulary",
    ):
        load(tmp_path / "run", "cpu")


@pytest.mark.parametrize("beam", [1, 4])
def test_broken_weights_are_said_in_one_line(copy: Path, beam: int) -> None:
    path = copy / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    safetensors.torch.save_file(
        {name: tensor * torch.nan for name, tensor in weights.items()}, path
    )
    with pytest.raises(WorkError, match="its weights are broken"):
        load(copy, "cpu").translate(["eins", "zwei"], beam=beam)
    with pytest.raises(WorkError, match="its weights are broken"):
        load(copy, "cpu").score(["eins"], ["one"])


def test_no_such_directory_and_no_such_device(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(InputError, match="nothing: no such model directory"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"not a model directory: it has no recipe.toml"):
        load(tmp_path)
    with pytest.raises(InputError, match="device 'abacus' is not one of auto, cpu"):
        load(trained, "abacus")
    with pytest.raises(InputError, match="device '' is not one of"):
        pick_device("")
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda", "mps")


def test_the_picture_is_of_what_the_model_wrote_not_of_its_text_cut_anew(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = [
        translator.tokenizers.target.encode(letter)[-1] for letter in "one"
    ]  # a cut that encode never makes
    monkeypatch.setattr(
        "seq2see.tasks.translate.search", lambda *_, **__: [[Hypothesis(letters, -1.0, -1.0)]]
    )
    found = translator.explain("eins")
    assert found.target_out == [*map(translator.tokenizers.target.piece, letters), "</s>"]
    assert found.target == translator.tokenizers.target.decode(letters)


def test_a_given_translation_beyond_the_model_is_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="the translation has more than the model's 128 tokens"):
        translator.explain("eins", "one " * 200)
