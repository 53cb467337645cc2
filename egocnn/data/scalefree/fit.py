"""Degrees of nodes -> the discrete power law that is nearest to their tail.

The method is that of Clauset, Shalizi and Newman (Power-law distributions in empirical data, 2009): for every degree
that the tail might start at, the exponent of greatest likelihood; of these, the start whose power law has the least
Kolmogorov-Smirnov distance to the degrees in its tail. All of it works on how often each degree occurs, so a million
nodes cost no more than their few hundred distinct degrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import zeta

from egocnn.data.arrays import Floats, Ints

EXPONENTS = (1.01, 12.0)  # Where the exponent is sought: at 1 the law has no sum, and beyond 12 hardly a second degree.
STEPS = 45  # Of the golden-section search: they narrow the exponent to nine digits.
LEAST_TAIL = 50  # Nodes that a tail needs, below which a power law cannot be told from other laws.
MOST_STARTS = 250  # Distinct degrees, from the smallest on, that the tail may start at.


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many nodes have each degree; nodes without neighbours are left out, as a power law knows no zero."""

    degree: Ints  # (U) distinct degrees, ascending, 1 or more
    nodes: Ints  # (U) nodes of each

    @staticmethod
    def of(degrees: Ints) -> Counts:
        return Counts(*np.unique(degrees[degrees > 0], return_counts=True))

    @property
    def total(self) -> int:
        return int(self.nodes.sum())

    def tail(self, start: int) -> Counts:
        """Only the degrees from ``start`` on."""
        return Counts(self.degree[self.degree >= start], self.nodes[self.degree >= start])


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """The law that a share k^-exponent / zeta(exponent, start) of the tail has degree k."""

    exponent: float
    start: int  # smallest degree of the tail
    distance: float
    """Kolmogorov-Smirnov: greatest difference between the shares of the tail up to a degree, found and expected"""
    tail_nodes: int

    def log_share(self, degree: Ints) -> Floats:
        """(U) logarithm of the share that each degree has in the tail"""
        logs: Floats = -self.exponent * np.log(degree) - np.log(zeta(self.exponent, self.start))
        return logs

    def share_from(self, degree: Ints) -> Floats:
        """(U) share of the tail with this degree or a larger one"""
        shares: Floats = zeta(self.exponent, degree) / zeta(self.exponent, self.start)
        return shares


def fit_power_law(counts: Counts) -> PowerLaw | None:
    """The nearest power law; None where no tail has nodes enough and two degrees."""
    nodes_from = counts.nodes[::-1].cumsum()[::-1]  # (U) nodes of each degree or a larger one
    starts = np.flatnonzero(nodes_from[:-1] >= LEAST_TAIL)[:MOST_STARTS]
    if len(starts) == 0:
        return None
    logs_from = (counts.nodes * np.log(counts.degree))[::-1].cumsum()[::-1]
    exponents = _exponents(counts.degree[starts], logs_from[starts] / nodes_from[starts])
    laws = [
        _measured(counts.degree[first:], nodes_from[first:], float(exponent))
        for first, exponent in zip(starts, exponents, strict=True)
    ]
    return min(laws, key=lambda law: law.distance)


def _exponents(start: Ints, mean_log: Floats) -> Floats:
    """(S) exponents of greatest likelihood for tails of these starts and mean logarithms of the degree.

    The log-likelihood of a node, -exponent * mean_log - log zeta(exponent, start), has one maximum: golden sections,
    for all starts at once.
    """
    share = (np.sqrt(5) - 1) / 2
    low, high = (np.full(len(start), end) for end in EXPONENTS)

    def cost(exponent: Floats) -> Floats:
        costs: Floats = exponent * mean_log + np.log(zeta(exponent, start))
        return costs

    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(STEPS):
        is_left = at_left < at_right
        low, high = np.where(is_left, low, left), np.where(is_left, right, high)
        inner = np.where(is_left, high - share * (high - low), low + share * (high - low))
        at_inner = cost(inner)
        left, right = np.where(is_left, inner, right), np.where(is_left, left, inner)
        at_left, at_right = np.where(is_left, at_inner, at_right), np.where(is_left, at_left, at_inner)
    middle: Floats = (low + high) / 2
    return middle


def _measured(degree: Ints, nodes_from: Ints, exponent: float) -> PowerLaw:
    """The law of this exponent for these degrees, all of them in the tail, with its distance."""
    start = int(degree[0])
    found = nodes_from / nodes_from[0]  # (U) share of each degree or a larger one
    expected = zeta(exponent, degree) / zeta(exponent, start)
    expected_above = zeta(exponent, degree + 1) / zeta(exponent, start)
    # between two degrees that occur the found share stands still while the expected one falls: look at both ends
    distance = max(np.abs(found - expected).max(), np.abs(np.append(found[1:], 0) - expected_above).max())
    return PowerLaw(exponent=exponent, start=start, distance=float(distance), tail_nodes=int(nodes_from[0]))
