"""What the adapters of PyTorch Geometric refuse, and when it is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from egocnn.errors import ConfigError, DataError, MissingExtraError
from egocnn.interop import pyg
from egocnn.interop.pyg import as_module
from egocnn.interop.pyg import module as modules
from egocnn.interop.pyg.tensors import inheriting
from egocnn.nn import EgoCNN
from tests.interop.pyg.adapters import alcohol, module, random_predictor, run, trained, unseen_sizes
from tests.support.strategies import random_trees


def test_tensors_that_do_not_fit_are_refused_in_one_line() -> None:
    data, model = alcohol(), module()
    two_labels = as_module(random_predictor(random_trees(2, nodes=5, seed=0)))
    n, m = len(data.x), data.edge_index.shape[1]
    for changes, words in (
        ({"x": data.x[:, :2]}, "x must have 3 labels and 0 attributes per node"),
        ({"edge_index": data.edge_index.float()}, "edge_index must be whole numbers"),
        ({"edge_index": data.edge_index + n}, str(n)),
        ({"batch": torch.arange(n).flip(0)}, "in ascending order"),
        ({"batch": data.edge_attr}, f"the graph of each of {n} nodes"),
        ({"node_attr": data.x}, rf"node_attr must have the shape \({n}, 0\)"),
        ({"edge_attr": data.edge_attr[:-1]}, rf"must have the shape \({m}, 1\)"),
    ):
        with pytest.raises(DataError, match=words):
            run(model, data, **changes)
    with pytest.raises(DataError, match=r"knows 2 edge labels; .* got none"):
        two_labels(data.x, data.edge_index)


def test_only_fitted_models_become_modules() -> None:
    assert isinstance(as_module(trained()).networks[0], EgoCNN)
    with pytest.raises(ConfigError, match="a fitted estimator or a predictor is needed, not str"):
        as_module("run")


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for importing in (pyg, modules):
        monkeypatch.setattr(importing, "inheriting", inheriting.__wrapped__)  # without its cache
    for name in ("torch_geometric.explain", "torch_geometric.nn", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (lambda: pyg.EgoExplainer, lambda: as_module(trained()), lambda: module().to_data(unseen_sizes())):
        with pytest.raises(MissingExtraError, match=r"egocnn\[pyg\]"):
            use()


def test_pytorch_geometric_is_imported_when_it_is_needed() -> None:
    script = "import sys, egocnn.interop.pyg; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
