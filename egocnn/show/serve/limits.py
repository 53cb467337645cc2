"""A web application -> the same with limits of size, time and number, and with safe headers in every answer. Plain
ASGI, so that every answer passes here. A request is read whole first: a slow sender occupies nobody's place."""

import asyncio
import logging
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from hmac import compare_digest
from typing import TYPE_CHECKING

from egocnn.errors import EgoCNNError
from egocnn.show.serve.settings import LOCAL, ServeConfig

if TYPE_CHECKING:
    from starlette.responses import JSONResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

    def __init__(self, app: "ASGIApp", config: ServeConfig) -> None:
        self._app, self._config = app, config
        self._inside = self._arriving = 0
        self._answered, self._seconds = Counter[int](), 0.0

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from starlette.datastructures import MutableHeaders

        began, status, is_coming = time.perf_counter(), 0, True

        async def receive_on() -> "Message":
            nonlocal is_coming
            message = await receive()
            is_coming = message.get("more_body", False)
            return message

        async def send_on(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            refused = await self._refusal(scope, receive_on, send_on)
            if refused is not None and not status:
                start = {"type": "http.response.start", "status": refused.status_code, "headers": refused.raw_headers}
                await send_on(start)
                await send_on({"type": "http.response.body", "body": refused.body, "more_body": True})
                # a connection that is closed with something unread is reset, and the answer lost with it
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._config.receive_seconds):
                        while is_coming and refused.status_code == 413:
                            await receive_on()
                await send_on({"type": "http.response.body"})
        finally:
            self._note(scope, status or 499, time.perf_counter() - began)

    def _note(self, scope: "Scope", status: int, seconds: float) -> None:
        """Count an answer, and log it; 499, as proxies call it: the sender has gone before the answer."""
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

    async def _refusal(self, scope: "Scope", receive: "Receive", send: "Send") -> "JSONResponse | None":
        """Let the application answer within its limits; where one of them is passed, what to say."""

        async def replay() -> "Message":
            return {"type": "http.request", "body": body.pop()} if body else await receive()

        try:
            self._check(scope)
            body = [await self._body(receive)]
            takes_place = scope["path"] not in ("/health", "/metrics")
            if takes_place and self._inside >= self._config.waiting:
                raise RefusedError(503, "too many requests at a time; try again in a moment")
            self._inside += takes_place
            try:
                async with asyncio.timeout(self._config.seconds):
                    await self._app(scope, replay, send)
            finally:
                self._inside -= takes_place
        except RefusedError as refused:
            return refusal(refused.status, str(refused))
        except TimeoutError:
            return refusal(503, f"this took longer than {self._config.seconds:g} seconds; send less")
        except asyncio.CancelledError:
            return refusal(503, "the server is being stopped")
        return None

    def _check(self, scope: "Scope") -> None:
        from starlette.datastructures import Headers

        headers = Headers(scope=scope)
        # a page elsewhere can have a name of its own resolve to this machine: its visitors' browsers then ask us
        host = headers.get("host", "").lower()
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        if self._config.host in LOCAL and name not in LOCAL:
            raise RefusedError(400, "this server answers to localhost alone; --host lets others in")
        if scope["method"] not in ("GET", "HEAD") and not _is_own(headers):
            raise RefusedError(403, "a page of another site may not send anything here")
        if self._config.secret and scope["path"] != "/health":
            self._check_token(headers.get("authorization", ""))
        length = headers.get("content-length", "0")
        self._check_size(int(length) if length.isdecimal() else 0)

    def _check_token(self, given: str) -> None:
        """``Bearer TOKEN``, or the password that a browser asks for, whatever the name beside it"""
        kind, _, text = given.partition(" ")
        said = text.encode("latin-1")
        if kind.lower() == "basic":
            with suppress(ValueError):
                said = b64decode(said).partition(b":")[2]
        if not compare_digest(said, self._config.secret.encode()):
            raise RefusedError(401, "this server asks for a token: Authorization: Bearer TOKEN, or as the password")

    def _check_size(self, size: int) -> None:
        if size > self._config.most_bytes:
            most = f"{self._config.megabytes:g} MB"
            raise RefusedError(413, f"a request may have {most} at most; egocnn explain takes more")

    async def _body(self, receive: "Receive") -> bytes:
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


def _is_own(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from our own page, or from no page at all: browsers say which."""
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> "JSONResponse":
    """The answer that says in one line why there is none."""
    from starlette.responses import JSONResponse

    # of what is too slow or too large the rest is not wanted
    known = {401: {"www-authenticate": 'Basic realm="egocnn"'}, 503: {"retry-after": "1"}}
    more = {"connection": "close"} if status in (408, 413) else known.get(status, {})
    line = " ".join(reason.encode("utf-8", "backslashreplace").decode().split())  # fit for JSON, and for the page
    line = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
    return JSONResponse({"error": line}, status, {**(headers or {}), **more})
