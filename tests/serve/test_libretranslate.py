"""LibreTranslate's interface, by its own client and by the calls of Weblate."""

from typing import Any

import pytest

TEXT, TRANSLATION = "drei acht eins", "three eight one"


def test_its_own_python_client_works_unchanged(server: Any) -> None:
    api = pytest.importorskip("libretranslatepy").LibreTranslateAPI(server.url)
    assert api.translate(TEXT, "de", "en") == TRANSLATION
    assert api.translate(TEXT, "auto", "en") in (TRANSLATION, TEXT)
    assert {row["language"] for row in api.detect("Guten Morgen, wie geht es dir?")} == {"de"}
    assert api.languages() == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]


def test_the_calls_of_weblate_work(server: Any) -> None:
    codes = [row["code"] for row in server.client.get("/languages").json()]
    assert codes == ["de", "en"]
    body = {"api_key": "", "q": [TEXT, "zwei vier"], "source": "de", "target": "en"}
    response = server.client.post("/translate", json=body)
    assert response.json() == {"translatedText": [TRANSLATION, "two four"]}
    form = {"api_key": "", "q": TEXT, "source": "de", "target": "en"}
    assert server.client.post("/translate", data=form).json() == {"translatedText": TRANSLATION}


def test_a_query_works_as_a_body_does(server: Any) -> None:
    query = {"q": TEXT, "source": "de", "target": "en", "alternatives": "1"}
    for given in ({"params": query}, {"data": query}):
        answer = server.client.post("/translate", **given).json()
        assert answer["translatedText"] == TRANSLATION and len(answer["alternatives"]) == 1


def test_alternatives_come_only_where_asked(server: Any) -> None:
    body: dict[str, Any] = {"q": TEXT, "source": "de", "target": "en", "alternatives": 2}
    one = server.client.post("/translate", json=body).json()
    assert one["translatedText"] == TRANSLATION and len(one["alternatives"]) == 2
    several = server.client.post("/translate", json=body | {"q": [TEXT]}).json()
    assert several == {"translatedText": [TRANSLATION], "alternatives": [one["alternatives"]]}


def test_the_language_is_told_only_for_auto(server: Any) -> None:
    text = "Guten Morgen, wie geht es dir?"
    body: dict[str, Any] = {"q": text, "source": "auto", "target": "en"}
    detected = server.client.post("/translate", json=body).json()["detectedLanguage"]
    assert detected["language"] == "de" and 50 < detected["confidence"] <= 100
    several = server.client.post("/translate", json=body | {"q": [text, text]}).json()
    assert several["detectedLanguage"] == [detected, detected]


def test_a_text_in_the_target_language_stays(server: Any) -> None:
    text = "Good morning, how are you today?"
    body = {"q": text, "source": "auto", "target": "en"}
    response = server.client.post("/translate", json=body).json()
    assert response["translatedText"] == text
    assert response["detectedLanguage"]["language"] == "en"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"source": "de", "target": "en"}, 400, "Invalid request: missing q parameter"),
        ({"q": TEXT, "target": "en"}, 400, "Invalid request: missing source parameter"),
        ({"q": TEXT, "source": "xx", "target": "en"}, 400, "source language is not supported"),
        ({"q": TEXT, "source": "de", "target": "auto"}, 400, "target language is not supported"),
        ({"q": TEXT, "source": "en", "target": "de"}, 400, "no model for these languages"),
        ({"q": TEXT, "source": "de", "target": "en", "alternatives": 99}, 400, "at most 15"),
        ({"q": TEXT, "source": "de", "target": "en", "alternatives": True}, 400, "alternatives"),
        ({"q": TEXT, "source": "de", "target": "en", "alternatives": "1"}, 400, "alternatives"),
        ({"q": TEXT, "source": "de", "target": "en", "format": "pdf"}, 400, "format"),
        ({"q": "a" * 100_001, "source": "de", "target": "en"}, 413, "at most 100000"),
        ([TEXT], 400, "the body is not an object"),
    ],
    ids=str,
)
def test_errors_are_one_sentence(server: Any, body: Any, status: int, message: str) -> None:
    response = server.client.post("/translate", json=body)
    assert response.status_code == status
    assert list(response.json()) == ["error"] and message in response.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "", "application/jsonp", "multipart/x"])
def test_a_body_of_another_type_is_refused(server: Any, kind: str) -> None:
    body = b'{"q": "eins", "source": "de", "target": "en"}'
    for path in ("/translate", "/detect"):
        response = server.client.post(path, content=body, headers={"content-type": kind})
        assert response.status_code == 400
        assert "neither JSON nor a form" in response.json()["error"]
    json = {"content-type": "Application/JSON; charset=utf-8"}
    assert server.client.post("/translate", content=body, headers=json).status_code == 200


def test_settings_and_description(server: Any) -> None:
    settings = server.client.get("/frontend/settings").json()
    assert settings["charLimit"] == 100_000 and settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "de", "name": "German"}
    assert "/translate" in server.client.get("/spec").json()["paths"]
