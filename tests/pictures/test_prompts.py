"""The format of diffusion models: any prompt and any file is taken or refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.pictures.prompted import LONGEST_PROMPT
from seq2see.pictures.prompts import FILE, PaintingFormat, check_prompt, words_of
from seq2see.pictures.scenes import Drawings
from seq2see.text.specials import PAD, UNKNOWN

FORMAT = PaintingFormat((3, 4, 6), ("a", "red", "star", ",", "größe"))
texts = st.text(max_size=30) | st.lists(st.sampled_from(["a", "RED", "star,", "x", "\n"])).map(
    " ".join
)


@given(prompts=st.lists(texts, max_size=3))
@example(prompts=["a star", "", "\ud800 red"])
def test_a_prompt_is_one_id_for_each_word(prompts: list[str]) -> None:
    ids = FORMAT.ids(prompts)
    assert ids.shape == (len(prompts), max([1, *(len(words_of(prompt)) for prompt in prompts)]))
    assert ids.dtype == torch.long
    for prompt, row in zip(prompts, ids, strict=True):
        words = words_of(prompt)
        assert (row != PAD).sum() == len(words)
        assert (row == UNKNOWN).sum() == len(FORMAT.unknown(prompt))


@given(prompt=texts, most=st.integers(1, 8))
def test_a_prompt_has_words_but_not_too_many(prompt: str, most: int) -> None:
    if 0 < len(words_of(prompt)) <= most:
        check_prompt(prompt, most, "prompt 1")
        return
    with pytest.raises(InputError) as refused:
        check_prompt(prompt, most, "prompt 1")
    assert str(refused.value).startswith("prompt 1 (") and "\n" not in str(refused.value)


def test_scenes_have_prompts_up_to_the_longest() -> None:
    lengths = {
        language: [
            len(words_of(drawing.prompt.text))
            for drawing in Drawings("train", 400, language, groups=3)
        ]
        for language in ("en", "de")
    }
    assert max(lengths["en"]) == LONGEST_PROMPT >= max(lengths["de"])


def test_a_format_is_saved_and_loaded(tmp_path: Path) -> None:
    FORMAT.save(tmp_path)
    assert PaintingFormat.load(tmp_path) == FORMAT


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)
damaged = st.fixed_dictionaries({}, optional={"shape": values, "words": values}).map(json.dumps)


@given(content=damaged.map(str.encode) | values.map(json.dumps).map(str.encode) | st.binary())
@example(content=b'{"shape": [3, Infinity, 4], "words": []}')
@example(content=b'{"shape": [3, 0, 4], "words": []}')
def test_any_other_file_is_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / FILE).write_bytes(content)
    try:
        loaded: Any = PaintingFormat.load(folder)
    except InputError as error:
        message = str(error)
        assert message.startswith(f"{folder / FILE}: ") and "\n" not in message
        return
    channels, height, width = loaded.shape
    assert channels in (1, 3) and height > 0 and width > 0
