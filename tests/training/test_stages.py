"""Stages of a job: a spinner on a terminal, plain lines elsewhere."""

import io
import re
import threading
import time

import pytest
from rich.console import Console

from seq2see.text.subwords import Subwords
from seq2see.training import stages
from seq2see.training.stages import Stages

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def lines_of(out: io.StringIO) -> list[str]:
    """Everything that was ever on the screen, line by line."""
    return [line for line in re.split(r"[\r\n]+", CONTROL.sub("", out.getvalue())) if line]


def test_without_a_terminal_a_stage_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    out, now = io.StringIO(), 0.0
    monkeypatch.setattr(stages.time, "monotonic", lambda: now)
    show = Stages(Console(file=out, soft_wrap=True))
    with show:
        show("reading pairs.tsv")
        show("reading pairs.tsv")
        for now in range(0, 30):
            show("encoding", now / 30)
    with show:
        show("reading pairs.tsv")
        show("encoding", 0.0)
    assert out.getvalue().splitlines() == [
        "reading pairs.tsv …",
        "encoding 7% · 0:28 left …",  # after two seconds, then every ten
        "encoding 40% · 0:18 left …",
        "encoding 73% · 0:08 left …",
        "reading pairs.tsv …",
    ]


def test_on_a_terminal_a_spinner_turns_while_the_work_is_opaque() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, soft_wrap=True)
    show = Stages(console)
    with show:
        show("training the tokenizer on 334,000 sentences")
        time.sleep(0.4)
        show(f"reading {'deep/' * 40}pairs.tsv")
        show("encoding the training pairs", 0.42)
        time.sleep(0.15)
    lines = lines_of(out)
    first = [line for line in lines if "training the tokenizer" in line]
    assert len({line[0] for line in first}) > 1, "the spinner stood still"
    assert re.fullmatch(r". training the tokenizer on 334,000 sentences 0:00:00", first[0])
    assert any("encoding the training pairs 42%" in line for line in lines)
    assert max(map(len, lines)) <= 80
    before = out.getvalue()
    show("drawing the examples of epoch 2", 0.5)  # the terminal belongs to the bar
    assert out.getvalue() == before


def test_the_spinner_turns_while_sentencepiece_trains() -> None:
    ticks: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.01):
            ticks.append(time.perf_counter())

    clock = threading.Thread(target=tick)
    clock.start()
    texts = [
        f"ein Satz Nummer {number} mit {number * 7919 % 1000} Wörtern" for number in range(20_000)
    ]
    started = time.perf_counter()
    Subwords.train(texts, "unigram", 500)
    spent = time.perf_counter() - started
    ended.set()
    clock.join()
    assert sum(tick > started for tick in ticks) > spent / 0.01 / 20, "the interpreter was blocked"


def test_the_job_begins_with_its_stages() -> None:
    before = time.perf_counter()
    assert before <= Stages(Console(file=io.StringIO())).started <= time.perf_counter()
