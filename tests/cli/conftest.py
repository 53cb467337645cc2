"""A small model that the tests of the command line share."""

from pathlib import Path

import pytest

from egocnn.cli import main
from tests.support.commands import SHORT
from tests.support.tiny import ALCOHOLS


@pytest.fixture(scope="session")
def alcohol_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a network trained shortly on generated alcohols."""
    folder = tmp_path_factory.mktemp("alcohols") / "run"
    assert main(["train", ALCOHOLS, "-o", str(folder), *SHORT]) == 0
    return folder
