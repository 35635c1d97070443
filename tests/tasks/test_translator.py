"""A translation model in use: one line out for one in, long lines, scores, explanations."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.search import search
from seq2see.errors import InputError
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END, UNKNOWN

KNOWN = {
    "drei acht eins": "three eight one",
    "zwei vier": "two four",
    "neun sieben fünf zehn": "nine seven five ten",
}


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
    outputs = translator.translate(texts, beam=2)
    assert len(outputs) == len(texts)
    assert all((output == "") or text.strip() for text, output in zip(texts, outputs, strict=True))


def test_long_lines_are_translated_in_pieces_with_a_warning(translator: Translator) -> None:
    warnings: list[str] = []
    long = " ".join(["drei", "acht"] * 5000)
    texts = ["zwei vier", long, "", "x" * 5000, "drei acht eins"]
    results = translator.search(texts, beam=1, first_line=11, warn=warnings.append)
    outputs = [translations[0].text for translations in results]
    assert [outputs[0], outputs[2], outputs[4]] == ["two four", "", "three eight one"]
    assert len(outputs[1].split()) >= 10_000 // 128 and len(results[3]) == 1
    first, second = warnings
    assert first.startswith("line 12: longer than the model's 128 tokens; translated in ")
    assert second.startswith("line 14: longer than the model's 128 tokens; translated in ")


def test_a_warning_goes_to_stderr(
    translator: Translator, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.translate(["zwei " * 200], beam=1)
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and error.startswith("line 1: longer than")


def test_n_best_are_distinct_and_best_first(translator: Translator) -> None:
    for translations in translator.search(list(KNOWN), beam=4, n_best=3):
        assert len(translations) == 3
        assert len({translation.text for translation in translations}) > 1
        scores = [translation.score for translation in translations]
        assert scores == sorted(scores, reverse=True)
        assert all(translation.log_probability < 0 for translation in translations)
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


def test_forced_decoding_gives_the_probability_of_the_search(translator: Translator) -> None:
    source, target = translator.tokenizers.source, translator.tokenizers.target
    translator.model.eval()
    texts = [*KNOWN, "eins", "zehn zehn zehn zehn zehn zehn", "漢 Q"]
    checked = 0
    for beam in (1, 4):
        config = Search(beam, 0.6, translator.recipe.decode.max_ratio, min_length=beam)
        sources = [source.encode(text) for text in texts]
        results = search(translator.model, sources, config, beam, translator.device)
        hypotheses = [
            (text, hypothesis)
            for text, best in zip(texts, results, strict=True)
            for hypothesis in best
        ]
        forced = translator.force([(source.encode(text), best.ids) for text, best in hypotheses])
        for (text, hypothesis), scored in zip(hypotheses, forced, strict=True):
            expected = pytest.approx(hypothesis.log_probability, abs=1e-4)
            assert scored.log_probability == expected
            output = target.decode(hypothesis.ids)
            if target.encode(output) == hypothesis.ids:  # else an unusual segmentation
                checked += 1
                assert translator.score([text], [output])[0] == expected
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
    for (source, target), scored in zip(pairs, together, strict=True):
        with torch.inference_mode():
            state = model.start(model.encode(torch.tensor([[*source, END]])))
            expected, last = [], BEGIN
            for id in (*target, END):
                logits, state = model.step(state, torch.tensor([[last]]))
                expected.append(float(logits[0, -1].log_softmax(-1)[id]))
                last = id
        assert scored.log_probabilities == pytest.approx(expected, abs=1e-4)
        assert scored.log_probability == pytest.approx(sum(expected), abs=1e-4)
        assert max(scored.log_probabilities) <= 0
        assert scored.tokens == [*map(translator.tokenizers.target.piece, target), "</s>"]
        alone = translator.force([(source, target)])[0]
        assert alone.log_probabilities == pytest.approx(scored.log_probabilities, abs=1e-4)


def test_equal_pairs_score_equal_to_the_last_bit(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seq2see.tasks.translator.SCORED_TOKENS", 16)  # many batches
    sources = [*KNOWN, "acht " * 9, *KNOWN, "eins"]
    targets = [*KNOWN.values(), "eight " * 9, *KNOWN.values(), "ten"]
    first = translator.score_tokens(sources, targets)
    assert first[: len(KNOWN)] == first[len(KNOWN) + 1 : -1]
    monkeypatch.undo()
    scores = [scored.log_probability for scored in first]
    assert translator.score(sources, targets) == pytest.approx(scores, abs=1e-4)


def test_the_score_is_the_sum_over_the_tokens(translator: Translator) -> None:
    (scored,) = translator.score_tokens(["zwei vier"], ["two four"])
    assert "".join(scored.tokens) == "▁two▁four</s>"
    assert len(scored.log_probabilities) == len(scored.tokens)
    (score,) = translator.score(["zwei vier"], ["two four"])
    assert scored.log_probability == sum(scored.log_probabilities) == score
    assert translator.score([], []) == []
    assert "<unk>" in translator.score_tokens(["eins"], ["漢"])[0].tokens


def test_an_empty_text_is_scored_as_its_end_alone(translator: Translator) -> None:
    empty, nothing, blank = translator.score_tokens(["zwei vier", "", " "], ["", "", " "])
    assert empty.tokens == nothing.tokens == ["</s>"] and nothing == blank
    assert translator.score_tokens([""], ["two"])[0].log_probability < 0


def test_the_right_translation_scores_above_wrong_ones(translator: Translator) -> None:
    right, wrong, empty = translator.score(["zwei vier"] * 3, ["two four", "four two", ""])
    assert right > wrong and right > empty


def test_texts_that_cannot_be_scored_are_refused(translator: Translator) -> None:
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
    for one, translations in zip(alone, together, strict=False):
        best = translations[0]
        assert one.text == best.text
        assert one.log_probability == pytest.approx(best.log_probability, abs=1e-4)


@pytest.mark.parametrize("target", [None, "three eight", "drei Q", ""])
def test_an_explanation_names_every_row_and_column(
    translator: Translator, target: str | None
) -> None:
    explanation = translator.explain("drei acht eins", target)
    assert explanation.target == ("three eight one" if target is None else target)
    source, reads, writes = (
        len(explanation.source_tokens),
        len(explanation.target_in),
        len(explanation.target_out),
    )
    assert (
        explanation.source_tokens[-1] == explanation.target_out[-1] == "</s>"
        and explanation.target_in[0] == "<s>"
    )
    assert explanation.target_in[1:] == explanation.target_out[:-1]
    assert "".join(explanation.source_tokens[:-1]).replace("▁", " ").strip() == "drei acht eins"
    assert {name: tuple(weights.shape) for name, weights in explanation.weights.items()} == {
        "encoder.0.self": (2, source, source),
        **{f"decoder.{i}.self": (2, reads, reads) for i in (0, 1)},
        **{f"decoder.{i}.cross": (2, writes, source) for i in (0, 1)},
    }
    for weights in explanation.weights.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert not explanation.weights["decoder.1.self"].triu(1).any()


def test_texts_that_cannot_be_explained_are_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="empty"):
        translator.explain(" ")
    with pytest.raises(InputError, match="more than the model's 128 tokens"):
        translator.explain("eins " * 200)


def test_unknown_letters_are_one_known_token(translator: Translator) -> None:
    assert UNKNOWN in translator.tokenizers.source.encode("漢")
    assert len(translator.translate(["漢", "eins 漢"])) == 2


def test_an_explanation_has_the_models_own_segmentation(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = translator.tokenizers.target
    letters = [target.encode(letter)[-1] for letter in "one"]  # `encode` never segments it so
    hypotheses = [[Hypothesis(letters, -1.0, -1.0)]]
    monkeypatch.setattr("seq2see.tasks.translator.search", lambda *_, **__: hypotheses)
    explanation = translator.explain("eins")
    assert explanation.target_out == [*map(target.piece, letters), "</s>"]
    assert explanation.target == target.decode(letters)


def test_a_given_translation_beyond_the_model_is_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="the translation has more than the model's 128 tokens"):
        translator.explain("eins", "one " * 200)
