"""Side by side with PyTorch Geometric: a trained model -> a module for its explainers, and ours among them.

``as_module(model)`` is a plain ``torch.nn.Module`` over ``x``, ``edge_index`` and ``batch``, and ``EgoExplainer`` an
``ExplainerAlgorithm`` for ``torch_geometric.explain.Explainer``; :class:`EgoModule` says what a mask changes.
``RankNeighbours`` is a transform that brings data what :class:`~egocnn.nn.EgoConv` reads in a model of your own."""

from typing import Any

from egocnn.interop.pyg.module import EgoModule, _EgoExplainer, as_module
from egocnn.interop.pyg.tensors import inheriting
from egocnn.interop.pyg.transform import _RankNeighbours, neighbours_of

__all__ = ["EgoExplainer", "EgoModule", "RankNeighbours", "as_module", "neighbours_of"]

_INHERITING = {
    "EgoExplainer": (_EgoExplainer, "explain", "ExplainerAlgorithm"),
    "RankNeighbours": (_RankNeighbours, "transforms", "BaseTransform"),
}


def __getattr__(name: str) -> Any:
    """These inherit from classes of PyTorch Geometric, which is slow to import: made at their first use."""
    if name not in _INHERITING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return inheriting(*_INHERITING[name])
