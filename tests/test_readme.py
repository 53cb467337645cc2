"""What the README promises: its Python runs as it stands, its figures are those of results/."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_quickstart_is_short_and_runs_as_it_stands(data_folder: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    environment = {**os.environ, "EGOCNN_DATA": str(data_folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "mutag" / "model.safetensors").exists()


def test_both_commands_are_shown() -> None:
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize("name", ["alcohols", "isomers", "methylalkanes", "molecules"])
def test_the_figures_of_an_experiment_are_those_that_its_command_wrote(name: str) -> None:
    table = json.loads((ROOT / "results" / f"{name}.json").read_text())
    for row in table["rows"]:
        assert f"{row['mean']:.3f}" in README, f"{row['data']}, {row['model']}"
        assert f"{row['min']:.3f}" in README, f"{row['data']}, {row['model']}"


def test_every_file_that_the_readme_names_is_there() -> None:
    for target in re.findall(r"\]\(([A-Za-z][\w./-]*)\)", README) + re.findall(r'src="([^"]+)"', README):
        assert (ROOT / target).exists(), target


def test_the_figures_about_explanations_are_those_that_the_commands_wrote() -> None:
    rows = {
        (row["data"], row["model"], row["technique"]): row["scores"]
        for row in json.loads((ROOT / "results" / "explain.json").read_text())["rows"]
    }
    shown = [
        ("benzene", "node_auc", 4),
        ("logic7", "node_auc", 3),
        ("alcohols", "node_precision", 3),
        ("isomers", "unmatched_above_matched", 3),
        ("mutagenicity", "edge_auc", 3),
        ("mutagenicity", "pooled_edge_auc", 3),
        ("mutagenicity-marked", "edge_auc", 3),
    ]
    for data, score, digits in shown:
        spread = rows[data, "egocnn", "relevance"][score]
        wanted = f"{spread['mean']:.{digits}f}", f"({spread['min']:.{digits}f})"
        assert any(all(text in line for text in wanted) for line in README.splitlines()), (data, score, wanted)
    speed = json.loads((ROOT / "results" / "explain_speed.json").read_text())
    assert f"{speed['times_faster_together']:.0f} times faster than GNNExplainer" in README
