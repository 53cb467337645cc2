"""All scores that apply: importances and truths of many graphs -> one record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from egocnn.data.graphs import Graph
from egocnn.errors import DataError
from lab.truths.importance import HasImportance
from lab.truths.isomers import mirror_correlation, unmatched_above_matched
from lab.truths.known import Truth
from lab.truths.scores import (
    Outcomes,
    characterisation,
    edge_auc,
    fidelity_minus,
    fidelity_plus,
    jaccard_at_size,
    node_auc,
    pooled_auc,
    precision_at_size,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthScores:
    """Means over the graphs that each number makes sense for; None where there is no such graph."""

    graphs: int  # how many importances were given
    node_graphs: int = 0  # in how many of them critical nodes can be told from others
    edge_graphs: int = 0  # in how many of them critical edges can be told from others
    node_auc: float | None = None
    node_precision: float | None = None  # at the size of the truth
    node_jaccard: float | None = None  # at the size of the truth
    edge_auc: float | None = None  # mean over graphs
    pooled_edge_auc: float | None = None  # over the edges of all graphs thrown together
    mirror_correlation: float | None = None  # symmetric isomers
    unmatched_above_matched: float | None = None  # share of asymmetric isomers
    fidelity_plus: float | None = None
    fidelity_minus: float | None = None
    characterisation: float | None = None

    def to_plain(self) -> dict[str, int | float]:
        """The numbers that apply."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def score_structures(
    importances: Sequence[HasImportance],
    truths: Sequence[Truth],
    *,
    graphs: Iterable[Graph] | None = None,
    outcomes: Outcomes | None = None,
) -> TruthScores:
    """Compare what was found with what is known, graph by graph in the same order.

    ``graphs`` are needed for the scores of isomers (classes symmetric and asymmetric), ``outcomes`` for fidelity.
    """
    if len(importances) != len(truths):
        raise DataError(f"{len(importances)} importances for {len(truths)} truths; there must be one for each")
    for number, (found, truth) in enumerate(zip(importances, truths, strict=True)):
        _check(number, found, truth)
    pairs = list(zip(importances, truths, strict=True))
    by_node = [(found.node_importance, truth.alternatives) for found, truth in pairs]
    by_edge = [(found.edge_importance, truth.edges) for found, truth in pairs if truth.edges is not None]
    node_aucs = _known(node_auc(*pair) for pair in by_node)
    edge_aucs = _known(edge_auc(*pair) for pair in by_edge)
    plus, minus = (fidelity_plus(outcomes), fidelity_minus(outcomes)) if outcomes is not None else (None, None)
    mirrors, methyls = _isomer_scores(importances, graphs) if graphs is not None else (None, None)
    return TruthScores(
        graphs=len(importances),
        node_graphs=len(node_aucs),
        edge_graphs=len(edge_aucs),
        node_auc=_mean(node_aucs),
        node_precision=_mean(_known(precision_at_size(*pair) for pair in by_node)),
        node_jaccard=_mean(_known(jaccard_at_size(*pair) for pair in by_node)),
        edge_auc=_mean(edge_aucs),
        pooled_edge_auc=pooled_auc([found for found, _ in by_edge], [critical for _, critical in by_edge]),
        mirror_correlation=mirrors,
        unmatched_above_matched=methyls,
        fidelity_plus=plus,
        fidelity_minus=minus,
        characterisation=None if plus is None or minus is None else characterisation(plus, minus),
    )


def _isomer_scores(importances: Sequence[HasImportance], graphs: Iterable[Graph]) -> tuple[float | None, float | None]:
    mirrors: list[float | None] = []
    methyls: list[float | None] = []
    for found, graph in zip(importances, graphs, strict=True):
        if graph.target == "symmetric":
            mirrors.append(mirror_correlation(graph, found.node_importance))
        elif graph.target == "asymmetric":
            methyls.append(unmatched_above_matched(graph, found.node_importance))
    return _mean(_known(mirrors)), _mean(_known(methyls))


def _check(number: int, found: HasImportance, truth: Truth) -> None:
    for what, values in (("node", found.node_importance), ("edge", found.edge_importance)):
        if not np.isfinite(values).all():
            raise DataError(f"graph {number}: {what} importances must be finite")
    if truth.edges is not None and len(truth.edges) != len(found.edge_importance):
        rule = f"{len(found.edge_importance)} edge importances for {len(truth.edges)} edges"
        raise DataError(f"graph {number}: {rule}; there must be one for each")


def _known(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None
