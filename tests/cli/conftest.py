"""A small model that the tests of the command line share."""

from pathlib import Path

import pytest

from egocnn.cli import main
from tests.support.commands import SHORT
from tests.support.tiny import molecule_lines, write_table


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a network trained shortly on a table of 40 alkanes and alcohols, by their column ``label``."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("molecules")
    write_table(folder, "\n".join(["smiles,label", *molecule_lines(), ""]))
    assert main(["train", str(folder / "molecules.csv"), "-o", str(folder / "run"), *SHORT]) == 0
    return folder / "run"
