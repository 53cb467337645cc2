"""The scripts in examples/: short, and every one of them runs as it stands."""

import io
import re
import runpy
import sys
import warnings
from contextlib import chdir, redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 50
WIDEST = 88
"""Columns: the site shows the scripts in a column of that width."""


def run(name: str, folder: Path, *words: str) -> str:
    """What the script prints, run in a folder of its own as a user would run it."""
    printed, script = io.StringIO(), str(ROOT / "examples" / f"{name}.py")
    with chdir(folder), redirect_stdout(printed), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch Geometric uses what torch has deprecated
        patch.setattr(sys, "argv", [script, *words])
        runpy.run_path(script, run_name="__main__")
    return printed.getvalue()


def number(after: str, text: str) -> float:
    found = re.search(re.escape(after) + r":? (\d\.\d+)", text)
    assert found, text
    return float(found[1])


def test_there_are_four_short_examples_that_say_what_they_show_and_each_is_run_below() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    assert len(EXAMPLES) == 4
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= LONGEST
        assert max(map(len, text.splitlines())) <= WIDEST
        assert text.startswith('"""')
        assert f'run("{path.stem}"' in here, path.stem


def test_molecules_are_told_apart_explained_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    out = run("molecules", tmp_path)
    assert number("accuracy on 17 others", out) >= 0.9
    assert "loaded again, it predicts the same" in out
    assert len(list(tmp_path.glob("molecule-*.svg"))) == 3
    assert (tmp_path / "runs" / "molecules" / "model.safetensors").exists()


def test_a_table_of_the_users_own_is_read_instead(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    rows = [f"{'C' * n}{end},{kind}" for n in range(1, 14) for end, kind in (("", "plain"), ("N", "amine"))]
    (tmp_path / "mine.csv").write_text("\n".join(["smiles,kind", *rows]), encoding="utf-8")
    out = run("molecules", tmp_path, "mine.csv", "kind")
    assert "amine (" in out
    assert not (tmp_path / "molecules.csv").exists()


def test_a_pipeline_is_cross_validated(data_folder: Path, tmp_path: Path) -> None:
    assert (data_folder / "tu").is_dir()
    out = run("cross_validation", tmp_path, "MUTAG", "2")
    for what in ("MUTAG, all labels: accuracy", "MUTAG, node labels alone: accuracy"):
        assert 0.3 <= number(what, out) <= 1
    assert re.search(r"best of the readouts: (max|mean\+max) \(0\.\d+\)", out)


def test_our_layer_learns_inside_a_model_of_pytorch_geometric(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    assert number("accuracy on sizes never seen", run("pyg_model", tmp_path)) >= 0.9


def test_the_people_of_a_closed_circle_are_found(tmp_path: Path) -> None:
    pytest.importorskip("networkx", reason="networkx is not installed")
    out = run("social_networks", tmp_path)
    assert number("accuracy on 30 new networks", out) >= 0.9
    assert number("the share that is in the circle", out) >= 0.7  # 6 of 39 people would be 0.15
    assert len(list(tmp_path.glob("network-*.svg"))) == len(list(tmp_path.glob("network-*.gexf"))) == 2
