"""Word alignments from cross-attention."""

import pytest
import torch

from seq2see.see import alignment
from seq2see.text import captions


@pytest.mark.parametrize(
    ("pieces", "words", "expected"),
    [
        (["▁Der", "▁Hund", "▁rennt", "."], ["Der", "Hund", "rennt", "."], [0, 1, 2, 3]),
        (["▁D", "er", "▁Hu", "nd", "."], ["Der", "Hund", "."], [0, 0, 1, 1, 2]),
        (
            ["▁", "Der", "▁", "Hund"],
            ["Der", "Hund"],
            [0, 0, 1, 1],
        ),  # a lone space mark belongs to the word that follows
        (
            ["Der", "Hund", ",", "der"],
            ["Der", "Hund", ",", "der"],
            [0, 1, 2, 3],
        ),  # words, not subwords
    ],
)
def test_pieces_belong_to_the_word_they_spell(
    pieces: list[str], words: list[str], expected: list[int]
) -> None:
    assert alignment.word_of_piece(pieces, words) == expected


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (["▁", "狗", "在", "睡觉", "。"], "狗在睡觉。", [[0], [0], [1], [2, 3], [4]]),
        (["▁那只", "狗睡", "觉", "。"], "那只狗睡觉。", [[0, 1], [2, 3], [4], [5]]),
        (["▁The", "▁dog", "."], "The dog.", [[0], [1], [2]]),
    ],
)
def test_a_piece_of_chinese_may_spell_several_words(
    pieces: list[str], text: str, expected: list[list[int]]
) -> None:
    spelled = alignment.words_of_piece(pieces, captions.words(text))
    assert [[*words] for words in spelled] == expected


def test_the_words_that_a_piece_spells_share_its_weight() -> None:
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]])
    rows, columns = [range(0, 2), range(2, 3)], [range(0, 1), range(1, 3)]
    words = alignment.between_spelled_words(weights, rows, columns, (3, 3))
    expected = torch.tensor([[0.6, 0.15, 0.15], [0.6, 0.15, 0.15], [0.2, 0.35, 0.35]])
    assert torch.allclose(words, expected)
    assert alignment.links(words, by_source=True) == {(0, 0), (1, 2), (2, 2)}


def test_weights_between_words_are_summed_over_columns_and_averaged_over_rows() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [0.0, 0.4, 0.6]])
    words = alignment.between_words(weights, rows=[0, 0, 1], columns=[0, 1, 1], shape=(2, 2))
    assert torch.allclose(words, torch.tensor([[0.3, 0.7], [0.0, 1.0]]))


def test_the_end_of_the_sentence_is_not_a_word() -> None:
    weights = torch.tensor(
        [[0.2, 0.1, 0.7], [0.1, 0.3, 0.6], [0.3, 0.3, 0.4]]
    )  # last row and column: </s>
    words = alignment.between_words(weights, rows=[0, 1], columns=[0, 1], shape=(2, 2))
    assert torch.allclose(words, weights[:2, :2])
    assert alignment.links(words) == {(0, 0), (1, 1)}


def test_error_rate() -> None:
    gold = [{(0, 0), (1, 1)}, {(0, 0)}]
    assert alignment.error_rate(gold, gold) == 0
    assert alignment.error_rate([{(0, 1), (1, 0)}, {(1, 0)}], gold) == 1
    assert alignment.error_rate([{(0, 0)}, {(0, 0)}], gold) == pytest.approx(1 - 2 * 2 / 5)


def test_bytes_belong_to_the_word_of_their_character() -> None:
    pieces = ["▁a", "b", "▁", "<0xE9>", "<0xBE>", "<0x98>", "c", "▁d"]
    assert alignment.word_of_piece(pieces, ["ab", "龘c", "d"]) == [0, 0, 1, 1, 1, 1, 1, 2]
