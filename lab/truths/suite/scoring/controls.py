"""What scores without learning or explaining: chance, the number of neighbours, one label, an untrained network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.words import first_words
from lab.truths.controls import degree_importances, random_importances
from lab.truths.importance import edges_from_nodes
from lab.truths.ours import HasStructure, Networks, Structure
from lab.truths.scores import node_auc
from lab.truths.suite.scoring.measures import Scores, ranking_scores
from lab.truths.suite.scoring.part import ExplainedPart

DRAWS = 5  # of chance
NOBODY: Ints = np.zeros(0, np.int64)
ENOUGH = 200  # graphs that the best label is chosen by
RIDGE = 1.0  # how far what a label adds is held back, in graphs


def control_scores(learned: ExplainedPart, test: ExplainedPart, ours: Networks, seed: int) -> dict[str, Scores]:
    """The rankings of every control; ``learned`` is the training part, from which the one label is chosen."""
    return {
        "random": _average([ranking_scores(_chance(test.graphs, draw), test) for draw in range(DRAWS)]),
        "degree": ranking_scores(_degrees(test.graphs), test),
        "label": ranking_scores(by_label(learned, test.graphs), test),
        "untrained": ranking_scores(ours.untrained(seed).explain(test.graphs, test.classes), test),
    }


def by_label(learned: ExplainedPart, graphs: Graphs) -> list[HasStructure]:
    """The trivial rule: the one label that finds most in the training part, or what each label adds to the value.

    Where nodes have no labels, their numbers of neighbours are taken for them.
    """
    scores = (
        _values_of_labels(learned)
        if learned.graphs.target is not None and not learned.graphs.is_classification
        else _best_label(learned)
    )
    return _per_node(graphs, lambda labels: np.array([scores.get(label, 0.0) for label in labels]))


def labels_of(graphs: Graphs) -> list[list[str]]:
    """The labels of every graph's nodes, or their numbers of neighbours."""
    graphs = first_words(graphs)
    if graphs.node_label is None:
        texts = [str(number) for number in graphs.degree.tolist()]
    else:
        names = (*graphs.node_label_names, "?")
        texts = [names[number] for number in graphs.node_label.tolist()]
    return [texts[first:last] for first, last in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True)]


def _best_label(learned: ExplainedPart) -> dict[str, float]:
    known = learned.with_structure[:ENOUGH]
    labels = labels_of(learned.graphs)
    every = sorted({label for g in known for label in labels[g]})

    def auc(label: str) -> float:
        found = [
            node_auc(np.array([own == label for own in labels[g]], np.float64), learned.truths[g].alternatives)
            for g in known
        ]
        return float(np.mean([each for each in found if each is not None] or [0.0]))

    return {max(every, key=auc): 1.0} if every else {}


def _values_of_labels(learned: ExplainedPart) -> dict[str, float]:
    """Least squares of the value on the number of nodes with each label, held back a little."""
    labels, target = labels_of(learned.graphs), learned.graphs.target
    assert target is not None
    every = sorted({label for own in labels for label in own})
    place = {label: i for i, label in enumerate(every)}
    counts = np.zeros((len(labels), len(every) + 1))
    counts[:, -1] = 1.0  # what is there without any node
    for g, own in enumerate(labels):
        np.add.at(counts[g], [place[label] for label in own], 1.0)
    held = RIDGE * np.eye(len(every) + 1)
    held[-1, -1] = 0.0
    weights = np.linalg.solve(counts.T @ counts + held, counts.T @ target)
    return dict(zip(every, weights[:-1].tolist(), strict=True))


def _per_node(graphs: Graphs, importance: Callable[[Sequence[str]], Floats]) -> list[HasStructure]:
    found: list[HasStructure] = []
    for graph, labels in zip(graphs, labels_of(graphs), strict=True):
        nodes = importance(labels)
        found.append(Structure(nodes, edges_from_nodes(graph, nodes), NOBODY))
    return found


def _chance(graphs: Graphs, seed: int) -> list[HasStructure]:
    return [
        Structure(one.node_importance, one.edge_importance, NOBODY) for one in random_importances(graphs, seed=seed)
    ]


def _degrees(graphs: Graphs) -> list[HasStructure]:
    return [Structure(one.node_importance, one.edge_importance, NOBODY) for one in degree_importances(graphs)]


def _average(several: Sequence[Scores]) -> Scores:
    found: Scores = {}
    for name in several[0]:
        known = [each for scores in several if (each := scores[name]) is not None]
        found[name] = float(np.mean(known)) if known else None
    return found
