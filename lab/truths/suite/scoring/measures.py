"""What was found against what is known: structures of a part of a task -> numbers by name, None where none applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.train.metrics import r2
from lab.truths.ours import HasStructure
from lab.truths.suite.scoring.part import ExplainedPart
from lab.truths.summary import score_structures

Scores: TypeAlias = dict[str, float | None]
FAR = 1.5  # times the distance between the quartiles that a value must lie beyond them to stand out
EQUAL = 1e-6  # share of the largest importance below which a difference is rounding


def prediction_scores(predictions: Floats, part: ExplainedPart) -> Scores:
    """Accuracy of classes; R² and root mean square error of values."""
    target = part.graphs.target
    assert target is not None
    if part.graphs.is_classification:
        return {"accuracy": float((predictions.argmax(axis=1) == target).mean())}
    return {"r2": r2(predictions, target), "rmse": float(np.sqrt(((predictions - target) ** 2).mean()))}


def ranking_scores(found: Sequence[HasStructure], part: ExplainedPart) -> Scores:
    """Do critical nodes and edges come before others; do importances follow the true contributions?"""
    known = part.with_structure
    scores: Scores = {}
    if known:
        plain = score_structures([found[g] for g in known], [part.truths[g] for g in known]).to_plain()
        names = ("node_auc", "node_precision", "node_jaccard", "edge_auc", "pooled_edge_auc")
        scores |= {name: plain.get(name) for name in names}
    valued = [(one.node_importance, truth.values) for one, truth in zip(found, part.truths, strict=True)]
    # where all nodes add the same there is no order to find
    by_value = [(nodes, values) for nodes, values in valued if values is not None and np.ptp(values) > 0]
    if by_value:
        scores["pearson"] = _mean(pearson(*pair) for pair in by_value)
        scores["kendall"] = _mean(kendall(*pair) for pair in by_value)
    return scores


def structure_scores(found: Sequence[HasStructure], part: ExplainedPart) -> Scores:
    """The chosen nodes: how many, in one piece or not, like the truth or not; none where there is nothing."""
    graphs = list(part.graphs)
    known, silent = part.with_structure, part.without_structure
    explained = known or [g for g, truth in enumerate(part.truths) if truth.values is not None]
    chosen = [g for g in explained if len(found[g].critical_nodes)]
    return {
        "share_of_nodes": _median(len(found[g].critical_nodes) / graphs[g].n_nodes for g in explained),
        "connected": _mean(float(is_connected(graphs[g], found[g].critical_nodes)) for g in chosen),
        "structure_jaccard": _mean(best_jaccard(found[g].critical_nodes, part.truths[g].alternatives) for g in known),
        "nothing_chosen": _mean(float(not len(found[g].critical_nodes)) for g in silent),
        "nothing_stands_out": _mean(float(not stands_out(found[g].node_importance)) for g in silent),
    }


def pearson(importance: Floats, values: Floats) -> float:
    """Linear correlation over the nodes of one graph; 0 where all importances are equal."""
    if np.ptp(importance) <= EQUAL * np.abs(importance).max(initial=0.0):
        return 0.0
    return float(np.corrcoef(importance, values)[0, 1])


def kendall(importance: Floats, values: Floats) -> float:
    """Kendall's tau-b over the nodes of one graph: do two nodes stand in the same order? 0 where all are equal."""
    one, other = (np.sign(x[:, None] - x[None, :]) for x in (importance, values))
    norm = np.sqrt(float((one != 0).sum()) * float((other != 0).sum()))
    return float((one * other).sum() / norm) if norm else 0.0


def stands_out(importance: Floats) -> bool:
    """Whether any node lies beyond the quartiles by 1.5 times their distance (B-XAIC, Proszewska et al., 2025)."""
    low, high = np.quantile(importance, [0.25, 0.75])
    margin = FAR * (high - low) + EQUAL * np.abs(importance).max(initial=0.0)
    return bool(((importance < low - margin) | (importance > high + margin)).any())


def is_connected(graph: Graph, nodes: Ints) -> bool:
    """Whether the nodes hang together by edges among themselves."""
    inside = set(nodes.tolist())
    neighbours: dict[int, list[int]] = {node: [] for node in inside}
    for u, v in graph.edges.tolist():
        if u in inside and v in inside:
            neighbours[u].append(v)
            neighbours[v].append(u)
    reached = [next(iter(inside))]
    seen = set(reached)
    for node in reached:
        fresh = [each for each in neighbours[node] if each not in seen]
        seen.update(fresh)
        reached += fresh
    return len(seen) == len(inside)


def best_jaccard(nodes: Ints, alternatives: Sequence[Ints]) -> float:
    """Shared nodes over all nodes of the chosen structure and the alternative that fits it best."""
    chosen = set(nodes.tolist())
    return max(len(chosen & own) / len(chosen | own) for own in (set(a.tolist()) for a in alternatives))


def _mean(values: Iterable[float]) -> float | None:
    return _over(np.mean, values)


def _median(values: Iterable[float]) -> float | None:
    return _over(np.median, values)


def _over(by: Callable[[list[float]], float], values: Iterable[float]) -> float | None:
    known = list(values)
    return float(by(known)) if known else None
