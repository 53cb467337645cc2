"""The lab beside the package: found in a clone, missed in an installed package, and never mistaken."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import egocnn
from egocnn.cli.commands import find_lab
from egocnn.errors import ConfigError
from egocnn.study.cluster import packages
from tests.support.commands import Run, printed

PACKAGE = Path(egocnn.__file__).resolve().parent
ROOT = PACKAGE.parent


def test_a_clone_has_the_lab_beside_the_package() -> None:
    assert Path(find_lab().__file__ or "").parent == ROOT / "lab"
    assert "layer" in find_lab("bench.named").BENCHMARKS


COMMANDS = ["bench layer", "reproduce --list", "crossval compounds:alcohols --model gin"]


def test_an_installed_package_says_where_the_lab_is(tmp_path: Path) -> None:
    """The package alone, as a wheel brings it, beside a module that is called lab by chance."""
    shutil.copytree(PACKAGE, tmp_path / "egocnn", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "lab").mkdir()
    for name in ("__main__.py", "__init__.py"):
        (tmp_path / "lab" / name).write_text("raise AssertionError('not the lab')")
    code = f"from egocnn.cli import main; print(*(main(words.split()) for words in {COMMANDS}))"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert done.stdout == "2 2 2\n"
    assert len(done.stderr.splitlines()) == 3
    assert all("clone its repository and call python -m lab" in line for line in done.stderr.splitlines())


def test_another_module_called_lab_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name == "lab" or name.startswith("lab.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match="another module called lab hides"):
        find_lab()
    assert packages() == [PACKAGE]  # nor sent to a cluster
    monkeypatch.delitem(sys.modules, "lab")


def test_a_cluster_elsewhere_is_sent_the_lab_where_it_is_used() -> None:
    find_lab()
    assert packages() == [PACKAGE, ROOT / "lab"]


def test_the_wheel_holds_the_package_alone() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["egocnn"]


@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_lists_are_json_where_json_is_asked_for(command: str, run: Run) -> None:
    names = json.loads(printed(run, command, "--list", "--json"))["names"]
    assert names == [line.split()[0] for line in printed(run, command, "--list").splitlines()]
