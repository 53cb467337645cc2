"""A library that is not installed -> one line that says what to type."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.sources.networkx import to_networkx
from egocnn.data.sources.pyg import to_pyg
from egocnn.errors import MissingExtraError

PAIR = Graphs.from_edges(node_counts=[2], edges=np.array([[0, 1]]))


def test_reading_molecules_without_rdkit_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    (tmp_path / "m.csv").write_text("smiles\nC\n")
    with pytest.raises(MissingExtraError, match=r"rdkit is not installed; type: pip install \"egocnn\[molecules\]\""):
        read(tmp_path / "m.csv", skip_invalid=True)


def test_networkx_that_is_missing_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    (tmp_path / "g.graphml").write_text("<graphml/>")
    with pytest.raises(MissingExtraError, match=r"egocnn\[networks\]"):
        read(tmp_path / "g.graphml")
    with pytest.raises(MissingExtraError, match=r"egocnn\[networks\]"):
        to_networkx(PAIR)


def test_pytorch_geometric_that_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(MissingExtraError, match=r"egocnn\[pyg\]"):
        to_pyg(PAIR)
