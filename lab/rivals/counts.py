"""Counts of labels and degrees + logistic regression: what a system must beat to have learned any structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from lab.rivals.rival import Rival, with_own_labels

DEGREES = 16  # Degrees counted one by one; larger ones together.
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # Inverse of the penalty; the validation part chooses.


@dataclass(slots=True)
class LabelCounts:
    """How many nodes of every label and degree, how many edges of every label; then a linear model."""

    parameters: int | None = None
    node_label_names: tuple[str, ...] = ()
    edge_label_names: tuple[str, ...] = ()
    _model: Any = field(default=None, repr=False)

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        own = with_own_labels(graphs)
        self.node_label_names, self.edge_label_names = own.node_label_names, own.edge_label_names
        seen, unseen = self._columns(graphs), self._columns(validation)
        best = -1.0
        for strength in STRENGTHS:
            model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2000))
            score = model.fit(seen, graphs.target).score(unseen, validation.target)
            if score > best:
                best, self._model = score, model
        return self

    def predict(self, graphs: Graphs) -> Ints:
        predicted: Ints = self._model.predict(self._columns(graphs))
        return predicted

    def _columns(self, graphs: Graphs) -> NDArray[np.float64]:
        """(G, labels + degrees + edge labels); labels that training has not seen count nowhere"""
        graphs = graphs.with_names(nodes=self.node_label_names, edges=self.edge_label_names)
        owner = graphs.graph_of
        columns = [_counts(owner, np.minimum(graphs.degree, DEGREES), DEGREES + 1, len(graphs))]
        if graphs.node_label is not None:
            columns.append(_counts(owner, graphs.node_label, len(self.node_label_names), len(graphs)))
        if graphs.edge_label is not None:
            of_entry = owner[graphs.entry_node]
            columns.append(_counts(of_entry, graphs.edge_label, len(self.edge_label_names), len(graphs)))
        return np.log1p(np.concatenate(columns, axis=1))


def _counts(owner: Ints, codes: Ints, size: int, n_graphs: int) -> NDArray[np.float64]:
    known = codes >= 0
    flat = np.bincount(owner[known] * size + codes[known], minlength=n_graphs * size)
    return flat.reshape(n_graphs, size).astype(np.float64)


LABEL_COUNTS = Rival(
    name="label counts",
    source="none: a check that a data set needs more than counting",
    library="scikit-learn: scaling and logistic regression",
    departures="none",
    build=lambda _: LabelCounts(),
)
