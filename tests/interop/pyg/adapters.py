"""Models as PyTorch Geometric sees them, and its explainers, for the tests of the adapters."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.interop.pyg import EgoModule, as_module
from egocnn.model import Model
from egocnn.train.recipe import learn
from tests.support import tiny
from tests.support.networks import untrained
from tests.support.tiny import plain_model, plain_train

CLASSES = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
VALUES = {"mode": "regression", "task_level": "graph", "return_type": "raw"}


@cache
def trained() -> Model:
    """Tells alcohols from alkanes of other sizes, every one of them."""
    settings = plain_train(epochs=30, learning_rate=1e-2, device="cpu")
    predictor, _ = learn(tiny.alcohols(), plain_model(width=16, depth=2, hidden=16, slots=4, k=4), settings)
    return predictor


@cache
def module() -> EgoModule:
    return as_module(trained())


@cache
def unseen_sizes() -> Graphs:
    return tiny.alcohols().select("test")


@cache
def alcohol() -> Any:
    graphs = unseen_sizes()
    assert graphs.target is not None
    return module().to_data(graphs[[int(np.flatnonzero(graphs.target == graphs.class_names.index("alcohol"))[0])]])


def adapted(graphs: Graphs, config: ModelConfig = tiny.MODEL) -> tuple[Model, EgoModule, Any]:
    """A predictor for the graphs, its module, and the graphs as data."""
    predictor = untrained(graphs, config)
    model = as_module(predictor)
    return predictor, model, model.to_data(graphs)


def run(model: EgoModule, data: Any, **changes: Any) -> Tensor:
    out: Tensor = model(**(inputs(data) | changes))
    return out


def inputs(data: Any) -> dict[str, Any]:
    names = ("x", "edge_index", "batch", "edge_attr", "edge_weight", "node_attr")
    return {name: data[name] for name in names if name in data}


def run_masked(model: EgoModule, data: Any, mask: Tensor, *, apply_sigmoid: bool = False) -> Tensor:
    set_masks(model, mask, data.edge_index, apply_sigmoid=apply_sigmoid)
    try:
        return run(model, data)
    finally:
        clear_masks(model)


def explainer(algorithm: Any, model: nn.Module | None = None, **changes: Any) -> Any:
    usual = {"explanation_type": "model", "node_mask_type": "object", "edge_mask_type": "object"}
    masks = usual | {"model_config": CLASSES} | changes
    return pyg.Explainer(model=module() if model is None else model, algorithm=algorithm, **masks)


def close(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    def plain(values: Any) -> NDArray[Any]:
        return np.asarray(values.detach() if isinstance(values, Tensor) else values)

    return bool(np.allclose(plain(one), plain(other), rtol=tolerance, atol=tolerance))
