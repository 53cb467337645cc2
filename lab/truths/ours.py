"""Our model as the suite of known truths uses it: graphs -> trained networks -> predictions and explanations.

All calls of the suite to training and explaining stand here, so that a change of either is a change of this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from egocnn.config import PRESETS, ExplainConfig
from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.explain import explain
from egocnn.model import Model
from egocnn.nn import EgoCNN
from egocnn.train.recipe import learn, network_seeds

SEEDS_APART = 1000  # between one seed and the next


class HasStructure(Protocol):
    """What is scored of one explained graph."""

    @property
    def node_importance(self) -> Floats: ...
    @property
    def edge_importance(self) -> Floats: ...
    @property
    def critical_nodes(self) -> Ints: ...


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Importances of the nodes (N) and edges (E), and the nodes that were chosen."""

    node_importance: Floats
    edge_importance: Floats
    critical_nodes: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """A model of the default settings, of one or several networks, which predict and explain by their mean."""

    model: Model

    def predictions(self, graphs: Graphs) -> Floats:
        """(G, C) probabilities in the order of the graphs' own classes, or (G) values"""
        found, names = self.model.predictions(graphs, device="cpu"), self.model.class_names
        return found if not names else found[:, [names.index(name) for name in graphs.class_names]]

    def explain(self, graphs: Graphs, classes: Sequence[str] | None) -> Sequence[HasStructure]:
        """One structure a graph, for the class that is named for it, or for the predicted value."""
        return explain(self.model, graphs, ExplainConfig(), classes=classes, fidelity=False, device="cpu")

    def untrained(self, seed: int) -> Networks:
        """The same networks before they have learned anything."""
        blank: list[EgoCNN] = []
        for own in network_seeds(seed * SEEDS_APART, len(self.model.networks)):
            torch.manual_seed(own)
            blank += Model.build(self.model.config, self.model.encoder).networks
        return Networks(Model(config=self.model.config, encoder=self.model.encoder, networks=tuple(blank)))


def train(graphs: Graphs, *, seed: int, networks: int) -> Networks:
    """Train with the default settings on the graphs' own training and validation parts."""
    preset = PRESETS["default"]
    settings = replace(preset.train, seed=seed * SEEDS_APART, networks=networks, device="cpu")
    return Networks(learn(graphs, preset.model, settings)[0])
