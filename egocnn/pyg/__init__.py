"""Side by side with PyTorch Geometric: a trained model -> a module for its explainers, and ours among them.

``as_module(model)`` is a plain ``torch.nn.Module`` over ``x``, ``edge_index`` and ``batch``, and ``EgoExplainer`` an
``ExplainerAlgorithm`` for ``torch_geometric.explain.Explainer``; :class:`EgoModule` says what a mask changes.
"""

from __future__ import annotations

from typing import Any

from egocnn.pyg.explainer import explainer_class
from egocnn.pyg.module import EgoModule, as_module

__all__ = ["EgoExplainer", "EgoModule", "as_module"]


def __getattr__(name: str) -> Any:
    """The class inherits from one of PyTorch Geometric's, which is slow to import: made when it is first asked for."""
    if name != "EgoExplainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return explainer_class()
