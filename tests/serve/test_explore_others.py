"""Models that do not translate, over HTTP: their views are their own forward passes."""

import base64
import io
import random
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from PIL import Image
from serve_fuzz import OTHERS

from seq2see.batches import TextExamples, collate_labels
from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.recipe.schema import Recipe
from seq2see.see.pictures import on_patches, rollout
from seq2see.serve import explore_other_schemas as schemas
from seq2see.serve import explore_schemas
from seq2see.serve.explore_requests import PICTURE_BYTES
from seq2see.serve.models import Models, Place
from seq2see.serve.settings import Settings
from seq2see.tasks.table import open_model
from seq2see.text.specials import PAD

TEXT = "three one two"
BLANKS = "three <mask> two<mask>"
INSIDE = {
    "toy": "translation",
    "pictured": "picture",
    "writer": "continuation",
    "filler": "blanks",
    "labeller": "label",
}


@pytest.fixture(scope="module")
def opened(others: dict[str, Path]) -> dict[str, Any]:
    return {name: open_model(place, "cpu") for name, place in others.items()}


def ask(server: Any, route: str, **body: Any) -> httpx.Response:
    response: httpx.Response = server.client.post(f"/v1/explore/{route}", json=body)
    return response


def see(server: Any, route: str, schema: Any, **body: Any) -> Any:
    """Look; the answer must be as the description says."""
    response = ask(server, route, **body)
    assert response.status_code == 200, response.text
    view = response.json()
    assert schema.model_validate(view).model_dump() == view
    return view


def refusal(response: httpx.Response, status: int = 422) -> str:
    assert response.status_code == status, response.text
    message: str = response.json()["error"]
    assert "\n" not in message
    return message


def sent(content: bytes) -> str:
    return base64.b64encode(content).decode()


