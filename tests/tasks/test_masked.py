"""Task `masked`: hiding words, filling blanks, and unsuitable recipes."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import InputError
from seq2see.tasks.masked import hide
from seq2see.tasks.table import load_language, read_recipe
from seq2see.text.specials import MASK, PAD


def test_hiding_is_15_percent_in_80_10_10() -> None:
    counts, ids = Counter[str](), list(range(4, 104))
    for line in range(300):
        read, labels = hide(ids, random.Random(f"{line}"), 500)
        assert labels.pop() == PAD and len(read) == len(labels) == 100
        for before, after, label in zip(ids, read, labels, strict=True):
            if label == PAD:
                assert after == before
                continue
            assert label == before
            kind = "other" if after != before else "same"
            counts["mask" if after == MASK else kind] += 1
    assert counts.total() == 300 * 15
    assert counts["mask"] / 4500 == pytest.approx(0.8, abs=0.02)
    assert counts["other"] / 4500 == pytest.approx(0.1, abs=0.02)


def test_hiding_takes_one_word_of_a_short_sentence() -> None:
    for length in (1, 2, 3):
        _, labels = hide(list(range(4, 4 + length)), random.Random("a"), 500)
        assert sum(label != PAD for label in labels) == 1
    assert hide([], random.Random("a"), 500) == ([], [PAD])


def test_fill_gives_candidates_for_each_blank(call: Any, captions: Any) -> None:
    model = captions.model("masked")
    text = "<mask> Mann <mask>."
    code, out, error = call("fill", text, "--model", model, "--top", 3, "--json")
    assert (code, error) == (0, "")
    filled = json.loads(out)
    assert filled["source"] == text
    assert filled["text"].endswith(".") and "Mann" in filled["text"]
    assert [len(blank) for blank in filled["blanks"]] == [3, 3]
    for blank in filled["blanks"]:
        probabilities = [candidate["probability"] for candidate in blank]
        assert probabilities == sorted(probabilities, reverse=True) and 0 < sum(probabilities) <= 1
        tokens = {candidate["token"] for candidate in blank}
        assert not tokens & {"<s>", "</s>", "<blank>", "<unk>"}
    code, out, _ = call("fill", "--model", model, stdin=f"{text}\nDer <mask>\n".encode())
    assert code == 0 and out.splitlines()[0] == filled["text"] and len(out.splitlines()) == 5


def test_a_text_that_is_the_name_of_a_file_is_warned_of(
    call: Any, captions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "<mask>").touch()
    model = captions.model("masked")
    code, out, error = call("fill", "<mask>", "--model", model)
    assert code == 0 and out and error.endswith(f"seq2see fill --model {model} < '<mask>'\n")


def test_mistakes_in_filling_are_one_line(call: Any, captions: Any) -> None:
    model = captions.model("masked")
    says = f"seq2see: {'Der Mann.'!r} has no <mask> to fill\n"
    assert call("fill", "--model", model, "Der Mann.") == (2, "", says)
    code, out, error = call("fill", "--model", model, "<mask> " + "Mann " * 10_000)
    assert (code, out) == (2, "") and error.startswith("seq2see: 10001 tokens in '<mask> Mann Mann")
    says = "seq2see: stdin:2: not UTF-8 at byte 0 of the line\n"
    assert call("fill", "--model", model, stdin=b"Der <mask>\n\xff\n") == (2, "", says)


def test_fill_reads_lines_with_any_ending(call: Any, captions: Any) -> None:
    model = captions.model("masked")
    assert call("fill", "--model", model) == (0, "", "")  # no lines, no answers
    _, clean, _ = call("fill", "--model", model, stdin=b"Ein <mask>")
    _, marked, _ = call("fill", "--model", model, stdin=b"\xef\xbb\xbfEin <mask>\r\n")
    assert clean == marked != ""


def test_a_blank_is_one_token_wherever_it_stands(captions: Any) -> None:
    model: Any = load_language(captions.model("masked"))
    encode = model.tokenizers.target.encode
    assert model.blanked("Der <mask>.") == [*encode("Der"), MASK, *encode(".")]
    assert model.blanked("<mask><mask> Mann") == [MASK, MASK, *encode("Mann")]
    assert model.blanked(" <mask> ") == [MASK]


def test_a_blank_among_characters_is_one_and_the_space_before_it_stays(captions: Any) -> None:
    model = captions.train("masked", "characters", "tokenizer.kind=char", "data.limit=60", steps=1)
    ids = model.tokenizers.target.encode("Der e.")
    assert model.blanked("Der <mask>.") == [*ids[:-2], MASK, ids[-1]]


def test_a_blank_among_subwords_is_one_piece(captions: Any) -> None:
    settings = ("tokenizer.kind=unigram", "tokenizer.size=300", "data.limit=60")
    model = captions.train("masked", "subwords", *settings, steps=1)
    ids = model.blanked("Der <mask>.")
    assert ids[-2:] == [MASK, model.tokenizers.target.encode("Der.")[-1]]


def test_the_score_card_counts_hidden_words(captions: Any) -> None:
    captions.model("masked")
    scores = captions.card("masked")["tests"]["test"]
    assert scores["perplexity"] > 1 and 0 <= scores["accuracy"] <= 1
    assert 30 <= scores["tokens"] < 30 * 6
    (event,) = captions.log("masked", "validation")
    keys = ["event", "update", "epoch", "loss", "perplexity", "best", "seconds", "samples"]
    assert list(event) == keys
    assert any("<mask>" in given for given, _, _ in event["samples"])


def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    own_captions: Any, killed_after: Any
) -> None:
    settings = (
        "model.dropout=0.2",
        "tokenizer.kind=unigram",
        "tokenizer.size=300",
        "tokenizer.sampling=0.5",
        "train.checkpoint_every=2",
        "train.accumulate=2",
        "train.ema=0.5",
        "data.limit=60",
    )
    own_captions.train("masked", "whole", *settings, steps=5)
    for updates in (1, 3):
        with killed_after(updates):
            own_captions.train("masked", "parts", *settings, steps=5, resume=True)
    own_captions.train("masked", "parts", *settings, steps=5, resume=True)
    assert own_captions.equal("whole", "parts")
    says = r"was begun with task = 'masked' and cannot continue with 'language'"
    with pytest.raises(InputError, match=says):
        own_captions.train("language", "parts", steps=5, resume=True)


def test_a_masked_model_does_nothing_else(captions: Any) -> None:
    model = load_language(captions.model("masked"))
    for use in (model.generate, model.log_probabilities, model.classify):
        with pytest.raises(InputError, match=r"^a model of task 'masked' is for seq2see fill$"):
            use("a")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("data.labels=number", "data.labels is what task 'classify' predicts: give both, or neit"),
        ("model.decoder_layers=2", "task 'masked' is one stack of model.encoder_layers; leave"),
        ("model.kind=prefix", "task 'masked' is one stack of model.encoder_layers; leave model.ki"),
        ("train.choose=bleu", "train.choose 'bleu' is for task 'translate'; task 'masked' chooses"),
        ("reduce.kind=prune", "reduce.kind 'prune' is for encoders that are pooled or attended to"),
    ],
)
def test_impossible_recipes(own_captions: Any, override: str, says: str) -> None:
    path = own_captions.recipe("masked")
    with pytest.raises(InputError) as caught:
        read_recipe(path, [override])
    assert str(caught.value).startswith(f"{path}: {says}")
