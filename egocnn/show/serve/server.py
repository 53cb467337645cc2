"""A run folder and its settings -> a server that answers requests until it is stopped. The process that listens does
nothing but HTTP: it answers, and can be stopped, whatever its workers are at. Nothing is stored between requests, and
nothing is written but an uploaded file, which lies in a private folder while it is read."""
# no postponed annotations here: FastAPI reads those of the functions below, and they name what is imported inside

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from egocnn import __version__
from egocnn.errors import DataError, EgoCNNError, MissingExtraError
from egocnn.show.assets import asset, fill, report_policy, style
from egocnn.show.serve import settings
from egocnn.show.serve.limits import Limits, RefusedError, refusal
from egocnn.show.serve.pool import WorkerPool, serve_requests, start_process
from egocnn.show.serve.settings import ExplainJob, Plain, ServeConfig, check_lines, typed_lines

if TYPE_CHECKING:
    from fastapi import FastAPI

BACKLOG = 1024  # Connections that may wait to be taken.
FINISH_SECONDS = 10  # For requests being answered when the server is told to stop; then their workers are killed.
SCHEMA = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorMessage"}}}  # else HTML, as some answers
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": reason, "content": SCHEMA}
    for status, reason in (
        (400, "a request that cannot be understood"),
        (401, "a request without the token that the server asks for"),
        (403, "a request that a page of another site has sent"),
        (408, "a request that did not arrive in time"),
        (413, "a request that is too large"),
        (500, "a defect of the server"),
        (503, "too many requests, or one that takes too long"),
    )
}
UNREADABLE = {"description": "input that the model cannot read; the line says why", "content": SCHEMA}


