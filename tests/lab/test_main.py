"""python -m lab: what there is, what it runs, and what it refuses."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lab
from lab.__main__ import SCRIPTS, main

HOME = Path(lab.__file__).parent
HEAVY = {"rich", "rdkit", "matplotlib", "networkx", "torch_geometric", "triton", "joblib", "gensim", "igraph", "grakel"}


def test_without_words_everything_that_can_be_run_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line]
    assert {"table1", "figure5", "alcohols", "explain", "layer", "chart", *SCRIPTS} <= set(listed)
    assert main(["--help"]) == 0
    assert "python -m lab measure NAME" in capsys.readouterr().out
    command = [sys.executable, "-m", "lab", "measure"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HOME.parent, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_its_own_help_and_a_place_for_its_record(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "serve_load":
        pytest.importorskip("rdkit")
    with pytest.raises(SystemExit) as ended:
        main(["measure", name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: python -m lab measure {name} ")
    assert f"results/{name}.json" in text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["prove"], "no part of the lab is called 'prove'; there are reproduce, bench, measure, truths and molecules"),
        (["measure", "speed"], "nothing to measure is called 'speed'; there are cpu_step"),
        (["measure", "cpu_step", "--data", "no/such/set.csv"], "no/such/set.csv"),
        (["bench", "speed"], "no benchmark is called 'speed'"),
        (["reproduce", "table9"], "no experiment is called 'table9'"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert reason in line


def test_libraries_that_a_bare_machine_lacks_are_imported_where_they_are_used() -> None:
    for path in HOME.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not HEAVY & {name.split(".")[0] for name in names}, path
