"""The server against its own description: whatever the description allows or forbids, answers are what it says."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from egocnn.show.serve.settings import ServeConfig
from tests.show.serve.models import MOLECULES, classifier, client, served

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

EXAMPLES = 20


def description() -> Any:
    inner = served(classifier(), ServeConfig(host="0.0.0.0", token="secret"))  # schemathesis asks by a name of its own

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [*scope.get("headers", ()), (b"authorization", b"Bearer secret")]
        await inner({**scope, "headers": headers}, receive, send)

    return schemathesis.openapi.from_asgi("/openapi.json", app)


def checks(*more: str) -> list[Any]:
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    names = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
    return [CHECKS.get_one(name) for name in (*names, *more)]


def fuzz(operation: str, mode: str, wanted: list[Any], *, smiles: bool = False) -> set[int]:
    """Ask whatever the description allows, or forbids; the statuses that came back."""
    method, path = operation.split()
    strategy = description()[path][method].as_strategy(generation_mode=schemathesis.GenerationMode[mode])
    met: set[int] = set()

    @given(st.data())
    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def ask(data: Any) -> None:
        case = data.draw(strategy)
        if smiles and isinstance(case.body, dict):
            case.body["smiles"] = data.draw(st.sampled_from(MOLECULES))  # no description of SMILES makes molecules
            for name in ("explained", "target"):
                case.body.pop(name, None)
        met.add(case.call_and_validate(checks=wanted).status_code)

    ask()
    return met


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", ["/", "/health", "/model"])
def test_what_can_be_got_is_what_the_description_says(path: str) -> None:
    assert fuzz(f"GET {path}", "POSITIVE", checks()) == {200}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", ["/explain", "/explain/file", "/report"])
@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_answers_to_anything_are_what_the_description_says(path: str, mode: str) -> None:
    is_strict = (path, mode) == ("/explain", "NEGATIVE")  # in a form everything is text, so little is forbidden
    fuzz(f"POST {path}", mode, checks("negative_data_rejection") if is_strict else checks())


@pytest.mark.filterwarnings("ignore")
def test_answers_about_molecules_are_what_the_description_says() -> None:
    assert fuzz("POST /explain", "POSITIVE", checks(), smiles=True) == {200}


def test_the_description_names_every_way_in_and_every_refusal() -> None:
    told = client().get("/openapi.json").json()
    assert set(told["paths"]) == {"/", "/health", "/model", "/explain", "/explain/file", "/report"}
    for path in ("/explain", "/explain/file", "/report"):
        assert {"200", "413", "422", "503"} <= told["paths"][path]["post"]["responses"].keys()
    for path, operations in told["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status != "200":
                    schema = response["content"]["application/json"]["schema"]
                    assert schema["$ref"].endswith("/ErrorMessage"), (path, status)
