"""Batches for CTranslate2: every line once, and together only what is computed alike."""

from seq2see.ct2.batches import Setting, Shape, batches_of, padded_alike


def test_batches_hold_every_line_once_and_only_lines_that_are_computed_alike() -> None:
    setting = Setting(workers=2, threads=1, batch_tokens=40)
    shapes = (
        [Shape((1, 0), 3)] * 8 + [Shape((1, 2), 2)] * 3 + [Shape((3, 0), 200), Shape((1, 0), 9)]
    )
    batches = list(batches_of(shapes, 2, setting))
    assert sorted(i for batch in batches for i in batch) == list(range(13))
    assert all(len({shapes[i].kind for i in batch}) == 1 for batch in batches)
    assert [len(batch) for batch in batches] == [1, 3, 2, 5, 2]
    assert batches[2] == [12, 0]  # 40 tokens hold two lines of 9


def test_short_lengths_are_alike_in_classes_and_long_ones_alone() -> None:
    assert [padded_alike(n) == padded_alike(n + 1) for n in (7, 14, 15, 29, 30, 61)] == [
        *(True, False, True, True, False, True)
    ]
    assert len({padded_alike(n) for n in range(62, 200)}) == 138
