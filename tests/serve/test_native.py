"""Our own interface over HTTP, on both engines."""

from typing import Any

import pytest
from serve_fuzz import OTHERS

from seq2see.tasks.translator import Translator

KNOWN = {"drei acht eins": "three eight one", "zwei vier": "two four"}


def error(server: Any, path: str, body: Any, status: int = 422) -> str:
    response = server.client.post(path, json=body)
    assert response.status_code == status
    message: str = response.json()["error"]
    return message


def test_one_text_gives_a_list_of_one_and_a_list_its_own_length(server: Any) -> None:
    answer = server.client.post("/v1/translate", json={"text": "drei acht eins"}).json()
    (row,) = answer.pop("translations")
    assert answer == {"model": "toy", "source": "de", "target": "en"}
    assert list(row) == ["text", "log_probability", "score"] and row["text"] == "three eight one"
    assert server.translate([*KNOWN, "", " "]) == [*KNOWN.values(), "", " "]
    assert server.translate([]) == []


def test_the_n_best_are_those_of_the_engine(server: Any, translator: Translator) -> None:
    body = {"text": "neun sieben", "beam": 3, "n_best": 3}
    (row,) = server.client.post("/v1/translate", json=body).json()["translations"]
    (expected,) = translator.search(["neun sieben"], beam=3, n_best=3)
    assert [one["text"] for one in row["alternatives"]] == [one.text for one in expected]
    alternatives = row.pop("alternatives")
    assert row == alternatives[0] and row["text"] == expected[0].text
    for one, ours in zip(alternatives, expected, strict=True):
        assert one["score"] == pytest.approx(ours.score, abs=1e-3)
        assert one["log_probability"] == pytest.approx(ours.log_probability, abs=1e-3)


def test_a_whole_number_may_have_a_point(server: Any) -> None:
    assert server.translate("zwei vier", beam=3.0) == ["two four"]


def test_a_translation_begins_with_its_prefix(server: Any) -> None:
    for translation in server.translate(["drei acht", "eins zwei"], prefix="five"):
        assert translation.startswith("five")
    first, second = server.translate(["drei acht", "zwei vier"], prefix=["nine one", ""])
    assert first.startswith("nine one") and second == "two four"
    assert server.translate("zwei vier") == ["two four"]  # not the one that was forced
    first, *blank = server.translate(["drei acht. eins zwei.", "", " "], prefix="five")
    assert first.startswith("five") and blank == ["", " "]


@pytest.mark.parametrize(
    ("text", "format"),
    [("{}\n\n{}\n- {}", "text"), ("<p>{}</p><p>{}</p><hr>{}", "html")],
    ids=["text", "html"],
)
def test_a_prefix_forces_the_first_sentence_and_not_its_repetitions(
    server: Any, text: str, format: str
) -> None:
    (first,) = server.translate("zwei vier", prefix="five")
    source = text.format(*["zwei vier"] * 3)
    (translation,) = server.translate(source, prefix="five", format=format)
    assert translation == text.format(first, "two four", "two four")


def test_a_repeated_sentence_counts_as_often_as_it_occurs(server: Any) -> None:
    body = {"text": ["zwei vier", "zwei vier\nzwei vier"]}
    one, two = server.client.post("/v1/translate", json=body).json()["translations"]
    for key in ("log_probability", "score"):
        assert two[key] == pytest.approx(2 * one[key])


@pytest.mark.parametrize(
    "body",
    [
        {"text": "drei 42 acht", "prefix": "five"},
        {"text": ["eins", "drei acht x@y.de"], "prefix": ["", "five"]},
        {"text": "<p>drei <b>acht</b> &amp; eins</p>", "prefix": "five", "format": "html"},
    ],
    ids=str,
)
def test_a_prefix_that_is_lost_is_refused(server: Any, body: Any) -> None:
    assert "prefix: the translation does not begin" in error(server, "/v1/translate", body)


def test_a_prefix_is_found_behind_tags(server: Any) -> None:
    (html,) = server.translate("<p>drei acht</p>", prefix="five", format="html")
    assert html.startswith("<p>five")


def test_sentences_are_translated_one_by_one_and_what_is_between_them_stays(server: Any) -> None:
    text = "drei acht.\n\n  - zwei vier\t\n"
    first, second = server.translate(["drei acht.", "zwei vier"])
    assert server.translate(text) == [f"{first}\n\n  - {second}\t\n"]
    body = {"text": text, "n_best": 2}
    (row,) = server.client.post("/v1/translate", json=body).json()["translations"]
    assert len(row["alternatives"]) == 2 and row["alternatives"][0]["text"] == row["text"]
    assert row["alternatives"][1]["text"].count("\n") == 3


def test_html_keeps_its_tags(server: Any) -> None:
    text = '<p class="a">drei <b>acht</b> eins</p>'
    (html,) = server.translate(text, format="html")
    assert html.startswith('<p class="a">') and html.endswith("</p>")
    assert html.count("<b>") == html.count("</b>") == 1
    libre = {"q": text, "source": "de", "target": "en", "format": "html"}
    assert server.client.post("/translate", json=libre).json()["translatedText"] == html


def test_a_glossary_decides_the_translation_of_its_terms(server: Any) -> None:
    (text,) = server.translate("drei acht eins", glossary={"acht": "octet"})
    assert "octet" in text and "eight" not in text
    assert "glossary: the term" in error(
        server, "/v1/translate", {"text": "drei", "glossary": {" ": "x"}}
    )


