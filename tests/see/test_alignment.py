"""Word alignments from cross-attention."""

import pytest
import torch

from seq2see.see import alignment


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
