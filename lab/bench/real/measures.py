"""Explained graphs whose truth nobody knows -> numbers that can be judged all the same: size, signs, evidence, sums.

Structures of the package go in, one for each graph and in its order; None comes out where no graph has the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from egocnn.data.arrays import Bools, Floats
from egocnn.data.collection import keep_nodes
from egocnn.data.graphs import Graphs
from egocnn.explain.evidence import margins
from egocnn.explain.portion import SAME
from egocnn.explain.structure import CriticalStructure
from egocnn.model import Model
from egocnn.train.metrics import known_truth, r2
from lab.truths.scores import roc_auc
from lab.truths.suite.scoring.measures import is_connected

Numbers: TypeAlias = dict[str, float | None]
Structures: TypeAlias = Sequence[CriticalStructure]

SPEAKS = 0.05  # Share of the largest contribution in its graph from which on a node speaks for or against.


# ── what is predicted ─────────────────────────────────────────────────────────────────────────────


def prediction_scores(model: Model, graphs: Graphs, *, device: str = "auto") -> Numbers:
    """Accuracy, and ROC AUC of two classes; root mean square error and R² of values."""
    known, truth = known_truth(graphs, model.class_names)
    predictions = model.predictions(graphs[known], device=device)
    return scores_of_predictions(predictions, truth)


def scores_of_predictions(predictions: Floats, truth: NDArray[Any]) -> Numbers:
    """The same from probabilities (G, C) and class numbers (G), or from values (G) and values (G)"""
    if predictions.ndim == 1:
        rmse = float(np.sqrt(np.mean((predictions - truth) ** 2)))
        return {"rmse": rmse, "r2": r2(predictions, truth)}
    accuracy = float((predictions.argmax(axis=1) == truth).mean())
    auc = roc_auc(predictions[:, 1], truth == 1) if predictions.shape[1] == 2 else None
    return {"roc_auc": auc, "accuracy": accuracy}


# ── the structures themselves ─────────────────────────────────────────────────────────────────────


def size_scores(found: Structures) -> Numbers:
    """How much of a graph its structure holds, how often it is empty, and how often in one piece."""
    chosen = [one for one in found if len(one.critical_nodes)]
    return {
        "share_of_nodes": _median(map(share_of_nodes, found)),
        "share_of_nodes_where_any": _median(map(share_of_nodes, chosen)),
        "empty": _mean(float(not len(one.critical_nodes)) for one in found),
        "connected": _mean(float(is_connected(one.graph, one.critical_nodes)) for one in chosen),
    }


def share_of_nodes(structure: CriticalStructure) -> float:
    """Of a graph without nodes, none."""
    return float(len(structure.critical_nodes) / max(structure.graph.n_nodes, 1))


def sign_shares(found: Structures) -> Numbers:
    """Shares of all nodes that speak for and against, or raise and lower; the rest says next to nothing."""
    relative = [
        one.node_importance / largest for one in found if (largest := np.abs(one.node_importance).max(initial=0.0)) > 0
    ]
    nodes = sum(len(one.node_importance) for one in found)
    if not nodes:
        return {"nodes_for": None, "nodes_against": None}
    every = np.concatenate([np.zeros(0), *relative])
    return {
        "nodes_for": float((every > SPEAKS).sum()) / nodes,
        "nodes_against": float((every < -SPEAKS).sum()) / nodes,
    }


def gap_scores(found: Structures) -> Numbers:
    """How far base + sum of the contributions is from the output at most, and as a share of the outputs' range."""
    gaps = [abs(one.base + float(one.node_importance.sum()) - one.output) for one in found]
    outputs = [one.output for one in found]
    extent = max(outputs) - min(outputs) if outputs else 0.0
    largest = max(gaps, default=None)
    return {"gap": largest, "gap_of_range": largest / extent if largest is not None and extent > 0 else None}


# ── evidence: output less base ────────────────────────────────────────────────────────────────────


def evidence_by_presence(found: Structures) -> Numbers:
    """Median shares that structures keep alone and that go with them, asked by presence; empty ones do not count."""
    known = [one.fidelity for one in found if one.fidelity is not None and len(one.critical_nodes)]
    return {
        "kept": _median(each.evidence_kept for each in known if each.evidence_kept is not None),
        "lost": _median(each.evidence_lost for each in known if each.evidence_lost is not None),
    }


def evidence_by_cutting(graphs: Graphs, found: Structures, ask: Callable[[Graphs], Floats]) -> Numbers:
    """The same where nodes are cut out of the graph, which is read anew; ``ask`` gives outputs that are explained."""
    chosen = chosen_nodes(graphs, found)
    alone, rest = ask(keep_nodes(graphs, chosen)), ask(keep_nodes(graphs, ~chosen))
    kept, lost = [], []
    for one, own, other in zip(found, alone.tolist(), rest.tolist(), strict=True):
        evidence = one.output - one.base
        if len(one.critical_nodes) and abs(evidence) >= SAME:
            kept.append((own - one.base) / evidence)
            lost.append((one.output - other) / evidence)
    return {"kept_cut": _median(kept), "lost_cut": _median(lost)}


def chosen_nodes(graphs: Graphs, found: Structures) -> Bools:
    """(N) the critical nodes of all graphs"""
    chosen = np.zeros(graphs.n_nodes, bool)
    for first, one in zip(graphs.node_ptr[:-1].tolist(), found, strict=True):
        chosen[first + one.critical_nodes] = True
    return chosen


def explained_outputs(model: Model, graphs: Graphs, found: Structures, *, device: str = "auto") -> Floats:
    """(G) the calibrated log-odds of the class that each structure explains, or the values"""
    outputs = torch.from_numpy(model.outputs(graphs, device=device)).double()
    names = model.class_names
    if not names:
        values: Floats = model.encoder.to_value(outputs[:, 0]).numpy()
        return values
    classes = torch.tensor([names.index(one.explained or "") for one in found])
    odds: Floats = margins(outputs / model.temperature, classes).numpy()
    return odds


# ── two trainings ─────────────────────────────────────────────────────────────────────────────────


def agreement(one: Structures, other: Structures) -> float | None:
    """Mean over the graphs of the rank correlation between the contributions of two trainings to the same class."""
    pairs = zip(one, other, strict=True)
    return _mean(rho for a, b in pairs if (rho := spearman(a.node_importance, b.node_importance)) is not None)


def spearman(one: Floats, other: Floats) -> float | None:
    """Rank correlation, equal ones at the middle of their ranks; None where one side has no order."""
    first, second = _ranks(one), _ranks(other)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def mean_of(several: Sequence[Numbers]) -> Numbers:
    """Every number as its mean over the trainings that have it."""
    names = dict.fromkeys(name for numbers in several for name in numbers)
    return {name: _mean(x for numbers in several if (x := numbers.get(name)) is not None) for name in names}


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return float(np.mean(known)) if known else None


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return float(np.median(known)) if known else None
