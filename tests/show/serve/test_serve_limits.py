"""Limits of size, time and number, and the headers of every answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from egocnn.errors import ConfigError
from egocnn.show.serve.settings import ServeConfig
from tests.show.serve.models import client
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


def test_a_request_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, **__: Any) -> None:
        time.sleep(0.5)

    monkeypatch.setattr("egocnn.show.serve.model.explain", slow)
    response = client(seconds=0.05).post("/explain", json={"smiles": "C"})
    assert "longer than 0.05 seconds" in refusal(response, 503)
    assert response.headers["retry-after"] == "1"


def test_more_requests_than_can_wait_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, **__: Any) -> None:
        time.sleep(0.3)
        raise RuntimeError("late")

    monkeypatch.setattr("egocnn.show.serve.model.explain", slow)
    with client(waiting=2) as busy, ThreadPoolExecutor(6) as crowd:
        found = list(crowd.map(lambda _: busy.post("/explain", json={"smiles": "C"}), range(6)))
    sent_away = [response for response in found if response.status_code == 503]
    assert len(sent_away) == 4
    assert all("too many requests" in refusal(response, 503) for response in sent_away)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "", "[::2]"])
def test_a_name_of_somebody_elses_that_leads_here_is_not_answered(host: str) -> None:
    assert "localhost alone" in refusal(client().get("/model", headers={"host": host}), 400)
    assert client(host="0.0.0.0").get("/model", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"])
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    assert client().get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("field", [{"port": 70_000}, {"workers": 0}, {"seconds": 0.0}, {"megabytes": -1.0}])
def test_limits_outside_their_range_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(field))):
        ServeConfig(**field)
