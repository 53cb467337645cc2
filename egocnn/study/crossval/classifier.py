"""Any model with ``fit`` and ``predict`` -> one that cross-validation can train afresh, once for every seed."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from egocnn.data.graphs import Graphs

EGO_CNN = "ego-cnn"
"""What our own model is called, beside the names of others."""


@runtime_checkable
class Classifier(Protocol):
    """Learns the classes of graphs.

    It may be fitted as scikit-learn does, ``fit(graphs, target)``. Where ``fit`` has a parameter called ``validation``,
    it is called as ``fit(graphs, validation=graphs_to_choose_by)`` instead: the validation graphs choose between
    settings or epochs, and everything else is fitted on the first. The tested graphs are seen by ``predict`` alone.

    Where it has ``parameters`` (a number once it is fitted, or the method of a torch module), trainings start anew for
    every restart and run that the protocol asks for; without, one fit a fold is enough. ``name`` is what the record
    calls it, the name of its class if there is none.
    """

    @property
    def fit(self) -> Callable[..., Any]: ...

    def predict(self, graphs: Graphs, /) -> Any:
        """(G) class numbers, as in ``target`` of the training graphs"""
        ...


@runtime_checkable
class Builder(Protocol):
    """A name, and a function that builds such a model from a seed."""

    @property
    def name(self) -> str: ...

    @property
    def build(self) -> Callable[[int], Classifier]:
        """seed -> an untrained model"""
        ...


def name_of(model: Classifier | Builder) -> str:
    return str(getattr(model, "name", type(model).__name__))


def untrained(model: Classifier | Builder, seed: int) -> Classifier:
    """What the builder builds, or a copy of the model with its ``seed`` or ``random_state`` set."""
    if isinstance(model, Builder):
        return model.build(seed)
    fresh = copy.deepcopy(model)
    for setting in ("seed", "random_state"):
        if hasattr(fresh, setting):
            setattr(fresh, setting, seed)
    return fresh


def fit_rival(model: Classifier, graphs: Graphs, validation: Graphs) -> Classifier:
    """Fit it in the way that its signature asks for."""
    if "validation" in inspect.signature(model.fit).parameters:
        model.fit(graphs, validation=validation)
    else:
        model.fit(graphs, graphs.target)
    return model


def parameters_of(model: Classifier) -> int | None:
    """Numbers that training changes; None where the question makes no sense."""
    found = getattr(model, "parameters", None)
    return sum(weight.numel() for weight in found()) if callable(found) else found
