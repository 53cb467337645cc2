"""A trained model -> a web application: a page, answers as JSON, and reports.

Nothing is kept between requests, so that any process can answer any of them, and nothing is written but an uploaded
file, which lies in a private folder while it is read.
"""
# no postponed annotations here: FastAPI reads those of the functions below, and they name what is imported inside

import asyncio
import json
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

from egocnn import __version__
from egocnn.errors import DataError, EgoCNNError, MissingExtraError
from egocnn.show.report.page import SCRIPTS, policy
from egocnn.show.serve.desk import Desk, Plain, Question
from egocnn.show.serve.limits import Limits
from egocnn.show.serve.model import ServedModel
from egocnn.show.serve.settings import (
    FILE_SUFFIXES,
    MOST_AT_ONCE,
    MOST_CHARACTERS,
    MOST_GRAPHS,
    MOST_NODES,
    ServeConfig,
)

if TYPE_CHECKING:
    from fastapi import FastAPI

ENVIRONMENT = "EGOCNN_SERVE"
"""Where a further process finds what to serve: it starts afresh, and is given nothing but a name to import."""

ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}

REASONS = {
    400: "a request that cannot be understood",
    413: "a request that is too large",
    422: "input that the model cannot read; the line says why",
    500: "a defect of the server",
    503: "too many requests, or one that takes too long",
}


def from_environment() -> Limits:
    """The application of a further process."""
    settings = json.loads(os.environ[ENVIRONMENT])
    model = ServedModel.load(Path(settings.pop("run")), device=settings.pop("device"))
    threads = settings.pop("threads")
    config = ServeConfig(**settings)
    import torch

    torch.set_num_threads(threads)
    return build(model, config)


def build(model: ServedModel, config: ServeConfig) -> Limits:
    """The application with its limits around it."""
    return Limits(describe(model, config), config)


def describe(model: ServedModel, config: ServeConfig) -> "FastAPI":
    """The application alone; ``/openapi.json`` tells what it takes and gives."""
    try:
        from fastapi import FastAPI, File, Form, Response, UploadFile
        from fastapi.responses import HTMLResponse

        from egocnn.show.serve.records import About, Answers, Ask, Health, Problem
    except ImportError:
        raise MissingExtraError("fastapi", "serve") from None

    desk = Desk(model.answer)
    slow = ThreadPoolExecutor(1, thread_name_prefix="read")  # files and reports: molecules that are typed do not wait
    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": reason} for status, reason in REASONS.items()
    }
    simple: dict[int | str, dict[str, Any]] = {status: problems[status] for status in (400, 413, 500, 503)}
    # FastAPI would have it that where the answer is HTML the refusals are, too
    as_json = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    beside_html: dict[int | str, dict[str, Any]] = {
        status: {"description": reason, "content": as_json} for status, reason in REASONS.items()
    }
    app = FastAPI(
        title="egocnn",
        version=__version__,
        description="Predictions of one trained model, and the critical structure behind each.",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
    )
    _handle_errors(app)

    async def answers(questions: Sequence[Question]) -> Response:
        given: list[Plain] = []
        for question in questions:
            given += await desk.ask(question)
        return Response(json.dumps({"answers": given}, allow_nan=False), media_type="application/json")

    @app.get("/", response_class=HTMLResponse, summary="The page", responses=beside_html)
    async def page() -> HTMLResponse:
        return HTMLResponse(asset("page.html"))

    for name, kind in ASSETS.items():
        app.add_api_route(f"/assets/{name}", _sender(name, kind), include_in_schema=False)

    @app.get("/health", summary="Whether the server is up", responses=simple)
    async def health() -> Health:
        return Health(status="ok")

    @app.get("/model", summary="About the model", responses=simple)
    async def about() -> About:
        limits = {
            "bytes": config.most_bytes,
            "graphs": MOST_GRAPHS,
            "nodes": MOST_NODES,
            "seconds": config.seconds,
            "files": list(FILE_SUFFIXES),
        }
        return About.model_validate(model.about() | {"limits": limits})

    @app.post("/explain", response_model=Answers, summary="Explain molecules", responses=problems)
    async def explain(ask: Ask) -> Response:
        lines = [ask.smiles] if isinstance(ask.smiles, str) else ask.smiles
        return await answers(
            [
                Question(
                    lines=tuple(lines[first : first + MOST_AT_ONCE]),
                    first=first + 1,
                    explained=ask.explained,
                    fidelity=ask.fidelity,
                    picture=ask.picture,
                )
                for first in range(0, len(lines), MOST_AT_ONCE)
            ]
        )

    @app.post("/explain/file", response_model=Answers, summary="Explain a file of graphs", responses=problems)
    async def explain_file(
        file: Annotated[UploadFile, File(description=f"a file whose name ends in {', '.join(FILE_SUFFIXES)}")],
        explained: Annotated[str | None, Form(description="the class to explain; by default the predicted one")] = None,
    ) -> Response:
        graphs = await _in(slow, model.read_file, file.filename or "", await file.read())
        return await answers(
            [
                Question(graphs=graphs[first : first + MOST_AT_ONCE], explained=explained or None)
                for first in range(0, len(graphs), MOST_AT_ONCE)
            ]
        )

    @app.post(
        "/report",
        response_class=HTMLResponse,
        summary="A whole report on molecules, or on a file of graphs",
        responses=beside_html,
    )
    async def report(
        smiles: Annotated[str, Form(description="one molecule a line: a SMILES and, after a space, its name")] = "",
        file: Annotated[UploadFile | None, File(description="instead of molecules: a file of graphs")] = None,
    ) -> HTMLResponse:
        name = (file and file.filename) or ""
        if file is not None and name:
            graphs = await _in(slow, model.read_file, name, await file.read())
        else:
            graphs = await _in(slow, model.read_lines, typed_lines(smiles))
        text = await _in(slow, model.report, graphs, PurePath(name).name or "SMILES typed in")
        return HTMLResponse(text, headers={"content-security-policy": report_policy()})

    return app


