"""Long texts are split, translated and rejoined: one translation out for each text in."""

import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2see.decoding.hypotheses import Hypothesis
from seq2see.decoding.long_text import Translation, read_stream, split_text, translate
from seq2see.errors import InputError
from seq2see.tasks.translator import Translator
from seq2see.text.tokenizers import Tokenizers

LETTERS = st.text(st.sampled_from("ab.!? \t\u00a0é\u0958\U0001f600"), max_size=60)


@settings(deadline=None)
@given(text=LETTERS, limit=st.integers(1, 8))
def test_pieces_are_short_enough_and_hold_all_the_text(
    text: str, limit: int, translator: Translator
) -> None:
    tokenizer = translator.tokenizers.source
    pieces = split_text(text, tokenizer, limit, "de")
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(tokenizer.encode(piece)) <= limit or len(piece) == 1 for piece in pieces)
    assert len(pieces) == 1 or all(piece.strip() for piece in pieces)


def test_cuts_are_at_sentences_before_words(translator: Translator) -> None:
    tokenizer = translator.tokenizers.source
    text = "eins zwei. drei vier fünf! sechs"
    limit = max(len(tokenizer.encode(part)) for part in ("eins zwei.", "drei vier fünf! sechs"))
    assert split_text(text, tokenizer, limit, "de") == ["eins zwei.", "drei vier fünf!", "sechs"]
    limit = max(len(tokenizer.encode(part)) for part in ("eins zwei", "drei vier"))
    assert split_text("eins zwei drei vier", tokenizer, limit, "de") == ["eins zwei", "drei vier"]


def test_cuts_are_at_the_marks_of_the_language() -> None:
    characters: Any = SimpleNamespace(encode=list)
    text = "我是小明，你呢？他说：“好。”"
    assert split_text(text, characters, 9, "zh") == ["我是小明，你呢？", "他说：“好。”"]
    assert split_text(text, characters, 5, "zh") == ["我是小明，", "你呢？", "他说：", "“好。”"]
    text = "Am 3. Mai kam Dr. Ott. Er aß."
    assert split_text(text, characters, 25, "de") == ["Am 3. Mai kam Dr. Ott.", "Er aß."]


@pytest.mark.parametrize(
    ("line", "last", "pieces"),
    [
        ("天地玄黄。宇宙洪荒！日月？" * 800, "。！？", 2400),
        ("天地玄黄，宇宙洪荒，" * 1000, "，", 200),
        ("天地玄黄宇宙洪荒" * 1250, "天地玄黄宇宙洪荒", 200),
    ],
    ids=["sentences", "clauses", "no marks"],
)
def test_a_line_of_10000_characters_without_spaces(line: str, last: str, pieces: int) -> None:
    characters: Any = SimpleNamespace(encode=list)
    parts = split_text(line, characters, 100, "zh")
    assert "".join(parts) == line and len(line) >= 10_000
    assert max(map(len, parts)) <= 100 and len(parts) <= pieces
    assert all(part[-1] in last for part in parts)


def test_letters_keep_their_vowels_and_accents() -> None:
    characters: Any = SimpleNamespace(encode=list)
    parts = split_text("कि" * 50 + "e\u0301" * 50, characters, 9, "hi")
    assert not any(unicodedata.category(part[0]).startswith("M") for part in parts)
    assert split_text("e" + "\u0301" * 9, characters, 6, "en") == ["e" + "\u0301" * 4, "\u0301" * 5]


def test_a_stream_is_lines_of_utf8() -> None:
    stream = [
        "\ufeffeins\r\n".encode(),
        b"\n",
        "\ufeffzwei\u2028drei\x0c\n".encode(),
        b"\r\r\n",
        b"vier",
    ]
    assert list(read_stream(stream, "stdin")) == [
        "eins",
        "",
        "\ufeffzwei\u2028drei\x0c",
        "",
        "vier",
    ]
    assert list(read_stream([], "stdin")) == []
    lines = read_stream([b"eins\n", b"zw\xffei\n"], "here")
    assert next(lines) == "eins"
    with pytest.raises(InputError, match=r"^here:2: not UTF-8 at byte 2 of the line$"):
        next(lines)


def test_a_text_without_tokens_is_not_searched(translator: Translator) -> None:
    source: Any = SimpleNamespace(
        encode=lambda text: translator.tokenizers.source.encode(text.strip("\u200b"))
    )
    target = translator.tokenizers.target
    searched: list[list[list[int]]] = []

    def search(parts: list[list[int]]) -> list[list[Hypothesis]]:
        searched.append(parts)
        return [
            [Hypothesis(target.encode("two"), -1.0, -0.5), Hypothesis([], -2.0, -2.0)]
            for _ in parts
        ]

    warnings: list[str] = []
    texts = ["", "eins", "\u200b", " ", "drei vier. fünf sechs"]
    limit = len(source.encode("drei vier."))
    translations = translate(texts, search, Tokenizers(source, target), limit, 7, warnings.append)
    empty = [Translation("", 0.0, 0.0)]
    one = [Translation("two", -1.0, -0.5), Translation("", -2.0, -2.0)]
    two = [Translation("two two", -2.0, -1.0), Translation(" ", -4.0, -4.0)]
    assert translations == [empty, one, empty, empty, two]
    assert searched == [[source.encode(text) for text in ("eins", "drei vier.", "fünf sechs")]]
    assert warnings == [f"line 11: longer than the model's {limit} tokens; translated in 2 pieces"]