@torch.inference_mode()
def traced(model: Any, batch: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The probabilities of a forward pass, made by the test, and its attention."""
    trace = Trace()
    probabilities = model.model(batch, trace)[0].softmax(-1)
    return probabilities, {name: heads[0] for name, heads in trace.weights.items()}


def test_they_are_listed_with_what_they_have_and_translate_nothing(mixed: Any) -> None:
    answer = mixed.client.get("/v1/explore").json()
    assert explore_schemas.Explorables.model_validate(answer).model_dump() == answer
    assert {one["name"]: one["inside"] for one in answer["models"]} == INSIDE
    for one in answer["models"][1:]:
        heads = {"writer": 4, "filler": 4, "labeller": 4, "pictured": 2}[one["name"]]
        assert one["maps"] == [{"kind": "stack.self", "layers": 2, "heads": heads}]
        assert one["source"] is None and one["beam"] is None and one["parameters"] > 0
    assert [one["name"] for one in mixed.client.get("/v1/models").json()["models"]] == ["toy"]
    assert [one["code"] for one in mixed.client.get("/languages").json()] == ["de", "en"]
    for route, body in (
        ("/v1/translate", {"text": "zwei"}),
        ("/v1/score", {"source": ["zwei"], "target": ["two"]}),
    ):
        message = refusal(mixed.client.post(route, json=body | {"model": "writer"}))
        assert message == "model writer does not translate; it is for /v1/explore alone"
    assert mixed.translate("zwei vier") == ["two four"]


def test_a_language_model_predicts_each_token_and_goes_on(mixed: Any, opened: Any) -> None:
    writer = opened["writer"]
    view = see(mixed, "next", schemas.NextTokens, text=TEXT, model="writer")
    given = writer.tokenizers.target.encode(TEXT)
    assert view["given"] == len(given) and len(view["steps"]) == len(view["tokens"]["pieces"])
    assert view["tokens"]["pieces"][: len(given)] == writer.tokenizers.target.pieces(TEXT)
    (log_p,) = writer.log_probabilities([TEXT])
    ours = [step["log_probability"] for step in view["steps"][: len(given)]]
    assert ours == pytest.approx(log_p[:-1], abs=1e-5)
    assert view["log_probability"] == pytest.approx(sum(log_p[:-1]), abs=1e-4)
    # Each token of the continuation is the likeliest that may be written.
    for step, token in zip(view["steps"], view["tokens"]["pieces"], strict=True):
        assert step["token"] == token
        assert len(step["top"]) == 5 and step["entropy"] > 0
    for step in view["steps"][len(given) : -1]:
        likely = [one["token"] for one in step["top"] if one["token"] not in ("<s>", "<blank>")]
        assert step["token"] == likely[0]
    assert len(view["steps"]) - len(given) - 1 <= 40


def test_attention_and_layers_of_a_language_model_are_its_own(mixed: Any, opened: Any) -> None:
    writer = opened["writer"]
    ids = writer.tokenizers.target.encode(TEXT)
    probabilities, weights = traced(writer, TextExamples([([], ids)]).batch([0]))
    look = {"text": TEXT, "model": "writer"}
    maps = see(mixed, "attention", explore_schemas.Attention, **look)
    assert [one["name"] for one in maps["layers"]] == ["stack.0.self", "stack.1.self"]
    assert maps["input"]["pieces"] == ["<s>", *writer.tokenizers.target.pieces(TEXT)]
    head = {"layer": "stack.1.self", "head": 3}
    exact = see(mixed, "head", explore_schemas.HeadWeights, **look, **head)
    expected = weights["encoder.1.self"][3]
    torch.testing.assert_close(torch.tensor(exact["weights"]), expected)
    assert torch.equal(torch.tensor(exact["mask"]), torch.ones_like(expected).tril().bool())
    assert exact["reasons"][0][1] == "later position" and exact["reasons"][1][0] == ""
    layers = see(mixed, "layers", explore_schemas.Layers, **look)
    assert len(layers["layers"]) == 2
    last = [step["probability"] for step in layers["layers"][-1]["steps"]]
    assert last == pytest.approx(probabilities.max(-1).values.tolist(), abs=1e-6)
    first = [step["probability"] for step in layers["layers"][0]["steps"]]
    assert first != pytest.approx(last, abs=1e-4)


def test_a_masked_model_fills_each_blank(mixed: Any, opened: Any) -> None:
    filler = opened["filler"]
    view = see(mixed, "blanks", schemas.Blanks, text=BLANKS, model="filler")
    filled = filler.fill(BLANKS)
    pieces = view["tokens"]["pieces"]
    assert [one["place"] for one in view["blanks"]] == [
        place for place, piece in enumerate(pieces) if piece == "<mask>"
    ]
    assert len(view["blanks"]) == 2 and view["text"] == filled.text
    for blank, candidates in zip(view["blanks"], filled.blanks, strict=True):
        assert [one["token"] for one in blank["top"]] == [one.token for one in candidates]
        ours = [one["probability"] for one in blank["top"]]
        assert ours == pytest.approx([one.probability for one in candidates])
    words = view["tokens"]["words"]
    assert words[-1] is None and words[:-1] == sorted(words[:-1])
    assert len({words[one["place"]] for one in view["blanks"]}) == 2  # words of their own
    none = see(mixed, "blanks", schemas.Blanks, text=TEXT, model="filler")
    assert none["blanks"] == [] and none["text"] == TEXT
    batch = collate_labels([(filler.blanked(BLANKS), [PAD])], [0])
    _, weights = traced(filler, batch)
    place = {"layer": "stack.0.self", "head": 1}
    look = {"text": BLANKS, "model": "filler"}
    exact = see(mixed, "head", explore_schemas.HeadWeights, **look, **place)
    torch.testing.assert_close(torch.tensor(exact["weights"]), weights["encoder.0.self"][1])
    assert exact["rows"] == pieces and all(all(row) for row in exact["mask"])


def test_a_classifier_of_texts_ranks_its_labels(mixed: Any, opened: Any) -> None:
    view = see(mixed, "label", schemas.Labels, text=TEXT, model="labeller")
    (labelled,) = opened["labeller"].classify([TEXT])
    shares = {one["label"]: one["probability"] for one in view["classes"]}
    assert shares == pytest.approx(labelled.probabilities) and view["label"] == labelled.label
    assert [*shares.values()] == sorted(shares.values(), reverse=True)
    maps = see(mixed, "attention", explore_schemas.Attention, text=TEXT, model="labeller")
    assert maps["target"]["pieces"][-1] == "</s>"


def test_a_picture_is_classified_and_attended_to(
    mixed: Any, opened: Any, pictured: Path, tmp_path: Path
) -> None:
    draw = random.Random(3)
    path = tmp_path / "noise.png"
    Image.frombytes("L", (8, 8), draw.randbytes(64)).save(path)
    view = see(mixed, "picture", schemas.Picture, picture=sent(path.read_bytes()), model="pictured")
    ours = opened["pictured"].explain(path)
    shares = {one["label"]: one["probability"] for one in view["classes"]}
    assert shares == pytest.approx(ours.prediction.probabilities)
    pixels = torch.tensor(view["pixels"]).permute(2, 0, 1)
    assert torch.equal(pixels.byte(), ours.pixels) and tuple(view["grid"]) == ours.grid
    for layer, weights in zip(view["layers"], ours.weights, strict=True):
        expected = on_patches(weights, ours.grid)
        torch.testing.assert_close(torch.tensor(layer["heads"]), expected)
    expected = on_patches(rollout(ours.weights), ours.grid)
    torch.testing.assert_close(torch.tensor(view["rollout"]), expected)


def test_the_examples_of_the_description_run(mixed: Any) -> None:
    paths = mixed.client.get("/openapi.json").json()["paths"]
    for path, valid in OTHERS.items():
        described = paths[path]["post"]["requestBody"]["content"]["application/json"]
        for example in described["examples"].values():
            body = example["value"] | {"model": valid["model"]}
            assert mixed.client.post(path, json=body).status_code == 200


def picture_of(kind: str, width: int = 9, height: int = 7) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize(
    ("picture", "status", "message"),
    [
        ("äöü", 422, "picture: it is not written in base64"),
        ("QQ=", 422, "picture: it is not written in base64"),
        ("", 422, "picture: not a picture of a known format: BMP, GIF, JPEG, PNG, WEBP"),
        (sent(b"%!PS-Adobe-3.0 EPSF-3.0\n"), 422, "picture: not a picture of a known format"),
        (sent(b"/etc/passwd"), 422, "picture: not a picture of a known format"),
        (sent(picture_of("TIFF")), 422, "picture: not a picture of a known format"),
        (sent(picture_of("PNG")[:45]), 422, "picture: "),
        (sent(picture_of("PNG", 2001, 2000)), 422, "picture: 2001 × 2000 pixels; at most 4,000"),
        ("A" * (4 * PICTURE_BYTES // 3 + 4), 413, "picture: it is larger than 750,000 bytes"),
        ("A" * (1 << 20), 413, "the body is larger than"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_a_bad_picture_is_refused(mixed: Any, picture: str, status: int, message: str) -> None:
    answer = ask(mixed, "picture", picture=picture, model="pictured")
    assert refusal(answer, status).startswith(message)


def test_broken_pictures_and_random_bytes_are_refused(mixed: Any) -> None:
    draw = random.Random(1)
    whole = [picture_of(kind) for kind in ("BMP", "GIF", "JPEG", "PNG", "WEBP")]
    statuses = set()
    for number in range(120):
        content = bytearray(whole[number % 5])
        for _ in range(draw.choice([1, 4, 20])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        if number % 4 == 0:
            content = bytearray(draw.randbytes(draw.randrange(200)))
        answer = ask(mixed, "picture", picture=sent(bytes(content)), model="pictured")
        statuses.add(answer.status_code)
        if answer.status_code != 200:
            refusal(answer)
    assert statuses == {200, 422}


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("beam", {"model": "writer"}, "beam: a language model has no such view; it has next, "),
        ("layers", {"model": "filler"}, "layers: a masked model has no such view; it has blanks, "),
        ("next", {"model": "labeller"}, "next: a classifier of texts has no such view; "),
        ("attention", {"model": "pictured"}, "attention: a classifier of pictures has no such"),
        ("next", {}, "next: a translation model has no such view"),
        ("next", {"model": "writer", "text": " "}, "text: it is empty"),
        ("next", {"model": "writer", "text": "漢 " * 31}, "the text has 62 tokens; at most 60"),
        ("next", {"model": "writer", "beam": 2}, "beam: Extra inputs are not permitted"),
        ("blanks", {"model": "filler", "text": ""}, "text: it is empty"),
        ("label", {"model": "nobody"}, "model is not one of toy, pictured, writer"),
    ],
)
def test_a_wrong_request_names_its_mistake(
    mixed: Any, route: str, body: dict[str, Any], message: str
) -> None:
    assert refusal(ask(mixed, route, **{"text": TEXT, **body})).startswith(message)


def test_a_head_that_there_is_not_is_named(mixed: Any) -> None:
    look = {"text": TEXT, "model": "writer"}
    message = refusal(ask(mixed, "head", **look, layer="encoder.0.self", head=0))
    assert message == "layer: it must be one of stack.0.self, stack.1.self"
    message = refusal(ask(mixed, "head", **look, layer="stack.0.self", head=4))
    assert message == "head is 4; stack.0.self has heads 0 to 3"


def test_a_text_as_long_as_the_model_takes_has_no_continuation(mixed: Any) -> None:
    text = "漢 " * 30
    view = see(mixed, "next", schemas.NextTokens, text=text, model="writer")
    assert view["given"] == 60 and len(view["steps"]) == 61
    assert view["steps"][-1]["token"] == "</s>"


def test_a_server_without_translation_says_so(local: Any, others: dict[str, Path]) -> None:
    port = local(model=others["filler"]).port
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        (one,) = client.get("/v1/explore").json()["models"]
        assert one["inside"] == "blanks"
        view = client.post("/v1/explore/blanks", json={"text": BLANKS}).json()
        assert len(view["blanks"]) == 2  # of the first model, which nobody named
        assert client.get("/v1/models").json() == {"models": []}
        assert client.get("/languages").json() == []
        assert client.post("/detect", json={"q": "zwei"}).json() == []
        for status, answer in (
            (422, client.post("/v1/translate", json={"text": "zwei"})),
            (422, client.post("/v1/score", json={"source": ["zwei"], "target": ["two"]})),
            (400, client.get("/frontend/settings")),
        ):
            assert refusal(answer, status) == "this server has no model that translates"
        body = {"q": "zwei", "source": "de", "target": "en"}
        assert "/languages lists them" in refusal(client.post("/translate", json=body), 400)


def test_a_painter_is_refused_by_one_line(tmp_path: Path) -> None:
    Recipe.load("scenes-tiny").save(tmp_path / "recipe.toml")
    (tmp_path / "model.safetensors").touch()
    models = Models([Place("scenes", tmp_path)], None, Settings())
    with pytest.raises(InputError, match="a painter is not served; seq2see see painting") as error:
        models.open()
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)
