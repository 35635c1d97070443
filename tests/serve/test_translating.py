"""Encoding of texts: where it is done."""

import asyncio
import threading
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

from seq2see.serve.models import Models, Place, Served
from seq2see.serve.patience import Patience
from seq2see.serve.settings import Settings
from seq2see.serve.translating import MANY, Options, score_texts, translate_sentences
from seq2see.text.tokenizers import Tokenizer

LONG, SHORT = " " * MANY + "drei acht", "drei acht"


def watch(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> set[bool]:
    """Tell, as it happens, whether texts are encoded by the main thread."""
    seen: set[bool] = set()
    encode = type(tokenizer).encode

    def watched(self: Tokenizer, text: str) -> list[int]:
        seen.add(threading.current_thread() is threading.main_thread())
        return encode(self, text)

    monkeypatch.setattr(type(tokenizer), "encode", watched)
    return seen


async def _serve(trained: Path) -> Served:
    models = Models([Place("toy", trained)], "torch", Settings())
    models.serve(models.open())
    return next(iter(models))


@pytest.mark.parametrize(("text", "in_loop"), [(LONG, False), (SHORT, True)], ids=["long", "short"])
def test_long_texts_are_encoded_in_a_thread(
    trained: Path, monkeypatch: pytest.MonkeyPatch, text: str, in_loop: bool
) -> None:
    async def run() -> None:
        served = await _serve(trained)
        seen = watch(served.engine.tokenizers.source, monkeypatch)
        ((best,),) = await translate_sentences(served, [(text, "")], Options(4), Patience())
        assert best.text == "three eight"
        await score_texts(served, [text], ["three eight"], Patience())
        assert seen == {in_loop}

    asyncio.run(run())
