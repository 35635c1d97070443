"""Independence of a translation from those that share its batch, over HTTP on both engines."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
TEXTS = [" ".join(WORDS[place : place + 1 + place % 7]) + " 漢" * (place % 3) for place in range(9)]
REQUESTS = [
    *({"text": text, "n_best": 2} for text in TEXTS),
    *({"text": f"{text} eins", "n_best": 3} for text in TEXTS),
    *({"text": f"zwei {text}", "prefix": "five"} for text in TEXTS),
]


def translations(client: httpx.Client, request: dict[str, Any]) -> list[Any]:
    """Ask for a translation; return it and its alternatives."""
    response = client.post("/v1/translate", json=request)
    assert response.status_code == 200, response.text
    (row,) = response.json()["translations"]
    return row.get("alternatives", [row])


@pytest.mark.parametrize("engine", ["ct2", "torch"])
def test_translations_do_not_depend_on_who_shares_the_batch(
    start: Any, trained: Path, exported: Path, engine: str
) -> None:
    place = {"ct2": exported, "torch": trained}[engine]
    server = start("--model", f"toy={place}", "--engine", engine, "--cache", 0)
    alone = [translations(server.client, request) for request in REQUESTS]
    names = ("seq2see_batch_sentences_sum", "seq2see_batch_sentences_count")
    assert server.figure(names[0]) == server.figure(names[1]) == len(REQUESTS)
    order = random.Random(1).sample([*range(len(REQUESTS))] * 4, 4 * len(REQUESTS))
    with httpx.Client(base_url=server.url, timeout=30) as client, ThreadPoolExecutor(24) as pool:
        together = list(pool.map(lambda place: translations(client, REQUESTS[place]), order))
    sentences, batches = (server.figure(name) - len(REQUESTS) for name in names)
    assert sentences == len(order) and sentences > 1.3 * batches  # batches were shared
    for place, rows in zip(order, together, strict=True):
        assert [row["text"] for row in rows] == [row["text"] for row in alone[place]]
        for ours, expected in zip(rows, alone[place], strict=True):
            for key in ("score", "log_probability"):
                assert ours[key] == pytest.approx(expected[key], abs=1e-4)
