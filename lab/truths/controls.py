"""What scores without any explaining: graphs -> importances by chance, by degree, by label, and their mean scores.

With the best of several alternatives even chance beats one half, and one lucky draw proves nothing: a score means
something only beside these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from egocnn.data.graphs import Graph
from egocnn.data.molecules import by_first_words
from egocnn.errors import DataError
from lab.truths.importance import Importance
from lab.truths.known import Truth
from lab.truths.summary import TruthScores, score_structures


def random_importances(graphs: Iterable[Graph], *, seed: int = 0) -> list[Importance]:
    """Uniform from 0 to 1."""
    random = np.random.default_rng(seed)
    return [Importance(random.random(graph.n_nodes), random.random(len(graph.edges))) for graph in graphs]


def degree_importances(graphs: Iterable[Graph]) -> list[Importance]:
    """The number of a node's neighbours, a self-loop counted once, and their sum over the ends of an edge."""
    found = []
    for graph in graphs:
        proper = graph.edges[:, 0] != graph.edges[:, 1]
        ends = np.concatenate([graph.edges[:, 0], graph.edges[proper, 1]])
        degree = np.bincount(ends, minlength=graph.n_nodes).astype(np.float64)
        found.append(Importance(degree, degree[graph.edges].sum(axis=1)))
    return found


def label_importances(graphs: Iterable[Graph], labels: Collection[str]) -> list[Importance]:
    """1 for a node with one of the labels, and for an edge with such an end; 0 for the rest."""
    found = []
    for graph in graphs:
        if graph.node_label is None:
            raise DataError(f"{graph.name}: has no node labels to go by")
        node = np.array([label in labels for label in by_first_words(graph).node_label or ()], np.float64)
        found.append(Importance(node, node[graph.edges].max(axis=1)))
    return found


@dataclass(frozen=True, slots=True)
class Averaged:
    """The same numbers over several runs, of a control or of one technique on several networks."""

    runs: int
    mean: TruthScores
    least: TruthScores
    most: TruthScores

    def to_plain(self) -> dict[str, Any]:
        return {"runs": self.runs, **{which: getattr(self, which).to_plain() for which in ("mean", "least", "most")}}


def average(runs: Sequence[TruthScores]) -> Averaged:
    """Mean, least and most of every number; a run that a number does not apply to does not count for it."""
    if not runs:
        raise DataError("nothing to average: no scores are given")
    rows = [asdict(run) for run in runs]
    columns = {
        field.name: [row[field.name] for row in rows if row[field.name] is not None] for field in fields(TruthScores)
    }
    counts = {name: max(values) for name, values in columns.items() if name in ("graphs", "node_graphs", "edge_graphs")}

    def combined(by: Any) -> TruthScores:
        return TruthScores(**{name: float(by(values)) for name, values in columns.items() if values} | counts)

    return Averaged(len(runs), combined(np.mean), combined(min), combined(max))


def random_scores(graphs: Iterable[Graph], truths: Sequence[Truth], *, draws: int = 10, seed: int = 0) -> Averaged:
    """What chance alone scores, over several draws."""
    graphs = list(graphs)
    seeds = np.random.SeedSequence(seed).generate_state(draws).tolist()
    return average([score_structures(random_importances(graphs, seed=each), truths, graphs=graphs) for each in seeds])
