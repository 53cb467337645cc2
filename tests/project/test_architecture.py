"""The shape of the project, read from its syntax trees: imports flow one way, every floor fits in one look."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import egocnn

PACKAGE = Path(egocnn.__file__).parent
ROOT = PACKAGE.parent

ROOMS = (
    *("errors", "files", "config"),
    *("data", "nn", "encode", "model", "train", "explain", "show", "study", "interop", "scale", "cli", "__main__"),
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
    *("onnx", "onnxscript", "onnxruntime", "pyarrow", "scipy.optimize"),
)
"""Imported inside the functions that need them: they are slow to import, or optional."""

KERNELS = tuple(f"egocnn.nn.engines.gpu.{name}" for name in ("conv_kernels", "row_kernels"))
"""GPU programs, which are nothing without Triton; imported as lazily as Triton itself."""

UNSAFE = ("pickle", "dill", "cloudpickle", "marshal", "shelve")

LONGEST = 400
"""Lines of a file beside its docstrings, which a user reads one at a time."""

Import = tuple[int, str]
"""line, dotted name"""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(tree: ast.AST, *, inside_functions: bool) -> Iterator[ast.AST]:
    """All statements that run: not those under TYPE_CHECKING, and those in functions only if asked for."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
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
    for node in statements(tree_of(path), inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}, line {node.lineno}: imports name their module in full"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.append((node.lineno, whole if whole in MODULES else str(node.module)))
    return found


def ours(module: str) -> list[Import]:
    """Imports of the package itself, other than those of a convenience."""
    found = imports(MODULES[module], inside_functions=True)
    inside = [(line, name) for line, name in found if name.startswith("egocnn.")]
    return [(line, name) for line, name in inside if (module, name.split(".")[1]) not in CONVENIENCE]


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_from_rooms_before_it_and_slow_libraries_where_they_are_used(module: str) -> None:
    for line, name in imports(MODULES[module], inside_functions=True):
        where = f"{module}, line {line}: imports {name}"
        assert name.split(".")[0] not in ("lab", "tests", *UNSAFE), where
    for line, name in ours(module):
        assert module != "egocnn", "the root imports public names only when they are used"
        later, here = (ROOMS.index(each.split(".")[1]) for each in (name, module))
        assert later <= here, f"{module}, line {line}: imports {name}, a later room"
    for line, name in imports(MODULES[module], inside_functions=False):
        lazy = name in KERNELS or any(f"{name}.".startswith(f"{each}.") for each in LAZY)
        # kernels may use one another as they use Triton
        assert module in KERNELS or not lazy, f"{module}, line {line}: import {name} in the function that needs it"


def test_no_import_leads_back_to_where_it_started() -> None:
    graph = {module: {name for _, name in ours(module)} for module in MODULES}
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


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("module", MODULES)
def test_a_file_says_what_it_is_for_stays_short_and_evaluates_nothing(module: str) -> None:
    path, tree = MODULES[module], tree_of(MODULES[module])
    text = ast.get_docstring(tree)
    assert text, f"{module} has no docstring"
    if path.name == "__init__.py":  # a room says in one sentence what comes in and what goes out
        assert 20 < len(text.split("\n\n")[0]) <= 240, f"{module}: {text!r}"
    in_docstrings = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            in_docstrings += lines_of(node.body[0]) if ast.get_docstring(node) else 0
            is_class = isinstance(node, ast.ClassDef)
            assert is_class or lines_of(node) <= LONGEST_FUNCTION, f"{module}.{node.name} has {lines_of(node)} lines"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            where = f"{module}, line {node.lineno}: {called}"
            assert called not in ("eval", "exec", "compile", "torch.load", "torch.save"), where
            allowed = [ast.unparse(k.value) for k in node.keywords if k.arg == "allow_pickle"]
            assert allowed in ([], ["False"]), where
    assert len(path.read_text(encoding="utf-8").splitlines()) - in_docstrings <= LONGEST


TORCH_FREE = [
    "egocnn",
    "egocnn.config",
    "egocnn.data.graphs",
    "egocnn.encode.ranking",
    "egocnn.cli",
    *(module for module in MODULES if module.startswith(("egocnn.data.sources", "egocnn.data.generated"))),
]


def test_reading_and_asking_for_help_do_not_wait_for_torch() -> None:
    """One fresh interpreter imports them all, in turn, and reads; the first that brings torch along is named."""
    script = f"""
import importlib.util, sys, types
HEAVY = {{"torch", "torch_geometric", "rdkit", "networkx", "pandas", "rich", "matplotlib", "sklearn"}}
def check(what, *needed):
    if heavy := HEAVY & set(sys.modules) - set(needed):
        sys.exit(f"{{what}} imports {{', '.join(sorted(heavy))}}")
for name in {TORCH_FREE!r}:
    importlib.import_module(name)
    check(f"importing {{name}}")
import egocnn, numpy
egocnn.read(types.SimpleNamespace(edge_index=numpy.array([[0], [1]])))
check("reading an object with an edge_index")
if importlib.util.find_spec("rdkit"):
    egocnn.read(["CCO"]), egocnn.read("CCO")
    check("reading molecules", "rdkit")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
