"""Limits of size, time and number, and the headers of every answer."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from egocnn.errors import ConfigError
from egocnn.show.serve.limits import Limits
from egocnn.show.serve.server import guarded_protocol
from egocnn.show.serve.settings import MOST_RINGS, ServeConfig, rings
from tests.show.serve.models import classifier, client, running, served
from tests.show.serve.test_serve_answers import refusal


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/assets/page.js", 200),
        ("GET", "/model", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/nothing", 404),
        ("POST", "/explain", 422),
        ("DELETE", "/explain", 405),
    ],
)
def test_every_answer_has_the_headers_that_keep_a_browser_safe(method: str, address: str, status: int) -> None:
    response = client().request(method, address)
    assert response.status_code == status
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"] == "no-store"
    assert "server" not in response.headers


def test_a_report_runs_its_own_scripts_and_no_others() -> None:
    response = client().post("/report", data={"smiles": "CCO"})
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert "unsafe" not in policy["script-src"]
    assert policy["frame-ancestors"] == "'none'"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_request_that_is_too_large_is_refused_whether_it_says_its_size_or_not() -> None:
    small = client(megabytes=0.01)

    def in_pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 1000

    said = refusal(small.post("/explain", content=b"x" * 20_000), 413)
    assert said == refusal(small.post("/explain", content=in_pieces()), 413)
    assert "0.01 MB" in said
    assert small.post("/explain", json={"smiles": "CCO"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "", "[::2]"])
def test_a_name_of_somebody_elses_that_leads_here_is_not_answered(host: str) -> None:
    assert "localhost alone" in refusal(client().get("/model", headers={"host": host}), 400)
    headers = {"host": host, "authorization": "Bearer x"}
    assert client(host="0.0.0.0", token="x").get("/model", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"])
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    assert client().get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "http://localhost"}, 200),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:8001"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_pages_of_other_sites_may_send_nothing(headers: dict[str, str], status: int) -> None:
    for path, body in (("/explain", {"json": {"smiles": "C"}}), ("/report", {"data": {"smiles": "C"}})):
        response = client().post(path, headers=headers, **body)
        assert response.status_code == status
        if status == 403:
            assert "another site" in refusal(response, 403)
    assert client().get("/health", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("smiles", "count"),
    [("CCO", 0), ("C1CC1", 1), ("C12CC1C2", 2), ("[13CH4]", 0), ("C%12CC%12", 1), ("C%(123)CC%(123)", 1), ("[[[[1", 0)],
)
def test_rings_are_counted_in_the_text(smiles: str, count: int) -> None:
    assert rings(smiles) == count


def test_a_molecule_of_too_many_rings_is_refused_before_anyone_works_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("egocnn.show.serve.model.ServedModel.read_lines")
    many = "C1CC1" * (MOST_RINGS + 1)
    reason = f"closes {MOST_RINGS + 1} rings; {MOST_RINGS} are read at most"
    assert reason in refusal(client().post("/explain", json={"smiles": f"{many} 1 2 3"}))
    assert f"line 2: a SMILES that {reason}" in refusal(client().post("/explain", json={"smiles": ["C", many]}))
    assert reason in refusal(client().post("/report", data={"smiles": many}))


def run(crowd: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: a browser that other tests have opened keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, crowd).result()


async def ask_directly(limits: Limits, *received: Any) -> int:
    """The status of an answer to a request that arrives in these pieces; a piece may be an event to wait for."""
    pieces, sent = list(received), []

    async def receive() -> Any:
        piece = pieces.pop(0)
        if isinstance(piece, asyncio.Event):
            await piece.wait()
            piece = {"type": "http.request"}
        return piece

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/explain", "headers": [(b"host", b"localhost")]}
    await limits(scope, receive, send)
    status: int = sent[0]["status"]
    return status


async def respond(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


WHOLE, HALF = {"type": "http.request", "body": b"x"}, {"type": "http.request", "body": b"x", "more_body": True}


@pytest.mark.parametrize(
    ("half", "status", "limits"),
    [(130, 200, {"waiting": 1}), (2, 503, {"megabytes": 1e-6})],
    ids=["they take nobody's place", "more than memory is meant for is sent away"],
)
def test_requests_of_which_half_arrives_take_memory_alone(
    half: int, status: int, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("egocnn.show.serve.limits.RECEIVING", 2)

    async def crowd() -> None:
        limited, rest = Limits(respond, ServeConfig(**limits)), asyncio.Event()
        waiting = [asyncio.create_task(ask_directly(limited, HALF, rest)) for _ in range(half)]
        await asyncio.sleep(0)
        assert await ask_directly(limited, WHOLE) == status
        rest.set()
        assert set(await asyncio.gather(*waiting)) == {200}
        assert await ask_directly(limited, WHOLE) == 200

    run(crowd())


def test_a_request_of_which_half_arrives_is_given_up_and_of_one_that_is_whole_no_more_is_awaited() -> None:
    async def alone() -> None:
        assert await ask_directly(Limits(respond, ServeConfig(receive_seconds=0.01)), HALF, asyncio.Event()) == 408
        assert await ask_directly(Limits(respond, ServeConfig(megabytes=1e-6)), HALF, WHOLE) == 413

    run(alone())


@contextmanager
def guarded(**limits: Any) -> Iterator[Any]:
    """The address of a server whose connections have these limits."""
    config = ServeConfig(port=0, **limits)
    with running(Limits(respond, config), config, http=guarded_protocol(config)) as address:
        yield address


def heard(connection: socket.socket) -> bytes:
    """What comes until the other side closes the connection."""
    connection.settimeout(60)
    found = b""
    try:
        while piece := connection.recv(1000):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("before", [b"", b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"])
def test_a_connection_on_which_no_whole_headers_arrive_is_closed(before: bytes) -> None:
    with guarded(receive_seconds=0.1) as address, socket.create_connection(address) as slow:
        if before:
            slow.sendall(before)
            assert slow.recv(1000).startswith(b"HTTP/1.1 200")
        slow.sendall(b"GET / HTTP/1.1\r\nhost:")
        assert b"HTTP/1.1 2" not in heard(slow)


def test_connections_beyond_their_number_are_closed_and_the_others_stay() -> None:
    with guarded(connections=1) as address, socket.create_connection(address) as first:
        first.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert first.recv(1000).startswith(b"HTTP/1.1 200")
        with socket.create_connection(address) as second:
            assert heard(second) == b""


@pytest.mark.parametrize("field", [{"port": 70_000}, {"workers": 0}, {"seconds": 0.0}, {"megabytes": -1.0}])
def test_limits_outside_their_range_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(field))):
        ServeConfig(**field)


def test_a_token_is_asked_for_where_others_are_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EGOCNN_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="lets others in: set a token, with --token or EGOCNN_TOKEN"):
        ServeConfig(host="0.0.0.0")
    monkeypatch.setenv("EGOCNN_TOKEN", "secret")
    served = client(host="0.0.0.0")
    assert served.get("/health").status_code == 200
    for wrong in ({}, {"authorization": "Bearer other"}, {"authorization": "Basic %%%"}, {"authorization": "secret"}):
        response = served.get("/model", headers=wrong)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Basic")
    for right in ("Bearer secret", "Basic " + b64encode(b"anyone:secret").decode()):
        assert served.get("/model", headers={"authorization": right}).status_code == 200


def test_metrics_count_requests_by_status_and_the_log_has_a_line_for_each(caplog: pytest.LogCaptureFixture) -> None:
    served = client(log=True, workers=1)
    assert served.get("/model").status_code == 200
    assert served.get("/not%1bthere").status_code == 404
    lines = served.get("/metrics").text.splitlines()
    assert {'egocnn_requests_total{status="200"} 1', 'egocnn_requests_total{status="404"} 1'} <= set(lines)
    assert {"egocnn_workers 1", "egocnn_queue 0"} <= set(lines)
    assert [line for line in lines if line.startswith("egocnn_request_seconds_sum ")]
    assert "GET /model 200 " in caplog.messages[0]
    assert "\x1b" not in caplog.messages[1]


def test_who_sends_too_much_reads_why_before_the_connection_ends() -> None:
    config, size, answer = ServeConfig(port=0, megabytes=0.01), 4_000_000, b""
    head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
    with running(served(classifier(), config), config) as at, socket.create_connection(at[:2], timeout=20) as sender:
        sender.sendall(head.encode() + b"x" * size)  # reset where nobody reads it
        while piece := sender.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"may have 0.01 MB at most" in answer
