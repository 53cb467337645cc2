"""A trained model -> a web application: a page, answers as JSON, and reports. Nothing is stored between requests, and
nothing is written but an uploaded file, which lies in a private folder while it is read."""
# no postponed annotations here: FastAPI reads those of the functions below, and they name what is imported inside

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, Any

from egocnn import __version__
from egocnn.errors import EgoCNNError
from egocnn.show.assets import asset, fill, report_policy, style
from egocnn.show.serve import settings
from egocnn.show.serve.limits import Limits, RefusedError, refusal
from egocnn.show.serve.pool import WorkerPool
from egocnn.show.serve.settings import ExplainJob, Plain, ServeConfig, check_lines, typed_lines

if TYPE_CHECKING:
    from fastapi import FastAPI

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
