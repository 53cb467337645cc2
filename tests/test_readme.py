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
    for target in re.findall(r"\]\(([A-Za-z][\w./-]*)\)", README):
        assert (ROOT / target).exists(), target
