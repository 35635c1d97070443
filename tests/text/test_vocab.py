"""Vocabulary: ids, special symbols, and the file of words."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.text.specials import BEGIN, END, PAD, SPECIALS, UNKNOWN
from seq2see.text.vocab import Vocab
from seq2see.text.words import read_vocab, write_vocab

COUNTS = Counter({"the": 5, "dog": 3, "a": 3, "barks": 2, "rare": 1})
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


def test_specials_come_first_then_falling_frequency_then_the_alphabet() -> None:
    vocab = Vocab.build(COUNTS, min_frequency=2, size=None)
    assert (BEGIN, END, PAD, UNKNOWN) == (0, 1, 2, 3)
    assert vocab.words(range(len(vocab))) == [*SPECIALS, "the", "a", "dog", "barks"]
    assert "dog" in vocab and "rare" not in vocab and "<s>" not in vocab


@pytest.mark.parametrize(("size", "length"), [(4, 4), (6, 6), (100, 9), (None, 9)])
def test_size_counts_the_specials(size: int | None, length: int) -> None:
    assert len(Vocab.build(COUNTS, min_frequency=1, size=size)) == length


def test_a_word_spelt_like_a_special_is_unknown() -> None:
    vocab = Vocab.build(COUNTS + Counter(dict.fromkeys(SPECIALS, 9)), min_frequency=1, size=None)
    assert vocab.ids([*SPECIALS, "dog", "cat"]) == [UNKNOWN] * 4 + [6, UNKNOWN]
    assert len(vocab) == 4 + len(COUNTS)


def test_an_id_out_of_range_is_unknown() -> None:
    vocab = Vocab.build(COUNTS, min_frequency=1, size=None)
    assert vocab.words([-1, len(vocab), 10**9]) == ["<unk>"] * 3


@given(counts=st.dictionaries(words, st.integers(1, 9)))
def test_saved_and_loaded_is_the_same(
    counts: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("vocab") / "words.txt"
    vocab = Vocab.build(Counter(counts), min_frequency=2, size=None)
    write_vocab(vocab, path)
    loaded = read_vocab(path)
    assert loaded.words(range(len(loaded))) == vocab.words(range(len(vocab)))
    kept = [word for word in counts if word in vocab]
    assert loaded.words(loaded.ids(kept)) == kept
    assert path.read_bytes().count(b"\n") == len(vocab)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"dog\ncat\n", "first lines must be <s>"),
        (b"<s>\n</s>\n<blank>\n<unk>\ndog", "not a vocabulary: .* must end with a line feed"),
        (b"<s>\n</s>\n<blank>\n<unk>\ndog\ncat\ndog\n", r"words.txt:7: 'dog' repeats line 5"),
        (b"<s>\n</s>\n<blank>\n<unk>\n\n", r"words.txt:5: an empty line"),
        (b"<s>\n</s>\n<blank>\n<unk>\n\xff\n", "not UTF-8 at byte 23"),
    ],
)
def test_a_broken_file_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vocab(tmp_path / "words.txt")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"words.txt: cannot read the vocabulary: No such file"):
        read_vocab(tmp_path / "words.txt")
