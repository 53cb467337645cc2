"""A source of graphs and a trained model -> Graphs, read as the model's training data were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.errors import MissingColumnError
from egocnn.model import Model


def read_as_trained(source: Any, predictor: Model, **said: Any) -> Graphs:
    """A model's own way of reading holds for what the user does not say."""
    if isinstance(source, Graphs):
        return source
    if isinstance(source, Iterator):  # which can be gone through once
        source = list(source)
    trained = predictor.about.get("read", {})
    usual = {name: trained.get(name) for name in ("smiles", "target", "name", "hydrogens") if trained.get(name)}
    usual["task"] = "classification" if predictor.class_names else "regression"
    # new data need not have the target, nor name its graphs as the training data did
    for absent in ((), ("name",), ("target",), ("name", "target")):
        settings = {name: value for name, value in usual.items() if name not in absent} | said
        try:
            graphs = read(source, **settings)
        except MissingColumnError as error:
            missing = error
            continue
        is_other = "target" in absent and "target" in usual and "target" not in said
        return graphs.replace(target=None, class_names=()) if is_other else graphs
    raise missing
