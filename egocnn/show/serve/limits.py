"""A web application -> the same with limits of size, time and number, and with safe headers in every answer.

Plain ASGI, so that every answer passes here, whoever made it. A request is read whole before the application sees any
of it: its size is limited, and a slow sender occupies no model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

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


class _RefusedError(Exception):
    """A request that the application never sees."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Limits:
    """An application with these limits around it; itself an ASGI application."""

    def __init__(self, app: Application, config: ServeConfig) -> None:
        self._app, self._config = app, config
        self._inside = 0

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

        self._inside += 1
        try:
            self._check(scope)
            async with asyncio.timeout(self._config.seconds):
                body = await self._body(receive)
                await self._app(scope, _replay(body, receive), send_on)
        except _RefusedError as refused:
            await _refuse(refused.status, str(refused), send_on)
        except TimeoutError:
            if not started:
                await _refuse(503, f"this took longer than {self._config.seconds:g} seconds; send less", send_on)
        finally:
            self._inside -= 1

    def _check(self, scope: Message) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        # a page elsewhere can have a name of its own resolve to this machine: its visitors' browsers then ask us
        if self._config.is_local and _host(headers.get(b"host", b"")) not in LOCAL:
            raise _RefusedError(400, "this server answers to localhost alone; --host lets others in")
        if self._inside > self._config.waiting:
            raise _RefusedError(503, "too many requests at a time; try again in a moment")
        length = headers.get(b"content-length", b"0")
        self._check_size(int(length) if length.isdigit() else 0)

    def _check_size(self, size: int) -> None:
        if size > self._config.most_bytes:
            raise _RefusedError(
                413, f"a request may have {self._config.megabytes:g} MB at most; egocnn explain takes more"
            )

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the sender has gone
                return b""
            body += message.get("body", b"")
            self._check_size(len(body))
            if not message.get("more_body"):
                return bytes(body)


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
    if status == 413:
        headers.append((b"connection", b"close"))  # the rest of it is not wanted
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