def test_scores_are_those_of_the_engine(server: Any, translator: Translator) -> None:
    sources, targets = ["zwei vier", "zwei vier"], ["two four", "four two two"]
    body = {"source": sources, "target": targets}
    scores = server.client.post("/v1/score", json=body).json()["scores"]
    for score, ours in zip(scores, translator.score_tokens(sources, targets), strict=True):
        assert score["log_probability"] == pytest.approx(ours.log_probability, abs=1e-3)
        assert [one["token"] for one in score["tokens"]] == ours.tokens
        total = sum(one["log_probability"] for one in score["tokens"])
        assert total == pytest.approx(score["log_probability"])


def test_the_models_are_listed(server: Any) -> None:
    (model,) = server.client.get("/v1/models").json()["models"]
    assert (model["name"], model["source"], model["target"]) == ("toy", "de", "en")
    assert model["engine"] in ("ct2", "torch") and model["beam"] == 4


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": 3}, "text"),
        ({}, "text: Field required"),
        ({"text": "eins", "beam": 17}, "beam is 17; at most 16 is allowed"),
        ({"text": "eins", "beam": 0}, "beam"),
        ({"text": "eins", "beam": 2.5}, "beam: Input should be a valid integer"),
        ({"text": "eins", "beam": True}, "beam: Input should be a valid integer"),
        ({"text": "eins", "beam": 2, "n_best": 3}, "n_best is 3; it must be at most the beam, 2"),
        ({"text": "eins", "model": "other"}, "model is not one of toy"),
        ({"text": "eins", "source": "fr"}, "no model for these languages; there are de→en"),
        ({"text": ["eins"] * 1001}, "text has 1001 texts; at most 1000 are allowed"),
        ({"text": ["eins"], "prefix": ["a", "b"]}, "prefix has 2 texts for 1; they must pair up"),
        ({"text": "eins", "prefix": "漢 " * 130}, "tokens; fewer than 128 are allowed"),
        ({"text": "eins", "colour": "red"}, "colour: Extra inputs are not permitted"),
        ([], "body: "),
    ],
    ids=str,
)
def test_a_wrong_request_names_its_mistake(server: Any, body: Any, message: str) -> None:
    assert message in error(server, "/v1/translate", body)


def test_a_wrong_score_request_names_its_mistake(server: Any) -> None:
    message = error(server, "/v1/score", {"source": ["eins"], "target": []})
    assert message == "1 source and 0 target texts; they must pair up"
    long = error(server, "/v1/score", {"source": ["漢 " * 200], "target": ["one"]})
    assert "the model takes at most data.max_length = 128" in long


def test_too_many_characters_and_too_large_bodies_are_refused(server: Any) -> None:
    many = error(server, "/v1/translate", {"text": "a" * 100_001}, 413)
    assert many == "text has 100001 characters; at most 100000 are allowed"
    large = error(server, "/v1/translate", {"text": "a" * (1 << 20)}, 413)
    assert large == "the body is larger than 1048576 bytes"


def test_what_is_not_json_is_refused(server: Any) -> None:
    for body in (b"{", b"\xff", b"[" * 100_000, b'{"text": "\\ud800"}', b'{"text": NaN}'):
        headers = {"content-type": "application/json"}
        response = server.client.post("/v1/translate", content=body, headers=headers)
        assert response.status_code in (400, 422) and "error" in response.json()


def test_every_answer_has_an_id_and_the_security_headers(server: Any) -> None:
    for path in ("/health", "/nowhere", "/v1/translate"):
        response = server.client.get(path)
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-request-id"] and "server" not in response.headers
        assert "access-control-allow-origin" not in response.headers
    headers = {"x-request-id": "mine-1"}
    assert server.client.get("/health", headers=headers).headers["x-request-id"] == "mine-1"


def test_the_examples_of_the_description_run(server: Any) -> None:
    document = server.client.get("/openapi.json").json()
    (model,) = server.client.get("/v1/explore").json()["models"]
    run = 0
    for path, operations in document["paths"].items():
        content = operations.get("post", {}).get("requestBody", {}).get("content", {})
        for kind, described in content.items():
            examples = [one["value"] for one in described.get("examples", {}).values()]
            for example in [*examples, *filter(None, [described.get("example")])]:
                key = "json" if kind == "application/json" else "data"
                response = server.client.post(path, **{key: example})
                # The toy has no capital letters, so a prefix that has some is refused.
                expected = 422 if "prefix" in example else 200
                if path.startswith("/v1/explore") and not model["available"]:
                    expected = 422
                if path in OTHERS:  # for models that do not translate
                    expected = 422
                assert response.status_code == expected, (path, response.text)
                run += 1
    assert run >= 7


def test_the_figures_count_what_was_done(server: Any) -> None:
    figure = server.figure
    sentences, hits = figure("seq2see_sentences_total"), figure("seq2see_cache_hits_total")
    server.translate(["acht sieben neun", "acht sieben eins"])
    server.translate(["acht sieben neun"])
    assert figure("seq2see_sentences_total") == sentences + 3
    assert figure("seq2see_cache_hits_total") >= hits + 1
    assert figure("seq2see_batch_sentences_count") > 0
    assert figure("seq2see_queue_sentences") == 0
    assert figure('seq2see_requests_total{route="/v1/translate",status="200"}') > 0
