"""PyTorch Geometric, imported before any test asks for it: it uses what torch has deprecated, and says so."""

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric.explain", reason="torch-geometric is not installed")
