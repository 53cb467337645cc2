"""Importances against a known structure: arrays -> one number, or None where the question makes no sense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.errors import DataError

# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────


def roc_auc(importance: Floats, critical: Bools) -> float | None:
    """How often a critical entry is more important than another one, equal ones counting half; (n), (n) -> number.

    None where all entries are critical, or none is.
    """
    _, place, counts = np.unique(importance, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]  # counted from 1, the middle where several are equal
    n_critical = int(critical.sum())
    n_others = len(critical) - n_critical
    if not n_critical or not n_others:
        return None
    beaten = float(rank[critical].sum()) - n_critical * (n_critical + 1) / 2
    return beaten / (n_critical * n_others)


def node_auc(importance: Floats, alternatives: Sequence[Ints]) -> float | None:
    """The best ROC AUC over the alternatives; those that are empty or hold every node are passed over."""
    return _best(roc_auc, importance, alternatives)


def edge_auc(importance: Floats, critical: Bools) -> float | None:
    """ROC AUC over the edges of one graph."""
    return roc_auc(importance, critical)


def pooled_auc(importances: Sequence[Floats], critical: Sequence[Bools]) -> float | None:
    """ROC AUC over the edges of all graphs thrown together.

    Not the mean of :func:`edge_auc`: importances of different graphs are compared, so their scales matter, and large
    graphs count for more.
    """
    return roc_auc(np.concatenate([np.zeros(0), *importances]), np.concatenate([np.zeros(0, bool), *critical]))


# ── the most important ones, as many as the truth has ─────────────────────────────────────────────────


def precision_at_size(importance: Floats, alternatives: Sequence[Ints]) -> float | None:
    """Critical share of the most important nodes, as many as the alternative has; the best alternative counts.

    Where equal importances leave a choice, the expected share if it is made at random.
    """
    return _best(_precision, importance, alternatives)


def jaccard_at_size(importance: Floats, alternatives: Sequence[Ints]) -> float | None:
    """Shared nodes over all nodes of the alternative and of the equally many most important; the rest as above."""
    return _best(_jaccard, importance, alternatives)


@dataclass(frozen=True, slots=True)
class _Hits:
    """The S most important entries: some are certain, the rest is drawn from equals."""

    size: int
    certain: int  # critical ones among those that are certain
    drawn: int  # how many are drawn
    equals: int  # from how many
    critical_equals: int  # of which so many are critical


def _hits(importance: Floats, critical: Bools) -> _Hits:
    size = int(critical.sum())
    least = np.partition(importance, -size)[-size]
    above, equal = importance > least, importance == least
    return _Hits(
        size=size,
        certain=int((critical & above).sum()),
        drawn=size - int(above.sum()),
        equals=int(equal.sum()),
        critical_equals=int((critical & equal).sum()),
    )


def _precision(importance: Floats, critical: Bools) -> float:
    hits = _hits(importance, critical)
    return (hits.certain + hits.drawn * hits.critical_equals / hits.equals) / hits.size


def _jaccard(importance: Floats, critical: Bools) -> float:
    hits = _hits(importance, critical)
    least = max(0, hits.drawn - (hits.equals - hits.critical_equals))
    most = min(hits.drawn, hits.critical_equals)
    expected = 0.0
    for lucky in range(least, most + 1):  # a hypergeometric draw
        ways = comb(hits.critical_equals, lucky) * comb(hits.equals - hits.critical_equals, hits.drawn - lucky)
        shared = hits.certain + lucky
        expected += ways / comb(hits.equals, hits.drawn) * shared / (2 * hits.size - shared)
    return expected


def _best(
    score: Callable[[Floats, Bools], float | None], importance: Floats, alternatives: Sequence[Ints]
) -> float | None:
    found: list[float] = []
    for nodes in alternatives:
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= len(importance)):
            raise DataError(f"an alternative names node {nodes.max()} of {len(importance)}")
        critical = np.zeros(len(importance), bool)
        critical[nodes] = True
        if critical.any() and not critical.all():
            value = score(importance, critical)
            found += [] if value is None else [value]
    return max(found, default=None)


# ── what the model says once the graph is cut ─────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """The probability of the explained class, for G graphs."""

    full: Floats  # of the whole graph
    removed: Floats  # with the most important nodes taken out
    kept: Floats  # with nothing else left


def most_important(importance: Floats, sparsity: float) -> Ints:
    """The nodes to remove or to keep where ``sparsity`` is the share of nodes that are held unimportant.

    At least one node; of equals those that come first; ascending.
    """
    if not 0 <= sparsity < 1:
        raise DataError(f"sparsity must be at least 0 and below 1, got {sparsity}")
    count = max(1, round((1 - sparsity) * len(importance)))
    return np.sort(np.argsort(-importance, kind="stable")[:count])


def fidelity_plus(outcomes: Outcomes) -> float:
    """How much probability the important nodes take with them when they go: high is good."""
    return float(np.mean(outcomes.full - outcomes.removed))


def fidelity_minus(outcomes: Outcomes) -> float:
    """How much probability is lost when they alone stay: low is good."""
    return float(np.mean(outcomes.full - outcomes.kept))


def characterisation(plus: float, minus: float, *, weight: float = 0.5) -> float:
    r"""Both fidelities in one number, their harmonic mean (GraphFramEx, Amara et al. 2022).

    .. math:: 1 \Big/ \Big(\frac{w}{\mathrm{fid}_+} + \frac{1 - w}{1 - \mathrm{fid}_-}\Big)

    Fidelities from probabilities may be negative, for which this has no meaning: they are cut to 0 and 1.
    """
    sufficient = 1 - min(max(minus, 0.0), 1.0)
    if plus <= 0 or sufficient <= 0:
        return 0.0
    return 1 / (weight / min(plus, 1.0) + (1 - weight) / sufficient)
