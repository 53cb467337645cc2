"""The shape of the project, read from its syntax trees: imports flow one way, every floor fits in one look."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import egocnn

PACKAGE = Path(egocnn.__file__).parent
ROOT = PACKAGE.parent

ROOMS = (
    *("errors", "files", "config"),
    *("data", "nn", "encode", "model", "train", "explain", "show", "study", "interop", "cli", "__main__"),
)
"""A room imports only from the rooms before it. ``nn`` says what a network reads, ``encode`` makes it from graphs."""

CONVENIENCE = {("egocnn.explain.structure", "show")}
"""A method that calls a later room on what it belongs to: ``structure.draw("it.svg")``."""

MOST_ENTRIES = 12
"""On any floor, ``__init__.py`` not counted; at the top of the package two more."""

LONGEST_FUNCTION = 100

LAZY = (
    *("rich", "rdkit", "networkx", "matplotlib", "torch_geometric", "pandas", "torch.utils.tensorboard", "triton"),
    *("grakel", "gensim", "igraph", "powerlaw", "ray", "fastapi", "starlette", "uvicorn"),
    *("onnx", "onnxscript", "onnxruntime"),
)
"""Imported inside the functions that need them: they are slow to import, or optional."""

KERNELS = tuple(f"egocnn.nn.engines.gpu.{name}" for name in ("conv_kernels", "row_kernels"))
"""GPU programs, which are nothing without Triton; imported as lazily as Triton itself."""

LONGEST = 400
"""Lines of a file beside its docstrings, which a user reads one at a time."""

Import = tuple[int, str]
"""line, dotted name"""


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in files()}


def is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in ast.unparse(test)


def statements(tree: ast.AST, *, inside_functions: bool) -> Iterator[ast.AST]:
    """All statements that run: not those under TYPE_CHECKING, and those in functions only if asked for."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and is_type_checking(node.test):
            for branch in node.orelse:
                yield branch
                yield from statements(branch, inside_functions=inside_functions)
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not inside_functions:
            continue
        yield node
        yield from statements(node, inside_functions=inside_functions)


def imports(path: Path, *, inside_functions: bool) -> list[Import]:
    found: list[Import] = []
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}, line {node.lineno}: imports name their module in full"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.append((node.lineno, whole if whole in MODULES else str(node.module)))
    return found


def room(module: str) -> int:
    """Where the room of a module stands in the order."""
    name = module.split(".")[1]
    assert name in ROOMS, f"egocnn.{name} is no room: give it a place in ROOMS"
    return ROOMS.index(name)


def ours(path: Path) -> list[Import]:
    return [(line, name) for line, name in imports(path, inside_functions=True) if name.split(".")[0] == "egocnn"]


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_from_rooms_before_it_and_nothing_of_lab_and_tests(module: str) -> None:
    for line, name in imports(MODULES[module], inside_functions=True):
        assert name.split(".")[0] not in ("lab", "tests"), f"{module}, line {line}: imports {name}"
    if module == "egocnn":
        assert ours(MODULES[module]) == []  # the root imports public names only when they are used
        return
    for line, name in ours(MODULES[module]):
        if name != "egocnn" and (module, name.split(".")[1]) not in CONVENIENCE:
            assert room(name) <= room(module), f"{module}, line {line}: imports {name}, a later room"


def test_no_import_leads_back_to_where_it_started() -> None:
    graph = {
        module: {name for _, name in ours(path) if name != "egocnn" and (module, name.split(".")[1]) not in CONVENIENCE}
        for module, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("top", ["egocnn", "lab", "tests"])
def test_every_floor_fits_in_one_look(top: str) -> None:
    for folder in (ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())):
        if folder.name == "__pycache__":
            continue
        entries = {path.name for path in folder.iterdir()} - {"__pycache__", "__init__.py", "__main__.py", "py.typed"}
        most = MOST_ENTRIES + 2 * (folder == PACKAGE)
        assert len(entries - {"conftest.py"}) <= most, f"{folder.relative_to(ROOT)} has {len(entries)} entries"


@pytest.mark.parametrize("folder", sorted({path.parent for path in files()}), ids=lambda folder: folder.name)
def test_a_room_says_in_one_sentence_what_comes_in_and_what_goes_out(folder: Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert 20 < len(text.split("\n\n")[0]) <= 240, f"{folder.name}/__init__.py: {text!r}"


@pytest.mark.parametrize("module", MODULES)
def test_no_function_is_longer_than_a_screen_or_two(module: str) -> None:
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{module}.{node.name} has {lines} lines"


@pytest.mark.parametrize("module", MODULES)
def test_slow_and_optional_libraries_are_imported_where_they_are_used(module: str) -> None:
    for line, name in imports(MODULES[module], inside_functions=False):
        if module in KERNELS:  # which may use one another as they use Triton
            continue
        where = f"{module}, line {line}: {name} is imported at the top; import it in the function that needs it"
        assert name not in KERNELS, where
        assert not any(f"{name}.".startswith(f"{lazy}.") for lazy in LAZY), where


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_unpickled_or_evaluated(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for line, name in imports(MODULES[module], inside_functions=True):
        assert name.split(".")[0] not in ("pickle", "dill", "cloudpickle", "marshal", "shelve"), f"line {line}: {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            where = f"line {node.lineno}: {called}"
            assert called not in ("eval", "exec", "compile", "torch.load", "torch.save"), where
            allowed = [ast.unparse(k.value) for k in node.keywords if k.arg == "allow_pickle"]
            assert allowed in ([], ["False"]), where


@pytest.mark.parametrize("module", MODULES)
def test_a_file_opens_with_what_it_is_for_and_stays_short(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), f"{module} has no docstring"
    objects = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.ClassDef))
    documented = [each.body[0] for each in objects if ast.get_docstring(each)]
    in_docstrings = sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in documented)
    assert len(text.splitlines()) - in_docstrings <= LONGEST


TORCH_FREE = [
    "egocnn",
    "egocnn.config",
    "egocnn.data.graphs",
    "egocnn.encode.ranking",
    "egocnn.study.invariance",
    "egocnn.cli",
    *(module for module in MODULES if module.startswith(("egocnn.data.sources", "egocnn.data.generated"))),
]


def test_reading_and_asking_for_help_do_not_wait_for_torch() -> None:
    """One fresh interpreter imports them all, in turn; the first that brings torch along is named."""
    script = f"""
import importlib, sys
for name in {TORCH_FREE!r}:
    importlib.import_module(name)
    heavy = sorted({{"torch", "rdkit", "networkx", "pandas", "rich", "matplotlib", "sklearn"}} & set(sys.modules))
    if heavy:
        sys.exit(f"importing {{name}} imports {{', '.join(heavy)}}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
