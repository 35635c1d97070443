"""Characters that are pieces, and those that are spelled in bytes."""

import random
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe, TokenizerConfig
from seq2see.text import alphabet, tokenizers
from seq2see.text.specials import UNKNOWN
from seq2see.text.subwords import Subwords

BYTE = re.compile("<0x[0-9A-F]{2}>")
COMMON = [chr(0x4E00 + n) for n in range(1500)]


def _texts() -> list[str]:
    """Sentences of 1,500 characters, the n-th about proportional to 1/n, and of numbers."""
    chance = random.Random(1)
    weights = [1 / (n + 1) for n in range(len(COMMON))]
    lines = ["".join(chance.choices(COMMON, weights, k=20)) for _ in range(3000)]
    return [f"{line}{number}天，१२३४" for number, line in enumerate(lines)]


TEXTS = _texts()
kinds = pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
MODELS = {kind: Subwords.train(TEXTS, kind, 3000, True, True) for kind in ("unigram", "char")}
MODELS["bpe"] = Subwords.train(TEXTS, "bpe", 2200, True, True)


@kinds
@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0▁"), max_size=20)
)
def test_any_text_comes_back_and_nothing_is_unknown(kind: str, text: str) -> None:
    model = MODELS[kind]
    ids = model.encode(text)
    assert UNKNOWN not in ids
    assert len(model.pieces(text)) == len(ids)
    composed = " ".join(unicodedata.normalize("NFC", text).split())
    assert model.decode(ids) == " ".join(composed.split())


@kinds
def test_numbers_are_spelled_digit_by_digit_in_any_script(kind: str) -> None:
    assert MODELS[kind].pieces("2024१२३") == ["▁", *"2024१२३"]


@kinds
def test_bytes_are_trained_where_characters_are_rare(kind: str) -> None:
    model = MODELS[kind]
    spelled = {piece for text in TEXTS for piece in model.pieces(text) if BYTE.fullmatch(piece)}
    assert len(spelled) > 20
    assert re.fullmatch(r"1,51\d characters; the \d+ rarest, seen .*, spelled in bytes", model.note)


def test_half_a_character_does_not_break_a_text() -> None:
    model = MODELS["unigram"]
    id_of = {model.piece(id): id for id in range(len(model))}
    assert model.decode([id_of["<0xE4>"], id_of["<0xBD>"]]) == "\ufffd" * 2
    assert model.decode([id_of["<0x0A>"], id_of["天"], id_of["<0x00>"]]) == "天\ufffd"


def test_few_characters_are_pieces_if_they_are_seen_three_times() -> None:
    counts = alphabet.characters(["aab", "abc", "bc"])
    assert counts == {"a": 3, "b": 3, "c": 2, alphabet.MARK: 3}
    assert alphabet.frequent(counts, 8000) == ["a", "b"]
    assert alphabet.frequent(counts, 258) == ["a"]  # half of what the bytes leave


def test_many_characters_are_pieces_up_to_the_coverage() -> None:
    counts = alphabet.characters(["".join(char * (2000 - n) for n, char in enumerate(COMMON))])
    chosen = alphabet.frequent(counts, 8000)
    spelled = sum(counts[char] for char in COMMON[len(chosen) :])
    assert chosen == COMMON[: len(chosen)]
    assert spelled <= 0.0005 * counts.total() < spelled + counts[chosen[-1]]


def test_long_lines_without_spaces_keep_the_mark_of_a_space() -> None:
    chance = random.Random(2)
    line = "".join(chance.choices("日月水火木金土", k=9000))
    model = Subwords.train([line], "unigram", 500, True, True)
    assert model.pieces("日 月") == ["▁", "日", "▁", "月"]
    assert model.decode(model.encode("日 月")) == "日 月"


@pytest.mark.parametrize(
    ("data", "size", "expected"),
    [
        ({"train": "a.tsv"}, None, (True, True)),
        ({"mix": {"a.tsv": 1.0}}, 2000, (True, True)),
        ({"train": "a.tsv"}, 1999, (False, True)),
        ({"corpus": "multi30k"}, None, (False, False)),
    ],
)
def test_the_default_depends_on_the_data(
    data: dict[str, object], size: int | None, expected: tuple[bool, bool]
) -> None:
    recipe = Recipe.model_validate(
        {"data": data, "tokenizer": {"size": size}, "train": {"steps": 1}}
    )
    keys = recipe.segmentation
    assert (keys.byte_fallback, keys.split_digits) == expected
    chosen = TokenizerConfig(size=size, byte_fallback=not expected[0], split_digits=not expected[1])
    keys = recipe.model_copy(update={"tokenizer": chosen}).segmentation
    assert (keys.byte_fallback, keys.split_digits) == (not expected[0], not expected[1])


def test_words_have_no_bytes() -> None:
    with pytest.raises(ValueError, match=r"tokenizer.byte_fallback is for subwords"):
        TokenizerConfig(kind="words", byte_fallback=True)


def test_the_note_on_the_characters_is_kept(tmp_path: Path) -> None:
    pairs = [(text, text) for text in TEXTS[:300]]
    config = TokenizerConfig(size=3000, byte_fallback=True, joint=False)
    trained, _ = tokenizers.cached(config, "zh", "ja", pairs, tmp_path)
    loaded, cached = tokenizers.cached(config, "zh", "ja", pairs, tmp_path)
    assert cached and loaded.notes == trained.notes
    assert [note[:4] for note in trained.notes] == ["zh: ", "ja: "]


def test_long_lines_of_the_training_text_are_not_skipped() -> None:
    model = Subwords.train(["日月水火" * 20_000], "unigram", 500)
    assert UNKNOWN not in model.encode("火水月日")


def test_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="no training text"):
        Subwords.train([], "unigram", 400, byte_fallback=True, split_digits=True)