def serve(
    run_folder: Path, config: ServeConfig, *, device: str = "auto", ready: Callable[[str, str], None] | None = None
) -> None:
    """Serve a trained model until the process is stopped; ``ready`` gets the address and the name of the model."""
    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "serve") from None
    limits = {"seconds": config.work_seconds, "gigabytes": config.worker_gigabytes}
    threads = max(1, (os.cpu_count() or 1) // config.workers)
    folder = Path(os.path.realpath(run_folder))
    launch = partial(start_process, serve_requests, folder, device=device, threads=threads, **limits)
    with listen(config) as listening:
        pool = WorkerPool(launch, workers=config.workers, seconds=config.work_seconds)
        try:
            app: Any = build(pool, config)
            http: dict[str, Any] = {"http": guarded_protocol(config), "ws": "none", "server_header": False}
            log: dict[str, Any] = {"log_level": "warning", "access_log": False}
            server = uvicorn.Config(app, timeout_graceful_shutdown=FINISH_SECONDS, **http, **log)
            # uvicorn raises the signal once more when all is done: to be told to stop is no failure
            signal.signal(signal.SIGTERM, lambda *_: None)
            if ready is not None:
                host = f"[{config.host}]" if ":" in config.host else config.host
                ready(f"http://{host}:{listening.getsockname()[1]}", pool.about["name"])
            uvicorn.Server(server).run(sockets=[listening])
        finally:
            pool.close()


def guarded_protocol(config: ServeConfig) -> type[asyncio.Protocol]:
    """HTTP as uvicorn speaks it; connections beyond their number are closed, and those on which no headers arrive."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Guarded(H11Protocol):
        deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > config.connections:
                transport.abort()
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.deadline is not None:
                self.deadline.cancel()

        def watch(self) -> None:
            """From the first byte of a request until its headers are whole."""
            is_waiting = self.cycle is None or self.cycle.response_complete
            if is_waiting and self.deadline is None:
                self.deadline = self.loop.call_later(config.receive_seconds, self.transport.close)
            elif not is_waiting and self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    return Guarded


def listen(config: ServeConfig) -> socket.socket:
    """A listening socket; an address that cannot be had is refused in one line, and the port found for 0 is known."""
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, _, _, _, address = found[0]
        opened = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or "").partition(" (while")[0]  # Python repeats the address
        raise DataError(f"cannot listen on {config.host}, port {config.port}: {reason}") from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # for connections too: answers are sent at once
    return opened


def build(pool: WorkerPool, config: ServeConfig) -> Limits:
    """The application with its limits around it; ``/openapi.json`` describes what it takes and gives."""
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    description = "Predictions of one trained model, and the critical structure behind each."
    # no pages of documentation: they load scripts from elsewhere
    pages: dict[str, Any] = {"docs_url": None, "redoc_url": None}
    app = FastAPI(title="egocnn", version=__version__, description=description, responses=REFUSALS, **pages)
    _handle_errors(app)
    _add_page(app, pool.about, config)
    _add_explanations(app, pool)
    limits = Limits(app, config)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(limits.metrics(pool.waiting))

    return limits


def _add_page(app: "FastAPI", model: Plain, config: ServeConfig) -> None:
    from fastapi import HTTPException, Response
    from fastapi.responses import HTMLResponse

    from egocnn.show.serve.records import ModelFacts

    kinds = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
    files = {name: style("serve") if name == "page.css" else asset("serve", name) for name in kinds}

    @app.get("/", response_class=HTMLResponse, summary="The page")
    async def page() -> HTMLResponse:
        return HTMLResponse(fill("serve", {}))

    @app.get("/assets/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        return Response(files[name], media_type=kinds[name])

    @app.get("/health", summary="Whether the server is up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/model", summary="About the model")
    async def about() -> ModelFacts:
        limits: Plain = {n: getattr(settings, f"MOST_{n.upper()}") for n in ("graphs", "nodes", "edges", "rings")}
        limits |= {"bytes": config.most_bytes, "seconds": config.seconds, "work_seconds": config.work_seconds}
        return ModelFacts.model_validate(model | {"limits": limits | {"files": list(settings.FILE_SUFFIXES)}})


def _add_explanations(app: "FastAPI", pool: WorkerPool) -> None:
    from fastapi import File, Form, Response, UploadFile
    from fastapi.responses import HTMLResponse

    from egocnn.show.serve.records import TARGET, ErrorMessage, ExplainRequest, ExplainResponse

    unreadable = UNREADABLE | {"model": ErrorMessage}
    as_json: dict[str, Any] = {"response_model": ExplainResponse, "responses": {422: unreadable}}

    async def ask(job: ExplainJob, file: UploadFile | None = None) -> bytes:
        return await asyncio.wrap_future(pool.submit(job, b"" if file is None else await file.read()))

    def respond(answers: list[bytes]) -> Response:
        """Lists of answers, as JSON already, in one."""
        inside = b", ".join(some[1:-1] for some in answers)
        return Response(b'{"answers": [' + inside + b"]}", media_type="application/json")

    @app.post("/explain", summary="Explain molecules", **as_json)
    async def explain(request: ExplainRequest) -> Response:
        lines = [request.smiles] if isinstance(request.smiles, str) else request.smiles
        check_lines(lines)
        whole = ExplainJob(lines=tuple(lines), **request.model_dump(exclude={"smiles"}))
        return respond([await ask(job) for job in whole.portions(settings.MOST_AT_ONCE)])

    @app.post("/explain/file", summary="Explain a file of graphs", **as_json)
    async def explain_file(
        file: Annotated[UploadFile, File(description=f"a file whose name ends in {', '.join(settings.FILE_SUFFIXES)}")],
        explained: Annotated[str | None, Form(description="the class to explain; by default the predicted one")] = None,
        target: Annotated[str | None, Form(description=TARGET)] = None,
    ) -> Response:
        job = ExplainJob(file=file.filename or "", explained=explained or None, target=target or None)
        return respond([await ask(job, file)])

    summary = "A whole report on molecules, or on a file of graphs"

    @app.post("/report", response_class=HTMLResponse, summary=summary, responses={422: UNREADABLE})
    async def report(
        smiles: Annotated[str, Form(description="one molecule a line: a SMILES and, after a space, its name")] = "",
        file: Annotated[UploadFile | None, File(description="instead of molecules: a file of graphs")] = None,
        target: Annotated[str | None, Form(description=TARGET)] = None,
    ) -> HTMLResponse:
        if file is not None and file.filename:
            job = ExplainJob(report=True, file=file.filename, target=target or None)
        else:
            lines = tuple(typed_lines(smiles))
            job, file = ExplainJob(report=True, lines=lines, target=target or None), None
        policy = f"{report_policy()}; frame-ancestors 'none'"
        return HTMLResponse(await ask(job, file), headers={"content-security-policy": policy})


def _handle_errors(app: "FastAPI") -> None:
    from fastapi import Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

    @app.exception_handler(EgoCNNError)
    async def refused(_: Request, error: EgoCNNError) -> JSONResponse:
        return refusal(error.status if isinstance(error, RefusedError) else 422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        errors = error.errors()  # of a list that is no text either: what is wrong with the list
        first = next((e for e in errors if e["type"] != "string_type" or not isinstance(e["input"], list)), errors[0])
        if first["type"] == "json_invalid":
            return refusal(422, "the request is not JSON")
        place = "".join(f"{part}: " for part in first["loc"][1:2])  # further ones name pydantic's own types
        return refusal(422, f"{place}{first['msg']}")

    @app.exception_handler(HTTPException)
    async def unanswered(_: Request, error: HTTPException) -> JSONResponse:
        return refusal(error.status_code, error.detail, error.headers)

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        logging.getLogger("egocnn").error("%s failed", request.url.path, exc_info=error)
        return refusal(500, "something went wrong in the server; its log says what")
