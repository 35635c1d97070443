"""A drawn batch: the ids that training would collate, the shift, the padding and the masks."""

from pathlib import Path

import numpy
import pytest

from seq2see.errors import InputError
from seq2see.see import batch
from seq2see.text.specials import BEGIN, END, PAD


def test_captions_become_a_batch() -> None:
    drawn = batch.draw_lines([], None, sentences=3, longest=9, seed=2)
    one = drawn.batch
    assert one.source.shape[0] == 3 and one.source.shape[1] <= 10
    again = batch.draw_lines([], None, sentences=3, longest=9, seed=2).batch
    other = batch.draw_lines([], None, sentences=3, longest=9, seed=3).batch
    assert again.source.tolist() == one.source.tolist() != other.source.tolist()
    source, target_in, target_out = drawn.numbers()
    assert source.caption == "source (B, S): the encoder reads"
    assert [row[1] for row in target_in.rows] == ["<s> 0"] * 3
    for read, predicted in zip(target_in.rows, target_out.rows, strict=True):
        shifted = [cell for cell in read[2:] if cell != "<blank> 2"]
        assert predicted[1 : 1 + len(shifted)] == shifted
    assert drawn.report()[0].startswith("source (B, S): the encoder reads, (3, ")


def test_the_figure_shows_kinds_and_masks() -> None:
    drawn = batch.draw_lines([], None, sentences=2, longest=12, seed=1)
    one = drawn.batch
    source, target_in, target_out, padding, causal = batch.draw(drawn).axes
    for axes, ids in (
        (source, one.source),
        (target_in, one.target_in),
        (target_out, one.target_out),
    ):
        kinds = numpy.asarray(axes.images[0].get_array())
        assert kinds.shape == tuple(ids.shape)
        for kind, special in enumerate((BEGIN, END, PAD), start=1):
            assert ((kinds == kind) == (ids == special).numpy()).all()
        assert len(axes.texts) == ids.numel()
    mask = numpy.asarray(padding.images[0].get_array())
    assert (mask == (one.source != PAD).numpy()).all()
    length = one.target_in.shape[1]
    triangle = numpy.tril(numpy.ones((length, length)))
    assert (numpy.asarray(causal.images[0].get_array()) == triangle).all()


def test_a_corpus_of_files_and_a_models_tokenizers(trained: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("drei acht\neins\nzwei zwei\n", encoding="utf-8")
    target.write_text("three eight\none\ntwo two\n", encoding="utf-8")
    aligned = batch.draw_lines([str(source), str(target)], trained, 3, 12, 1)
    assert sorted(
        aligned.tokenizers.target.decode(row) for row in aligned.batch.target_out.tolist()
    ) == [
        "one",
        "three eight",
        "two two",
    ]
    table = tmp_path / "a.tsv"
    table.write_text("drei acht\tthree eight\neins\tone\n", encoding="utf-8")
    assert batch.draw_lines([str(table)], trained, 2, 12, 1).batch.source.shape[0] == 2


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^--longest 1: 0 of the first 2,000 pairs are that short"
    ):
        batch.draw_lines([], None, 3, 1, 1)
    with pytest.raises(InputError, match=r"^CORPUS is a table or two aligned files, not 3 files"):
        batch.read(["a", "b", "c"], None)
    with pytest.raises(InputError, match=r"none\.tsv: no such file"):
        batch.read([str(tmp_path / "none.tsv")], None)
    (tmp_path / "empty.tsv").write_text("a\t\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"empty\.tsv: "):
        batch.read([str(tmp_path / "empty.tsv")], None)
