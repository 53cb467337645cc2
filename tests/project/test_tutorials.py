"""The tutorials run as they stand, and print what they show."""

import ast
import json
import re
import warnings
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import Shown, blocks, differences, run

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))}
SETS = {"proteins": "PROTEINS", "social-networks": "REDDIT-BINARY"}
"""The data set that a page reads."""


def check(shown: list[Shown]) -> None:
    """All that is shown was printed just so, where the versions are those that it was written with."""
    pinned = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    if pinned is None or not version("torch").startswith(pinned[1].split("+")[0]):
        return
    wrong = [line for each in shown if each.block is not None for line in differences(each.printed, each.block.text)]
    assert wrong == [], "python -m tests.support.pages docs/PAGE.md writes what is printed now into the page"


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    pytest.importorskip("networkx", reason="networkx is not installed")
    request.getfixturevalue("monkeypatch").setenv("COLUMNS", "100")


def test_every_page_is_run_and_what_is_shown_follows_the_block_that_prints_it() -> None:
    assert PAGES.keys() == {"index", "molecules", *SETS}
    for name in PAGES.keys() - {"index"}:
        kinds = [block.kind for block in blocks(PAGES[name])]
        assert kinds[0] == "python"
        assert ("text", "text") not in list(pairwise(kinds))
        assert sum(PAGES[name].count(f"```{kind}") for kind in ("python", "console", "text")) == len(kinds)


@pytest.mark.parametrize(
    ("page", "library", "written"),
    [
        ("tutorials/molecules", "rdkit", "first.svg"),
        ("start", "rdkit", ""),  # the first five minutes, on the table of the tutorial
        ("pytorch-geometric", "torch_geometric", ""),
        ("training-loop", "torch", "runs/own/model.safetensors"),
    ],
)
def test_a_page_runs_as_it_stands(
    page: str, library: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    if page == "start":
        monkeypatch.chdir(tmp_path)
        exec(blocks(PAGES["molecules"])[0].text, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch Geometric uses what torch has deprecated
        check(list(run((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), tmp_path)))
    assert (tmp_path / written).exists()
    assert page not in ("start", "tutorials/molecules") or (tmp_path / "report" / "index.html").exists()


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_page_prints_what_it_shows_of_a_real_data_set(name: str, tmp_path: Path, data_folder: Path) -> None:
    if not (data_folder / "tu" / f"{SETS[name]}.zip").exists():
        pytest.skip(f"{SETS[name]} is not there")
    check(list(run(PAGES[name], tmp_path)))


def test_the_notebook_runs_cell_by_cell_and_shows_pictures_a_table_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs" / "tutorials" / "molecules.ipynb").read_text(encoding="utf-8"))
    shown, names = list[Any](), dict[str, Any]()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            tree = ast.parse("".join(cell["source"]))
            *body, last = tree.body
            assert isinstance(last, ast.Expr)
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    counts, score, structures, table, page = shown
    assert counts == (144, 22)
    assert score > 0.9
    assert structures._repr_html_().count("<svg") == 2
    assert len(table) == 5
    assert page.is_file()
    assert (tmp_path / "runs" / "nitro" / "model.safetensors").is_file()
