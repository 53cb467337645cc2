"""A trained model, and the results of every command, for tests that must not change them."""

from pathlib import Path

import pytest

from egocnn.cli import main
from tests.project.faults.processes import SHORT, commands
from tests.support.tiny import ALCOHOLS


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert main(["train", ALCOHOLS, "-o", str(folder), *SHORT]) == 0
    return folder


@pytest.fixture(scope="session")
def earlier(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of every command."""
    folder = tmp_path_factory.mktemp("earlier")
    for name, words in commands(run, folder).items():
        assert name == "export" or main(words) == 0  # which takes its time
    return folder
