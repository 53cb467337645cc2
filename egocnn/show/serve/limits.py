"""A web application -> the same with limits of size, time and number, and with safe headers in every answer.

Plain ASGI, so that every answer passes here, whoever made it. A request is read whole before the application sees any
of it: its size is limited, and a slow sender occupies no model and nobody's place. ``/health`` waits for nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from egocnn.errors import EgoCNNError
from egocnn.show.serve.settings import LOCAL, ServeConfig

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing but the page's own files, and pictures that it makes; no script or style inside the HTML."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)


RECEIVING = 64
"""Requests of the largest size that memory holds while they arrive; when they are more, further ones are sent away."""


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

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                message["headers"] = given + [pair for pair in HEADERS if pair[0] not in names]
            await send(message)

        try:
            self._check(scope)
            body = await self._body(receive)
            async with asyncio.timeout(self._config.seconds):
                with self._place(scope["path"]):
                    await self._app(scope, _replay(body, receive), send_on)
        except RefusedError as refused:
            await _refuse(refused.status, str(refused), send_on)
        except TimeoutError:
            if not started:
                await _refuse(503, f"this took longer than {self._config.seconds:g} seconds; send less", send_on)
        except asyncio.CancelledError:
            if not started:
                await _refuse(503, "the server is being stopped", send_on)

    @contextmanager
    def _place(self, path: str) -> Iterator[None]:
        """One of the places for requests; whether the server is up can be asked without."""
        if path == "/health":
            yield
            return
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
        if self._config.is_local and _host(headers.get(b"host", b"")) not in LOCAL:
            raise RefusedError(400, "this server answers to localhost alone; --host lets others in")
        if scope["method"] not in ("GET", "HEAD") and not _is_own(headers):
            raise RefusedError(403, "a page of another site may not send anything here")
        length = headers.get(b"content-length", b"0")
        self._check_size(int(length) if length.isdigit() else 0)

    def _check_size(self, size: int) -> None:
        if size > self._config.most_bytes:
            raise RefusedError(
                413, f"a request may have {self._config.megabytes:g} MB at most; egocnn explain takes more"
            )

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


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def _host(header: bytes) -> str:
    """The name in a Host header, without port and brackets."""
    text = header.decode("latin-1").lower()
    return text[1 : text.find("]")] if text.startswith("[") else text.partition(":")[0]


async def _refuse(status: int, reason: str, send: Send) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    if status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of it is not wanted
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
