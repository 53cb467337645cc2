"""egocnn: graph models that show which part of a graph made them say so."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from egocnn.data.graphs import Graph, Graphs
    from egocnn.data.read import read
    from egocnn.encode.ranking import rank_neighbours
    from egocnn.explain.structure import CriticalStructure
    from egocnn.interop.sklearn import EgoCNNClassifier, EgoCNNRegressor, load, write_report

__version__ = "0.1.0"
__all__ = ["CriticalStructure", "EgoCNNClassifier", "EgoCNNRegressor", "Graph", "Graphs"]
__all__ += ["load", "rank_neighbours", "read", "write_report"]

_HOME = {"CriticalStructure": "explain.structure", "rank_neighbours": "encode.ranking", "read": "data.read"}
_HOME |= dict.fromkeys(("EgoCNNClassifier", "EgoCNNRegressor", "load", "write_report"), "interop.sklearn")
_HOME |= dict.fromkeys(("Graph", "Graphs"), "data.graphs")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``egocnn --help`` must not wait for torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'egocnn' has no attribute {name!r}")
    return getattr(import_module(f"egocnn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
