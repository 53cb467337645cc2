"""What a user can import says what it takes, what it gives back, and shows it at work; the examples run."""

import doctest
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from egocnn import EgoCNNClassifier, EgoCNNRegressor
from egocnn.config import ModelConfig, TrainConfig, field_help

MODULES = ("egocnn", "egocnn.nn", "egocnn.interop")
HEADINGS = ("Arguments", "Returns", "Raises", "Example")
OPTIONAL = {
    **dict.fromkeys(import_module("egocnn.interop.pyg").__all__, ("torch_geometric",)),
    **dict.fromkeys(import_module("egocnn.interop.onnx").__all__, ("onnx", "onnxscript")),
}
"""Libraries without which the examples of a name cannot run."""

NAMES = [(m, n) for n, m in {name: m for m in reversed(MODULES) for name in import_module(m).__all__}.items()]
"""Where a name can be imported from, each once."""


@pytest.fixture(autouse=True)
def _quiet_libraries() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch Geometric and onnxscript use what others have deprecated
        yield


def find(module: str, name: str) -> Any:
    for library in OPTIONAL.get(name, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    return getattr(import_module(module), name)


def sections(text: str) -> dict[str, str]:
    """A docstring -> what stands under each heading; what comes first under ''."""
    found, heading = {"": ""}, ""
    for line in inspect.cleandoc(text).splitlines():
        if line.removesuffix(":") in HEADINGS and line.endswith(":"):
            heading = line.removesuffix(":")
            found[heading] = ""
        else:
            found[heading] += line + "\n"
    return found


def own_bases(owner: type[Any]) -> list[type[Any]]:
    return [base for base in owner.__mro__ if base.__module__.split(".")[0] == "egocnn"]


def own_methods(owner: type[Any]) -> dict[str, Any]:
    """Public methods that are written in this package, those of private base classes included."""
    return {
        name: getattr(owner, name)
        for base in reversed(own_bases(owner))
        for name, value in vars(base).items()
        if not name.startswith("_") and isinstance(value, staticmethod | classmethod | type(find))
    }


def taken(called: Any) -> set[str]:
    """Names of the arguments; a class that is made as torch makes its modules takes none."""
    if isinstance(called, type) and "__init__" not in {name for base in own_bases(called) for name in vars(base)}:
        return set()
    return set(inspect.signature(called).parameters) - {"self"}


def faults_of(called: Any, text: str | None, *, returns: bool) -> Iterator[str]:
    """What a docstring lacks of all that it should have."""
    if not text:
        yield "no docstring"
        return
    found = sections(text)
    summary = found[""].strip().split("\n\n")[0]
    if not summary or "\n" in summary or not summary.endswith((".", '"')):
        yield f"the summary is not one line that ends with a full stop: {summary!r}"
    named = set(re.findall(r"^    (\w+): ", found.get("Arguments", ""), re.MULTILINE))
    if named != taken(called):
        yield f"arguments: {sorted(taken(called))} are taken, {sorted(named)} are explained"
    if returns and not found.get("Returns", "").strip():
        yield "no word on what is returned"


def gives_back(called: Any) -> bool:
    return inspect.signature(called).return_annotation not in ("None", None)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_says_what_it_takes_and_gives_back_and_has_an_example(module: str, name: str) -> None:
    public = find(module, name)
    text = inspect.getdoc(public) or ""
    is_record = is_dataclass(public)
    if is_record:
        lacking = [field.name for field in fields(public) if field.name not in field_help(public)]
        assert lacking == [], "fields without a line of meaning"
        assert sections(text)[""].strip(), "no summary"
    elif isinstance(public, type):
        made: Any = inspect.getattr_static(public, "__init__")
        text += "\n\n" + inspect.cleandoc(made.__doc__ or "")
        assert list(faults_of(public, text, returns=False)) == []
    else:
        assert list(faults_of(public, text, returns=gives_back(public))) == []
    if not is_record and taken(public):
        assert ">>>" in sections(text).get("Example", ""), "no example"
    for method, called in own_methods(public).items() if isinstance(public, type) else ():
        assert list(faults_of(called, called.__doc__, returns=gives_back(called))) == [], method


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_its_examples_print_what_they_show(
    module: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = find(module, name)
    monkeypatch.chdir(tmp_path)
    texts = {name: public.__doc__}
    if isinstance(public, type):
        texts |= {f"{name}.{method}": called.__doc__ for method, called in own_methods(public).items()}
    for title, text in texts.items():
        examples = doctest.DocTestParser().get_doctest(text or "", {"__name__": "example"}, title, None, None)
        said: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=said.append)
        assert said == [], "".join(said)


CONFIGS = (ModelConfig, TrainConfig)
BESIDES = {"embed": None, "embed_width": None, "verbose": False}
"""Parameters that are no fields of a record."""


@pytest.mark.parametrize("estimator", [EgoCNNClassifier, EgoCNNRegressor])
def test_an_estimator_takes_every_field_of_both_records_with_its_type_and_default(estimator: type[Any]) -> None:
    signature = inspect.signature(estimator).parameters
    assert {each.kind for each in signature.values()} == {inspect.Parameter.KEYWORD_ONLY}
    wanted = {field.name: field.default for config in CONFIGS for field in fields(config)}
    assert {name: each.default for name, each in signature.items()} == wanted | BESIDES
    types = get_type_hints(estimator.__init__)
    meant = re.sub(r"\n {8}", " ", sections(EgoCNNClassifier.__init__.__doc__ or "")["Arguments"])
    for config in CONFIGS:
        for name, kind in get_type_hints(config).items():
            assert types[name] == kind, name
            assert f"    {name}: {field_help(config)[name]}\n" in meant, name  # in the words of the records
