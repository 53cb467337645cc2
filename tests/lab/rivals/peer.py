"""A small trained GINE network that the tests of the baselines share; skips where PyTorch Geometric is absent."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch_geometric.explain", reason="torch-geometric is not installed")

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from lab.rivals import FittedGINE, GINEConfig, fit

CONFIG = GINEConfig(width=16, hidden=16)


@cache
def alcohols() -> Graphs:
    return read("compounds:alcohols:sizes=3-10,per_size=8,hold_out=molecules")


@cache
def trained() -> FittedGINE:
    return fit(alcohols(), config=CONFIG, epochs=30, learning_rate=1e-2)


def positives() -> Graphs:
    test = alcohols().select("test")
    assert test.target is not None
    return test[np.flatnonzero(test.target == test.class_names.index("alcohol"))]
