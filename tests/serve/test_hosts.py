"""Host names under which a server answers, against DNS rebinding."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

from seq2see.serve.hosts import Hosts, is_loopback

LOOPBACK = ["localhost", "localhost:8000", "LOCALHOST.", "127.0.0.1:80", "127.1.2.3", "[::1]:8000"]
OTHERS = ["a.example", "localhost.a.example:8000", "127.0.0.1.a.example", "10.0.0.1", "[::2]", ""]


@pytest.mark.parametrize("header", LOOPBACK)
def test_loopback_is_answered(header: str) -> None:
    assert Hosts(["127.0.0.1"]).allow(header.encode())


@pytest.mark.parametrize("header", [*OTHERS, "localhost@a.example", "ä:", ":::"])
def test_other_hosts_are_answered_only_without_names(header: str) -> None:
    assert not Hosts(["127.0.0.1"]).allow(header.encode())
    assert Hosts().allow(header.encode())


@pytest.mark.parametrize("name", ["b.example", "B.example.", "b.example:8000"])
def test_a_name_is_answered_in_any_case_and_at_any_port(name: str) -> None:
    hosts = Hosts([name, "::2"])
    for header in (b"b.example", b"B.EXAMPLE:443", b"b.example.:80", b"[::2]:80", b"localhost"):
        assert hosts.allow(header)
    assert not hosts.allow(b"a.b.example")


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_addresses(address: str, local: bool) -> None:
    assert is_loopback(address) is local


def answers(server: Any, host: str) -> dict[str, int]:
    """Ask for a route of each kind under a host name."""
    body = {"text": "zwei vier"}
    headers = {"host": host}
    status = {
        path: server.client.get(path, headers=headers).status_code
        for path in ("/", "/health", "/metrics", "/openapi.json", "/nowhere")
    }
    post = server.client.post("/v1/translate", json=body, headers=headers)
    return status | {"/v1/translate": post.status_code}


def test_a_server_on_loopback_answers_to_no_other_name(start: Any, exported: Path) -> None:
    server = start("--model", exported, "--allow-host", "b.example")
    assert set(answers(server, "a.example").values()) == {421}
    refused = server.client.get("/health", headers={"host": "a.example"})
    assert list(refused.json()) == ["error"] and "--allow-host" in refused.json()["error"]
    assert refused.headers["x-content-type-options"] == "nosniff"
    for host in ("localhost:1", "b.example"):
        assert set(answers(server, host).values()) == {200, 404}
    _, log = server.stop()
    assert not [line for line in log if line["event"] == "open"]


def test_no_second_host_passes(local: Any) -> None:
    with local(hosts=["127.0.0.1"]).connect() as client:
        client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nhost: a.example\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 421 ")


def test_a_server_on_another_address_answers_to_any_name_unless_names_are_given(
    start: Any, exported: Path
) -> None:
    server = start("--model", exported, "--host", "0.0.0.0")
    assert set(answers(server, "a.example").values()) == {200, 404}
    _, log = server.stop()
    assert [line["level"] for line in log if line["event"] == "open"] == ["warning"]
    named = start("--model", exported, "--host", "0.0.0.0", "--allow-host", "b.example")
    assert set(answers(named, "a.example").values()) == {421}
    assert set(answers(named, "b.example:8000").values()) == {200, 404}
