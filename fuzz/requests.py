"""A request as it comes over the wire -> an answer of ``egocnn serve`` that must behave, from the application with its
limits around it; the worker answers in this process, as the harm that another one does could not be seen."""

from __future__ import annotations

import asyncio
import json
import tempfile
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import h11

from egocnn.errors import DataError, EgoCNNError, MissingExtraError
from egocnn.show.serve.limits import HEADERS, LONGEST_LINE, Limits, RefusedError
from egocnn.show.serve.model import ServedModel
from egocnn.show.serve.records import ExplainResponse
from egocnn.show.serve.server import build
from egocnn.show.serve.settings import ExplainJob, ServeConfig
from fuzz import seeds
from fuzz.guard import ViolationError
from fuzz.markup import check_html

TOKEN = "secret"
REFUSED = (400, 401, 403, 404, 405, 408, 413, 422, 503)


class _Pool:
    """What :class:`egocnn.show.serve.pool.WorkerPool` is to the application, answering at once and here."""

    waiting = 0

    def __init__(self) -> None:
        self.model = ServedModel(predictor=seeds.of_molecules(), name="fuzzed")
        self.about = self.model.about()

    def submit(self, job: ExplainJob, data: bytes = b"") -> Future[bytes]:
        future = Future[bytes]()
        for _, answer in self.model.answer([job], data):
            text = answer if isinstance(answer, str | Exception) else json.dumps(answer, allow_nan=False)
            if isinstance(text, EgoCNNError):
                future.set_exception(RefusedError(503 if isinstance(text, MissingExtraError) else 422, str(text)))
            elif isinstance(text, Exception):
                raise text
            else:
                future.set_result(text.encode())
        return future


@cache
def _server(with_token: bool) -> Limits:
    pool: Any = _Pool()
    config = ServeConfig(host="0.0.0.0", token=TOKEN) if with_token else ServeConfig()
    return build(pool, config)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def answer(path: Path, number: int) -> None:
    """Send the request in one to three pieces; a refusal of the server is raised as one."""
    request = _parsed(path.read_bytes())
    if request is None:
        return  # not HTTP: h11 refuses it before any of ours sees it
    scope, body = request
    size = len(body) // (1 + number % 3) + 1
    pieces = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    sent: list[Any] = []

    async def receive() -> Any:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        sent.append(message)

    tempfile.tempdir = str(path.parent)  # a file that is sent lies in a private folder while it is read
    try:
        _loop().run_until_complete(_server(with_token=number & 48 == 48)(scope, receive, send))
    finally:
        tempfile.tempdir = None
    _check(scope["path"], sent)


def _parsed(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    """The scope and the body of a request, as uvicorn gives them to an application; None where it is no HTTP."""
    connection, head, body = h11.Connection(h11.SERVER), None, b""
    try:
        connection.receive_data(data)
        connection.receive_data(b"")
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.InformationalResponse):
                break
    except h11.RemoteProtocolError:
        pass  # half a body: what there is of it
    if head is None:
        return None
    target, _, query = head.target.partition(b"?")
    scope = {
        **{"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "client": ("127.0.0.1", 9)},
        **{"method": head.method.decode("ascii"), "path": _unquoted(target), "raw_path": target},
        **{"query_string": query, "headers": list(head.headers), "server": ("127.0.0.1", 8000), "state": {}},
    }
    return scope, body


def _unquoted(target: bytes) -> str:
    from urllib.parse import unquote

    return unquote(target.decode("ascii", "replace"))


def _check(path: str, sent: list[Any]) -> None:
    if not sent:
        raise ViolationError("no answer")
    start, *rest = sent
    status, headers = start["status"], {name.decode().lower(): value for name, value in start["headers"]}
    body = b"".join(message.get("body", b"") for message in rest)
    for name in HEADERS:
        if name not in headers:
            raise ViolationError(f"an answer without the header {name}")
    if status == 307:
        return  # to the same path without the last stroke
    if status != 200:
        if status not in REFUSED:
            raise ViolationError(f"status {status}: {body[:300]!r}")
        if body:  # there is none for HEAD
            line = json.loads(body)["error"]
            if len(line) > LONGEST_LINE:
                raise ViolationError(f"a reason of {len(line)} characters")
            raise DataError(line)
    elif path.startswith("/explain"):
        ExplainResponse.model_validate_json(body)
    elif path == "/report":
        check_html("report html", body.decode("utf-8"))


def _request(path: str, body: bytes, kind: bytes, *headers: bytes) -> bytes:
    lines = (b"POST " + path.encode() + b" HTTP/1.1", b"Host: localhost:8000", b"Content-Type: " + kind, *headers)
    return b"\r\n".join([*lines, b"Content-Length: " + str(len(body)).encode(), b"", body])


def _form(**fields: tuple[str, bytes]) -> bytes:
    """Fields of a form, each with the name of its file, '' where it is a text."""
    parts = []
    for name, (file, content) in fields.items():
        called = f'; filename="{file}"' if file else ""
        parts.append(f'--x\r\nContent-Disposition: form-data; name="{name}"{called}\r\n\r\n'.encode() + content)
    return b"\r\n".join([*parts, b"--x--\r\n"])


JSON, FORM = b"application/json", b"multipart/form-data; boundary=x"
REQUESTS = (
    *(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() for path in ("/", "/model", "/assets/page.js")),
    _request("/explain", b'{"smiles": ["CCO ethanol", "C[N+](C)C"], "explained": "yes", "fidelity": false}', JSON),
    _request("/explain", b'{"smiles": "OC(=O)c1ccccc1", "target": null, "picture": false}', JSON),
    _request("/explain", b'{"smiles": "CO"}', JSON, b"Authorization: Bearer secret", b"Origin: http://localhost:8000"),
    _request("/explain", b'{"smiles": "CO"}', JSON, b"Authorization: Basic eDpzZWNyZXQ=", b"Sec-Fetch-Site: none"),
    _request("/explain/file", _form(file=("a.csv", b"smiles,name\nCCO,a\nC((,b\n"), explained=("", b"no")), FORM),
    _request("/explain/file", _form(file=("a.jsonl", b'{"nodes": ["C", "O"], "edges": [[0, 1, "single"]]}')), FORM),
    _request("/report", _form(smiles=("", b"CCO ethanol\nCN"), target=("", b"")), FORM),
    _request("/report", b"smiles=CCO%20%3Cb%3E&target=", b"application/x-www-form-urlencoded"),
)
