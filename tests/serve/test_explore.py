"""The explorer over HTTP: its numbers are the models' own, its bounds hold, translation goes on."""

import asyncio
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from seq2see.ct2 import engine as ct2
from seq2see.serve import explore_requests as requests
from seq2see.serve import explore_schemas as schemas
from seq2see.serve import explore_views
from seq2see.serve.app import build
from seq2see.serve.hosts import Hosts
from seq2see.serve.models import Models, Place
from seq2see.serve.patience import Patience
from seq2see.serve.problems import ClientGone
from seq2see.serve.settings import Limits, Settings
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator

TEXT = "drei acht eins"
LOOK = {"text": TEXT, "beam": 3}
HEAD = LOOK | {"layer": "decoder.1.cross", "head": 1}
OFF = [{"layer": "decoder.0.cross", "head": 0}]
ROUTES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "translate": (LOOK | {"n_best": 3}, requests.TranslateLook, schemas.Translation),
    "attention": (LOOK | {"target": "two"}, requests.Look, schemas.Attention),
    "head": (HEAD, requests.HeadLook, schemas.HeadWeights),
    "heads": (LOOK | {"off": OFF}, requests.Look, schemas.Ranking),
    "beam": (LOOK | {"length_penalty": 1.5}, requests.BeamLook, schemas.Beams),
    "layers": (LOOK, requests.Look, schemas.Layers),
    "anatomy": (LOOK, requests.Look, schemas.Anatomy),
    "by-hand": (HEAD | {"query": 1}, requests.ByHandLook, schemas.ByHand),
    "training": (HEAD, requests.HeadLook, schemas.Training),
    "attribution": (LOOK | {"method": "erasure"}, requests.AttributionLook, schemas.Attribution),
}


@pytest.fixture(scope="module")
def both(siblings: list[Path]) -> list[Translator]:
    return [load(directory, "cpu") for directory in siblings]


