"""The tutorials run as they stand, and print what they show."""

from __future__ import annotations

import re
import warnings
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.pages import Shown, blocks, differences, run
from tests.support.stand_ins import KINDS, write_stand_in

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))}
START = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"index"}))
def test_what_is_shown_follows_the_block_that_prints_it(name: str) -> None:
    kinds = [block.kind for block in blocks(PAGES[name])]
    assert kinds[0] == "python"
    assert ("text", "text") not in list(pairwise(kinds))
    assert PAGES[name].count("```python") + PAGES[name].count("```console") + PAGES[name].count("```text") == len(kinds)


def test_molecules_run_and_the_nitro_group_is_found(tmp_path: Path) -> None:
    check(list(run(PAGES["molecules"], tmp_path)))
    assert (tmp_path / "first.svg").exists()
    assert (tmp_path / "report" / "index.html").exists()


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_page_prints_what_it_shows_of_the_real_data_set(name: str, data_folder: Path, tmp_path: Path) -> None:
    if not (data_folder / "tu" / f"{SETS[name]}.zip").exists():
        pytest.skip(f"{data_folder} has no {SETS[name]}")
    check(list(run(PAGES[name], tmp_path)))


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_page_runs_on_generated_graphs_of_the_same_form(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stand_in(tmp_path, SETS[name], graphs=600 if name == "social-networks" else 240)
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path))
    printed = "".join(shown.printed for shown in run(PAGES[name], tmp_path))
    found = re.search(r"accuracy on \d+ \w+: (\d\.\d+)", printed)
    assert found is not None
    assert float(found[1]) > 0.7  # the classes are easily told apart: the page has learned from these very graphs


def test_the_page_on_pytorch_geometric_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch Geometric uses what torch has deprecated
        check(list(run((ROOT / "docs" / "pytorch-geometric.md").read_text(encoding="utf-8"), tmp_path)))


def test_the_page_on_training_loops_runs_and_what_it_saves_can_be_loaded(tmp_path: Path) -> None:
    check(list(run((ROOT / "docs" / "training-loop.md").read_text(encoding="utf-8"), tmp_path)))
    assert (tmp_path / "runs" / "own" / "model.safetensors").exists()


def test_every_page_is_run_and_every_stand_in_is_used() -> None:
    assert PAGES.keys() == {"index", "molecules", *SETS}
    assert set(KINDS) == set(SETS.values())


def test_the_first_five_minutes_run_on_the_table_of_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks(PAGES["molecules"])[0].text, {})
    shown = list(run(START, tmp_path))
    assert any("report/index.html" in each.printed for each in shown)
    check(shown)
