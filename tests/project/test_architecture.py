"""The shape of the package, read from its syntax trees: data and imports flow one way."""

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

ORDER = (
    "errors",
    "files",
    "config",
    "presets",
    "arrays",
    "schema",
    "splitting",
    "graphs",
    "parts",
    "edges",
    "testing",
    "readers",
    "compounds",
    "store",
    "reading",
    "layout",
    "drawing",
    "structure",
    "truth",
    "elements",
    "report",
    "explaining",
    "cutting",
    "colours",
    "patterns",
    "describe",
    "ties",
    "resident",
    "ranking",
    "scalefree",
    "patches",
    "ops",
    "batching",
    "degrees",
    "rest",
    "fitting",
    "preparation",
    "shelf",
    "nn",
    "halves",
    "training",
    "predictor",
    "as_trained",
    "blockwise",
    "checkpoint",
    "distributed",
    "critical",
    "pyg",
    "export",
    "stacking",
    "learning",
    "learning_stored",
    "run_folder",
    "runs",
    "torchrun",
    "progress",
    "statistics",
    "cluster",
    "crossval",
    "baselines",
    "predictions",
    "streaming",
    "estimator",
    "proving",
    "figures",
    "recurring",
    "tables",
    "reproduce",
    "experiments",
    "bench",
    "serve",
    "sweep",
    "cli",
    "__main__",
)
"""A module, or a folder of them, imports only from those above it."""

LAZY = (
    *("rich", "rdkit", "networkx", "matplotlib", "torch_geometric", "pandas", "torch.utils.tensorboard", "triton"),
    *("grakel", "gensim", "igraph", "powerlaw", "ray", "fastapi", "starlette", "uvicorn"),
    *("onnx", "onnxscript", "onnxruntime"),
)
"""Imported inside the functions that need them: they are slow to import, or optional."""

KERNELS = ("egocnn.nn.engines.gpu.triton", "egocnn.nn.stacked.norm_kernels", "egocnn.nn.stacked.pool_kernels")
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


def place(module: str) -> int:
    """Where a module of the package stands in the order."""
    part = module.split(".")[1]
    assert part in ORDER, f"egocnn.{part} has no place yet: add it to ORDER in {Path(__file__).name}"
    return ORDER.index(part)


def ours(path: Path) -> list[Import]:
    return [(line, name) for line, name in imports(path, inside_functions=True) if name.split(".")[0] == "egocnn"]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_modules_above_it(module: str) -> None:
    if module == "egocnn":
        assert ours(MODULES[module]) == []  # the root imports public names only when they are used
        return
    own = place(module)
    for line, name in ours(MODULES[module]):
        if name != "egocnn":
            assert place(name) < own or name.split(".")[1] == module.split(".")[1], (
                f"{module}, line {line}: imports {name}, which does not stand above it"
            )


def test_no_import_leads_back_to_where_it_started() -> None:
    graph = {module: {name for _, name in ours(path) if name != "egocnn"} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' -> '.join(error.args[1])}")


def test_every_place_in_the_order_is_taken() -> None:
    parts = {module.split(".")[1] for module in MODULES if module != "egocnn"}
    assert set(ORDER) <= parts, f"gone from the package, still in ORDER: {sorted(set(ORDER) - parts)}"


@pytest.mark.parametrize("module", MODULES)
def test_slow_and_optional_libraries_are_imported_where_they_are_used(module: str) -> None:
    for line, name in imports(MODULES[module], inside_functions=False):
        assert name not in KERNELS, f"{module}, line {line}: {name} is imported at the top"
        if module in KERNELS:
            continue
        assert not any(name == lazy or name.startswith(f"{lazy}.") for lazy in LAZY), (
            f"{module}, line {line}: {name} is imported at the top; import it in the function that needs it"
        )


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_unpickled_or_evaluated(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for line, name in imports(MODULES[module], inside_functions=True):
        assert name.split(".")[0] not in ("pickle", "dill", "cloudpickle", "marshal", "shelve"), f"line {line}: {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec", "compile", "torch.load", "torch.save"), (
                f"line {node.lineno}: {called}"
            )
            allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
            assert all(isinstance(v, ast.Constant) and v.value is False for v in allowed), (
                f"line {node.lineno}: {called}"
            )


@pytest.mark.parametrize("module", MODULES)
def test_a_file_opens_with_what_it_is_for_and_stays_short(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), f"{module} has no docstring"
    documented = [
        each.body[0]
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(each)
    ]
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