def see(server: Any, route: str, **body: Any) -> Any:
    response = server.client.post(f"/v1/explore/{route}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def error(server: Any, route: str, body: Any) -> str:
    response = server.client.post(f"/v1/explore/{route}", json=body)
    assert response.status_code == 422
    message: str = response.json()["error"]
    assert "\n" not in message
    return message


def test_the_models_say_what_can_be_seen(pair: Any, both: list[Translator]) -> None:
    answer = pair.client.get("/v1/explore").json()
    assert schemas.Explorables.model_validate(answer).model_dump() == answer
    for name, model, translator in zip("ab", answer["models"], both, strict=True):
        assert (model["name"], model["source"], model["target"]) == (name, "de", "en")
        assert model["available"] and model["reason"] is None and model["kind"] == "transformer"
        total = sum(parameter.numel() for parameter in translator.model.parameters())
        assert model["parameters"] == total
        assert model["maps"] == [
            {"kind": "encoder.self", "layers": 1, "heads": 2},
            {"kind": "decoder.self", "layers": 2, "heads": 2},
            {"kind": "decoder.cross", "layers": 2, "heads": 2},
        ]
        assert model["checkpoints"] == [15, 30, 45, 60] and model["gold"] is False
        assert (model["beam"], model["length_penalty"]) == (4, 0.6)
        assert {"erasure", "gradient", "attention"} <= set(model["methods"])


@pytest.mark.parametrize("route", ROUTES)
def test_every_view_is_that_of_its_own_model(pair: Any, both: list[Translator], route: str) -> None:
    body, request, schema = ROUTES[route]
    views = []
    for name, translator in zip("ab", both, strict=True):
        view = see(pair, route, model=name, **body)
        assert schema.model_validate(view).model_dump() == view  # as the description says
        ours = json.loads(json.dumps(explore_views.view(route, translator, request(**body))))
        for timed in (view, ours):
            timed.pop("seconds", None)
        assert view == ours
        views.append(view)
    if route != "anatomy":
        assert views[0] != views[1]
    assert see(pair, route, **body).keys() >= views[0].keys()  # the first is the default


def test_looking_changes_no_translation(pair: Any) -> None:
    body = {"text": [TEXT, "zwei vier"], "beam": 3, "n_best": 3}
    before = pair.client.post("/v1/translate", json=body).json()
    view = see(pair, "translate", **LOOK, n_best=3)
    see(pair, "heads", **LOOK)
    assert pair.client.post("/v1/translate", json=body).json() == before
    best = before["translations"][0]["alternatives"]
    assert [one["text"] for one in view["hypotheses"]] == [one["text"] for one in best]


def test_rows_sum_to_one_and_later_positions_are_zero(pair: Any) -> None:
    view = see(pair, "head", **LOOK | {"layer": "decoder.0.self", "head": 1, "target": "one two"})
    for row, mask in zip(view["weights"], view["mask"], strict=True):
        assert sum(row) == pytest.approx(1.0, abs=1e-6)
        assert all(seen or weight == 0 for weight, seen in zip(row, mask, strict=True))


def test_a_prefix_a_forbidden_token_and_a_head_that_is_off(pair: Any) -> None:
    free = see(pair, "translate", **LOOK)
    assert see(pair, "translate", **LOOK, prefix="nine")["text"].startswith("nine")
    banned = free["steps"][0]["token"]
    for route in ("translate", "beam"):
        view = see(pair, route, **LOOK, forbidden=[banned], prefix="")
        tokens = view.get("nodes") or [{"token": one} for one in view["target"]["pieces"]]
        assert banned not in {one["token"] for one in tokens}
    off = see(pair, "translate", **LOOK, target=free["text"], off=OFF)
    on = see(pair, "translate", **LOOK, target=free["text"], off=[])
    assert off["log_probability"] != on["log_probability"]


def test_a_beam_of_one_is_the_greedy_path(pair: Any) -> None:
    tree = see(pair, "beam", text=TEXT, beam=1)
    assert all(node["greedy"] for node in tree["nodes"]) and tree["left_greedy"] is None
    greedy = see(pair, "translate", text=TEXT, beam=1)
    assert [node["token"] for node in tree["nodes"][1:]] == greedy["target"]["pieces"]


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("attention", {"text": " "}, "text: it is empty"),
        ("attention", {"text": "a" * 2001}, "text: String should have at most 2000 characters"),
        ("attention", {"text": "漢 " * 100}, "the text has 200 tokens; at most 128 can be"),
        ("attention", LOOK | {"target": "漢 " * 65}, "the translation has 130 tokens; at most 128"),
        ("attention", LOOK | {"beam": 17}, "beam is 17; at most 16 is allowed"),
        ("attention", LOOK | {"beam": 0}, "beam: "),
        ("attention", LOOK | {"model": "c"}, "model is not one of a, b"),
        ("attention", LOOK | {"colour": 1}, "colour: Extra inputs are not permitted"),
        ("attention", LOOK | {"off": [{"layer": "x", "head": 0}]}, "layer: it must be one of"),
        ("attention", LOOK | {"off": [{"layer": "x"}]}, "off.0.head: Field required"),
        ("attention", LOOK | {"off": OFF * 1025}, "off: List should have at most 1024 items"),
        ("translate", LOOK | {"n_best": 4}, "n_best is 4; it must be at most the beam, 3"),
        ("translate", LOOK | {"forbidden": ["zwölf"]}, "forbidden[0]: it is no token"),
        ("translate", LOOK | {"forbidden": ["a"] * 101}, "forbidden: List should have at most 100"),
        ("translate", LOOK | {"forbidden": ["</s>"]}, "</s> cannot be forbidden"),
        ("translate", LOOK | {"prefix": "漢 " * 64}, "the prefix has 128 tokens; at most 127"),
        ("beam", LOOK | {"length_penalty": -1}, "length_penalty: "),
        ("head", HEAD | {"head": 2}, "head is 2; decoder.1.cross has heads 0 to 1"),
        ("head", LOOK, "layer: Field required"),
        ("by-hand", HEAD | {"query": 1000}, "query is 1000; the layer has"),
        ("training", HEAD | {"layer": "decoder.5.cross"}, "layer: it must be one of"),
        ("attribution", LOOK | {"method": "magic"}, "method is not one of erasure, "),
        ("layers", [], "body: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_request_names_its_mistake(pair: Any, route: str, body: Any, message: str) -> None:
    assert message in error(pair, route, body)


def test_an_export_says_that_nothing_is_to_be_seen(exported: Path, start: Any) -> None:
    running = start("--model", f"toy={exported}")
    (model,) = running.client.get("/v1/explore").json()["models"]
    assert not model["available"] and model["reason"].startswith("this model is an export; ")
    assert model["maps"] == model["methods"] == model["checkpoints"] == []
    assert error(running, "attention", LOOK) == model["reason"]


def test_a_server_waits_for_torch_only_when_it_is_looked_into() -> None:
    program = "import sys, seq2see.serve.app; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_the_token_is_asked_for(local: Any) -> None:
    port = local(token="a" * 16).port
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        assert client.get("/v1/explore").status_code == 401
        assert client.post("/v1/explore/layers", json=LOOK).status_code == 401
        known = client.get("/v1/explore", headers={"authorization": f"Bearer {'a' * 16}"})
        assert known.json() == {"models": []}
        paths = client.get("/openapi.json").json()["paths"]
    described = [route for path in paths if "/explore" in path for route in paths[path].values()]
    assert len(described) == len(ROUTES) + 5  # the list, and the views of test_explore_others
    assert all(route["security"] for route in described)


Calls = Callable[[httpx.AsyncClient, Models], Any]


def within(directory: Path, calls: Calls, engine: Any = None, **limits: float) -> Any:
    """Run calls of a client in the process of its server, of one model "a"."""
    place = Place("a", directory)
    models = Models([place], "torch", Settings(Limits(**limits)))  # type: ignore[arg-type]

    async def run() -> Any:
        models.serve([(place, "ct2", engine)] if engine else models.open())
        transport = httpx.ASGITransport(build(models, Hosts())[0])
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await calls(client, models)

    return asyncio.run(run())


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Let the view `layers` wait until the event is set."""
    event = threading.Event()

    def wait(translator: Translator, asked: Any) -> dict[str, Any]:
        event.wait(20)
        return {}

    monkeypatch.setitem(explore_views.VIEWS, "layers", wait)
    yield event
    event.set()


def test_sixteen_may_wait_and_the_next_is_told_to_try_later(
    siblings: list[Path], gate: threading.Event
) -> None:
    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        async def ask() -> httpx.Response:
            return await client.post("/v1/explore/layers", json=LOOK)

        asked = [asyncio.ensure_future(ask()) for _ in range(17)]  # one runs, sixteen wait
        await asyncio.sleep(0.1)
        refused = await ask()
        translated = await client.post("/v1/translate", json={"text": TEXT})
        gate.set()
        return refused, translated, await asyncio.gather(*asked)

    refused, translated, answered = within(siblings[0], calls)
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert translated.status_code == 200  # which does not wait for the explorer
    assert {response.status_code for response in answered} == {200}


def test_a_request_past_its_deadline_leaves_the_queue(
    siblings: list[Path], gate: threading.Event
) -> None:
    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        late = [client.post("/v1/explore/layers", json=LOOK) for _ in range(17)]
        statuses = [response.status_code for response in await asyncio.gather(*late)]
        gate.set()
        return statuses, await client.post("/v1/explore/anatomy", json=LOOK)

    statuses, after = within(siblings[0], calls, deadline=2.0)
    assert set(statuses) == {504} and after.status_code == 200


@pytest.mark.parametrize("ends", ["deadline", "client"])
def test_a_long_view_stops_when_its_request_has_ended(
    siblings: list[Path], monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    stopped = threading.Event()

    def passes(translator: Translator, asked: Any, check: Callable[[], object]) -> dict[str, Any]:
        try:
            for _ in range(2000):  # of 20 seconds
                check()
                time.sleep(0.01)
        except Exception:
            stopped.set()
            raise
        return {}

    monkeypatch.setitem(explore_views.LONG_VIEWS, "heads", passes)
    waiting: list[Patience] = []
    real = Patience.add

    def add(self: Patience, ticket: Any) -> None:
        waiting.append(self)
        real(self, ticket)

    monkeypatch.setattr(Patience, "add", add)

    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        late = asyncio.ensure_future(client.post("/v1/explore/heads", json=LOOK))
        if ends == "client":
            await asyncio.sleep(0.3)
            waiting[0].end(ClientGone())
        await asyncio.wait([late])
        after = await client.post("/v1/explore/anatomy", json=LOOK)  # by the same worker
        return late, after

    late, after = within(siblings[0], calls, deadline=10.0 if ends == "client" else 2.0)
    assert stopped.is_set() and after.status_code == 200
    if ends == "deadline":
        assert late.result().status_code == 504


@pytest.mark.parametrize("method", ["gradient", "integrated"])
def test_an_attribution_stops_between_two_passes(both: list[Translator], method: str) -> None:
    asked = requests.AttributionLook(**LOOK, method=method)
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        if len(checks) == 3:
            raise ClientGone

    if method == "gradient":  # one before the view, one before its only pass
        assert explore_views.view("attribution", both[0], asked, check)["values"]
        assert len(checks) == 2
    else:
        with pytest.raises(ClientGone):
            explore_views.view("attribution", both[0], asked, check)
    assert not both[0].model._forward_pre_hooks


def test_a_damaged_checkpoint_is_named_by_its_update_alone(
    siblings: list[Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(siblings[0], run)
    (run / "checkpoints" / "update-00000030" / "weights.safetensors").write_bytes(b"torn")

    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        return await client.post("/v1/explore/training", json=HEAD)

    answer = within(run, calls)
    assert answer.status_code == 422 and "the checkpoint of update 30 " in answer.json()["error"]
    assert str(tmp_path) not in answer.text and "safetensors" not in answer.text


def test_a_model_served_by_another_engine_is_opened_by_pytorch(
    siblings: list[Path], both: list[Translator], exported: Path
) -> None:
    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        served = (await client.get("/v1/models")).json()["models"][0]
        return served, (await client.post("/v1/explore/translate", json=LOOK)).json()

    served, view = within(siblings[0], calls, engine=ct2.load(exported))
    assert served["engine"] == "ct2"
    ours = explore_views.VIEWS["translate"](both[0], requests.TranslateLook(**LOOK))
    assert view == json.loads(json.dumps(ours))


def test_a_text_that_is_none_is_refused(pair: Any) -> None:
    body = b'{"text": "\\ud800"}'
    headers = {"content-type": "application/json"}
    response = pair.client.post("/v1/explore/layers", content=body, headers=headers)
    assert response.status_code == 422
    assert response.json()["error"].startswith("text: Input should be a valid string")


def test_a_reload_drops_what_was_opened(siblings: list[Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(siblings[0], run)

    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        async def look() -> Any:
            return (await client.post("/v1/explore/translate", json=LOOK)).json()

        first = await look()
        shutil.copy(siblings[1] / "model.safetensors", run / "model.safetensors")
        kept = await look()
        await models.reload()
        return first, kept, await look()

    first, kept, reloaded = within(run, calls)
    assert kept == first != reloaded


def test_a_model_that_cannot_be_opened_hides_its_place(
    siblings: list[Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(siblings[0], run)

    async def calls(client: httpx.AsyncClient, models: Models) -> Any:
        (run / "model.safetensors").write_bytes(b"torn")
        return (await client.get("/v1/explore")).json()["models"][0]

    model = within(run, calls)
    assert not model["available"] and "cannot be opened" in model["reason"]
    assert str(tmp_path) not in model["reason"]
