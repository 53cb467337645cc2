"""A web application -> the same with limits of size, time and number, and with safe headers in every answer. Plain
ASGI, so that every answer passes here. A request is read whole first: a slow sender occupies nobody's place."""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, nullcontext, suppress
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, TypeAlias

from egocnn.errors import EgoCNNError
from egocnn.show.serve.settings import LOCAL, ServeConfig

if TYPE_CHECKING:
    from starlette.responses import JSONResponse

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (  # nothing but the page's own files, and pictures that it makes; no script or style inside the HTML
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
LONGEST_LINE = 500  # Characters of a line that says why there is no answer.
RECEIVING = 64  # Requests of the largest size that memory holds while they arrive; further ones are sent away.


class RefusedError(EgoCNNError):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Limits:
    """An application with these limits around it; itself an ASGI application."""

    def __init__(self, app: Application, config: ServeConfig) -> None:
        self._app, self._config = app, config
        self._inside = self._arriving = 0
        self._answered, self._seconds = Counter[int](), 0.0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 499  # as proxies call it: the sender has gone before the answer

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._answer(scope, receive, noting)
        finally:
            seconds = time.perf_counter() - began
            self._answered[status] += 1
            self._seconds += seconds
            if self._config.log:
                from egocnn.data.sources.text import one_line  # it imports numpy, which the server does without

                said = one_line(f"{(scope.get('client') or ['?'])[0]} {scope['method']} {scope['path']}")
                logging.getLogger("egocnn").warning("%s %d %.3f s", said, status, seconds)

    def metrics(self, waiting: int) -> str:
        """What has been answered, in the text format of Prometheus; ``waiting``: requests in the queue."""
        lines = [f'egocnn_requests_total{{status="{status}"}} {n}' for status, n in sorted(self._answered.items())]
        lines += [f"egocnn_request_seconds_sum {self._seconds:.6f}", f"egocnn_workers {self._config.workers}"]
        return "\n".join([*lines, f"egocnn_requests_inside {self._inside}", f"egocnn_queue {waiting}", ""])

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = list(message.get("headers", ()))
                names = {name.lower().decode("latin-1") for name, _ in given}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name not in names]
                message["headers"] = given + more
            await send(message)

        async def replay() -> Message:
            return {"type": "http.request", "body": body.pop()} if body else await receive()

        try:
            self._check(scope)
            body = [await self._body(receive)]
            async with asyncio.timeout(self._config.seconds):
                with nullcontext() if scope["path"] in ("/health", "/metrics") else self._place():
                    await self._app(scope, replay, send_on)
        except RefusedError as refused:
            answer = refusal(refused.status, str(refused))
        except TimeoutError:
            answer = refusal(503, f"this took longer than {self._config.seconds:g} seconds; send less")
        except asyncio.CancelledError:
            answer = refusal(503, "the server is being stopped")
        else:
            return
        if not started and answer.status_code == 413:
            # a connection that is closed with something unread is reset, and the answer lost with it
            await send_on({"type": "http.response.start", "status": 413, "headers": answer.raw_headers})
            await send_on({"type": "http.response.body", "body": answer.body, "more_body": True})
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.receive_seconds):
                    while (await receive()).get("more_body"):
                        pass
            await send_on({"type": "http.response.body"})
        elif not started:
            await answer(scope, receive, send_on)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._inside >= self._config.waiting:
            raise RefusedError(503, "too many requests at a time; try again in a moment")
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def _check(self, scope: Message) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        # a page elsewhere can have a name of its own resolve to this machine: its visitors' browsers then ask us
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        if self._config.host in LOCAL and name not in LOCAL:
            raise RefusedError(400, "this server answers to localhost alone; --host lets others in")
        if scope["method"] not in ("GET", "HEAD") and not _is_own(headers):
            raise RefusedError(403, "a page of another site may not send anything here")
        if self._config.secret and scope["path"] != "/health":
            self._check_token(headers.get(b"authorization", b""))
        length = headers.get(b"content-length", b"0")
        self._check_size(int(length) if length.isdigit() else 0)

    def _check_token(self, given: bytes) -> None:
        """``Bearer TOKEN``, or the password that a browser asks for, whatever the name beside it"""
        kind, _, said = given.partition(b" ")
        if kind.lower() == b"basic":
            with suppress(ValueError):
                said = b64decode(said).partition(b":")[2]
        if not compare_digest(said, self._config.secret.encode()):
            raise RefusedError(401, "this server asks for a token: Authorization: Bearer TOKEN, or as the password")

    def _check_size(self, size: int) -> None:
        if size > self._config.most_bytes:
            most = f"{self._config.megabytes:g} MB"
            raise RefusedError(413, f"a request may have {most} at most; egocnn explain takes more")

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        seconds = self._config.receive_seconds
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":  # the sender has gone
                        return b""
                    piece = message.get("body", b"")
                    body += piece
                    self._arriving += len(piece)
                    self._check_size(len(body))
                    if self._arriving > RECEIVING * self._config.most_bytes:
                        raise RefusedError(503, "too many requests arrive at a time; try again in a moment")
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise RefusedError(408, f"the request did not arrive within {seconds:g} seconds") from None
        finally:
            self._arriving -= len(body)


def _is_own(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request comes from our own page, or from no page at all: browsers say which."""
    if site := headers.get(b"sec-fetch-site"):
        return site in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    return origin is None or origin.partition(b"://")[2].lower() == headers.get(b"host", b"").lower()


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer that says in one line why there is none."""
    from starlette.responses import JSONResponse

    # of what is too slow or too large the rest is not wanted
    known = {401: {"www-authenticate": 'Basic realm="egocnn"'}, 503: {"retry-after": "1"}}
    more = {"connection": "close"} if status in (408, 413) else known.get(status, {})
    line = " ".join(reason.encode("utf-8", "backslashreplace").decode().split())  # fit for JSON, and for the page
    line = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
    return JSONResponse({"error": line}, status, {**(headers or {}), **more})
