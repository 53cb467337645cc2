"""What the networks read of graphs, fitted on the training graphs: any graphs -> the same columns for each of them.

Node labels are read one-hot. Where there are none, the number of neighbours takes their place, counted up to a bound.
Attributes are standardised. A label that the training graphs lack is a row of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.rival import with_own_labels

MOST_DEGREE = 100  # Nodes with more neighbours than this, or than any node in training, count as having so many.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes that a network is built for, taken from the encoded training graphs."""

    node_labels: int
    attributes: int
    edge_labels: int  # 0 where edges have none
    weighted: bool
    classes: int
    average_nodes: float
    most_nodes: int

    @property
    def node_columns(self) -> int:
        return self.node_labels + self.attributes

    @property
    def edge_columns(self) -> int:
        return max(self.edge_labels + self.weighted, 1)

    @staticmethod
    def of(encoded: Graphs) -> Shape:
        counts = encoded.node_counts
        return Shape(
            node_labels=len(encoded.node_label_names),
            attributes=0 if encoded.node_attr is None else encoded.node_attr.shape[1],
            edge_labels=0 if encoded.edge_label is None else len(encoded.edge_label_names),
            weighted=encoded.edge_weight is not None,
            classes=len(encoded.class_names),
            average_nodes=float(counts.mean()),
            most_nodes=int(counts.max()),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """Names, bounds and scales of the training graphs."""

    node_label_names: tuple[str, ...] | None  # None: the number of neighbours is the label
    edge_label_names: tuple[str, ...] | None
    class_names: tuple[str, ...]
    most_degree: int
    mean: Floats | None  # (A)
    scale: Floats | None  # (A)
    weighted: bool

    @staticmethod
    def fit(graphs: Graphs) -> Encoding:
        own = with_own_labels(graphs)
        mean = scale = None
        if own.node_attr is not None and own.n_nodes:
            mean, spread = own.node_attr.mean(axis=0), own.node_attr.std(axis=0)
            scale = np.where(spread > 0, spread, 1).astype(np.float32)
        return Encoding(
            node_label_names=None if own.node_label is None else own.node_label_names,
            edge_label_names=None if own.edge_label is None else own.edge_label_names,
            class_names=own.class_names,
            most_degree=min(MOST_DEGREE, int(own.degree.max(initial=0))),
            mean=mean,
            scale=scale,
            weighted=own.edge_weight is not None,
        )

    def encode(self, graphs: Graphs) -> Graphs:
        """The graphs with labels, classes and attributes as the network counts them; others than in training raise."""
        self._check(graphs)
        graphs = graphs.with_names(classes=self.class_names)
        changes: dict[str, Any] = {}
        if self.node_label_names is None:
            changes["node_label"] = np.minimum(graphs.degree, self.most_degree).astype(np.int32)
            changes["node_label_names"] = tuple(str(degree) for degree in range(self.most_degree + 1))
        elif graphs.node_label is None:
            changes |= {"node_label": np.zeros(0, np.int32), "node_label_names": self.node_label_names}
        else:
            graphs = graphs.with_names(nodes=self.node_label_names)
        if self.edge_label_names is not None and graphs.edge_label is None:
            changes |= {"edge_label": np.zeros(0, np.int32), "edge_label_names": self.edge_label_names}
        elif self.edge_label_names is not None:
            graphs = graphs.with_names(edges=self.edge_label_names)
        if self.mean is not None and self.scale is not None:
            raw = np.zeros((0, len(self.mean)), np.float32) if graphs.node_attr is None else graphs.node_attr
            changes["node_attr"] = ((raw - self.mean) / self.scale).astype(np.float32)
        if self.weighted and graphs.edge_weight is None:
            changes["edge_weight"] = np.zeros(0, np.float32)
        return graphs.replace(**changes)

    def _check(self, graphs: Graphs) -> None:
        """A column that nothing stands in is as good as absent."""
        attributes = 0 if graphs.node_attr is None else graphs.node_attr.shape[1]
        for what, expected, there, entries in (
            ("node labels", self.node_label_names is not None, graphs.node_label is not None, graphs.n_nodes),
            ("edge labels", self.edge_label_names is not None, graphs.edge_label is not None, graphs.n_entries),
            ("edge weights", self.weighted, graphs.edge_weight is not None, graphs.n_entries),
            ("node attributes", 0 if self.mean is None else len(self.mean), attributes, graphs.n_nodes),
        ):
            if entries and expected != there:
                told = f"{int(expected)} and {int(there)}" if what == "node attributes" else _which(expected)
                raise DataError(f"the network was trained on graphs with other {what} than these: {told}")


def _which(expected: int) -> str:
    return "training had some, these have none" if expected else "training had none, these have some"
