"""The results of every command, for tests that must not change them."""

from pathlib import Path

import pytest

from egocnn.cli import main
from tests.project.faults.processes import commands


@pytest.fixture(scope="session")
def earlier(alcohol_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of every command."""
    folder = tmp_path_factory.mktemp("earlier")
    for name, words in commands(alcohol_run, folder).items():
        assert name == "export" or main(words) == 0  # which takes its time
    return folder
