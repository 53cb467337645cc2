"""Our models in other libraries' terms: scikit-learn estimators, PyTorch Geometric modules, ONNX files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from egocnn.interop.onnx import Exported, Input, PlainNetwork, export_onnx, inputs_for, inputs_of
    from egocnn.interop.pyg import EgoExplainer, EgoModule, RankNeighbours, as_module, neighbours_of
    from egocnn.interop.sklearn import EgoCNNClassifier, EgoCNNRegressor

_HOME = dict.fromkeys(("EgoCNNClassifier", "EgoCNNRegressor"), "sklearn")
_HOME |= dict.fromkeys(("EgoExplainer", "EgoModule", "RankNeighbours", "as_module", "neighbours_of"), "pyg")
_HOME |= dict.fromkeys(("Exported", "Input", "PlainNetwork", "export_onnx", "inputs_for", "inputs_of"), "onnx")
__all__ = ["EgoCNNClassifier", "EgoCNNRegressor", "EgoExplainer", "EgoModule", "RankNeighbours", "as_module"]
__all__ += ["Exported", "Input", "PlainNetwork", "export_onnx", "inputs_for", "inputs_of", "neighbours_of"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: each of these libraries is slow to import, and may be missing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"egocnn.interop.{_HOME[name]}"), name)