def typed_lines(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST_GRAPHS:
        raise DataError(f"{len(lines)} molecules; a report takes 1 to {MOST_GRAPHS}, one a line, or a file")
    if (longest := max(map(len, lines))) > MOST_CHARACTERS:
        raise DataError(f"a line of {longest} characters; {MOST_CHARACTERS} are read at most")
    return lines


@cache
def asset(name: str) -> str:
    return files("egocnn.show.serve").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def report_policy() -> str:
    """What a report says of itself, by its scripts' fingerprints, and that no other page may frame it."""
    folder = files("egocnn.show.report").joinpath("assets")
    scripts = [folder.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS]
    return f"{policy(scripts)}; frame-ancestors 'none'"


async def _in(threads: ThreadPoolExecutor, work: Any, *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)


def _sender(name: str, kind: str) -> Any:
    from fastapi import Response

    async def send() -> Response:
        return Response(asset(name), media_type=kind)

    return send


def _handle_errors(app: "FastAPI") -> None:
    """Every error becomes one line of JSON."""
    from fastapi import Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

    def refuse(status: int, reason: str) -> JSONResponse:
        headers = {"retry-after": "1"} if status == 503 else None
        return JSONResponse({"error": _one_line(reason)}, status, headers)

    async def refused(_: Request, error: Exception) -> JSONResponse:
        return refuse(503 if isinstance(error, MissingExtraError) else 422, str(error))

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return refuse(422, "the request is not JSON")
        place = "".join(f"{part}: " for part in first["loc"][1:2])  # further ones name pydantic's own types
        return refuse(422, f"{place}{first['msg']}")

    async def unanswered(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        answer = refuse(error.status_code, error.detail)
        answer.headers.update(error.headers or {})
        return answer

    async def broken(request: Request, error: Exception) -> JSONResponse:
        logging.getLogger("egocnn").error("%s failed", request.url.path, exc_info=error)
        return refuse(500, "something went wrong in the server; its log says what")

    app.add_exception_handler(EgoCNNError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, unanswered)
    app.add_exception_handler(Exception, broken)


def _one_line(text: str, most: int = 500) -> str:
    """Fit for JSON and for a line on the page."""
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
