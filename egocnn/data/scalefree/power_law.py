"""Degrees of nodes -> the discrete power law nearest to their tail, and how well it describes them.

Fit, comparison and bootstrap are those of Clauset, Shalizi and Newman (Power-law distributions in empirical data,
2009). Fit (section 3): for every degree that the tail might start at, the exponent of greatest likelihood; of these,
the start whose power law has the least Kolmogorov-Smirnov distance to the degrees in its tail. Comparison (section
5): Vuong's test of the log-likelihood ratio against a log-normal and an exponential law; the ratio of a node,
averaged over the tail and divided by its standard error, is about normally distributed where both laws are equally
far from the truth. Bootstrap (section 4): draw as many degrees as there are nodes, from the power law in the tail and
from the degrees found below it, and fit a power law anew. All of it works on how often each degree occurs, so a
million nodes cost no more than their few hundred distinct degrees.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr, zeta

from egocnn.data.arrays import Floats, Ints
from egocnn.errors import MissingExtraError

EXPONENTS = (1.01, 12.0)  # where the exponent is sought: at 1 the law has no sum, and beyond 12 hardly a second degree
STEPS = 45  # of the golden-section search: they narrow the exponent to nine digits
LEAST_TAIL = 50  # nodes that a tail needs, below which a power law cannot be distinguished from other laws
MOST_STARTS = 250  # distinct degrees, from the smallest on, that the tail may start at
TABLE = 20_000  # degrees of the tail that are drawn exactly; beyond them a continuous law is as good
LARGEST_DEGREE = 2**53  # what is drawn beyond is taken for it: a law with an exponent near 1 knows no bounds


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many nodes have each degree; nodes without neighbours are left out, as a power law knows no zero."""

    degree: Ints  # (U) distinct degrees, ascending, 1 or more
    nodes: Ints  # (U) nodes of each

    @staticmethod
    def of(degrees: Ints) -> Counts:
        """Degrees of nodes (N) -> how often each occurs."""
        return Counts(*np.unique(degrees[degrees > 0], return_counts=True))

    @property
    def total(self) -> int:
        """Nodes of all degrees."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The power law beside a rival; above 0 speaks for the power law."""

    ratio: float  # log-likelihood of the tail under the power law, less that under the rival
    z: float  # the ratio in standard errors
    p: float  # chance of a ratio so far from 0, to either side, if both laws are equally good


def compare(law: PowerLaw, counts: Counts, rival: Floats) -> Comparison:
    """``rival``: (U) logarithm of the share that each degree of the tail has under the other law"""
    tail = counts.tail(law.start)
    difference = law.log_share(tail.degree) - rival
    mean = float(np.average(difference, weights=tail.nodes))
    deviation = sqrt(float(np.average((difference - mean) ** 2, weights=tail.nodes)))
    z = mean * sqrt(tail.total) / deviation if deviation > 0 else 0.0
    return Comparison(ratio=mean * tail.total, z=z, p=erfc(abs(z) / sqrt(2)))


def exponential(law: PowerLaw, counts: Counts) -> Floats:
    """(U) log shares under the most likely exponential law of whole numbers, whose rate has a closed form"""
    tail = counts.tail(law.start)
    beyond = tail.degree - law.start
    rate = np.log1p(1 / np.average(beyond, weights=tail.nodes))
    shares: Floats = np.log(-np.expm1(-rate)) - rate * beyond
    return shares


def log_normal(law: PowerLaw, counts: Counts) -> Floats:
    """(U) log shares under the most likely log-normal law, rounded to whole numbers and cut off below the tail"""
    tail = counts.tail(law.start)
    logs = np.log(tail.degree)

    def cost(place: NDArray[np.float64]) -> float:
        return -float(np.average(_log_normal_shares(tail, *place), weights=tail.nodes))

    first = np.array([np.average(logs, weights=tail.nodes), 0.0])
    found = minimize(cost, first, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 2000})
    return _log_normal_shares(tail, *found.x)


def _log_normal_shares(tail: Counts, mean: float, log_deviation: float) -> Floats:
    deviation = np.exp(log_deviation)
    low, high = ((np.log(tail.degree + half) - mean) / deviation for half in (-0.5, 0.5))
    # the difference of two areas under the bell, taken on the side where both are small
    larger, smaller = np.where(low > 0, [-low, -high], [high, low])
    larger, smaller = log_ndtr(larger), log_ndtr(smaller)
    with np.errstate(divide="ignore"):  # a share too small for a number is a share of 0
        shares: Floats = larger + np.log(-np.expm1(smaller - larger)) - log_ndtr(-low[0])
    return np.maximum(shares, -1e6)


def goodness(
    counts: Counts, law: PowerLaw, *, samples: int, seed: int, report: Callable[[int], None] | None = None
) -> float:
    """The p-value: share of samples that are at least as far from their own power law as the degrees from theirs."""
    random = np.random.default_rng(seed)
    farther = 0
    for number in range(samples):
        own = fit_power_law(draw_counts(counts, law, random))
        farther += own is not None and own.distance >= law.distance
        if report is not None:
            report(number + 1)
    return farther / samples


def draw_counts(counts: Counts, law: PowerLaw, random: np.random.Generator) -> Counts:
    """As many nodes again, with degrees as found below the tail and as the law has them in it."""
    below = Counts(counts.degree[counts.degree < law.start], counts.nodes[counts.degree < law.start])
    in_tail = int(random.binomial(counts.total, law.tail_nodes / counts.total))
    body = random.multinomial(counts.total - in_tail, below.nodes / below.total) if below.total else below.nodes
    drawn = Counts.of(draw_tail(law, in_tail, random))
    degree, nodes = np.append(below.degree, drawn.degree), np.append(body, drawn.nodes)
    return Counts(degree[nodes > 0], nodes[nodes > 0])


def draw_tail(law: PowerLaw, nodes: int, random: np.random.Generator) -> Ints:
    """(nodes) degrees that follow the law"""
    share_from = law.share_from(np.arange(law.start, law.start + TABLE + 1))  # from 1 down
    above = random.random(nodes)  # the share of nodes with a larger degree
    place = len(share_from) - 1 - np.searchsorted(share_from[::-1], above, side="left")
    degree = law.start + np.maximum(place, 0)
    beyond = above <= share_from[-1]
    scale = (share_from[-1] / np.maximum(above[beyond], np.finfo(float).tiny)) ** (1 / (law.exponent - 1))
    degree[beyond] = np.minimum((law.start + TABLE - 0.5) * scale + 0.5, LARGEST_DEGREE)
    return degree


def second_opinion(degrees: Ints, law: PowerLaw) -> dict[str, Any]:
    """Exponent, distance and both ratio tests for the tail that ``law`` starts at.

    The start is ours: by default the library passes over starts with an exponent above 3, and its search among the
    degrees of a million nodes takes many times as long.
    """
    try:
        import powerlaw
    except ImportError:
        raise MissingExtraError("powerlaw", "powerlaw") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks on how its optimiser fares: the figures are what counts
        fit = powerlaw.Fit(
            degrees[degrees >= law.start],
            discrete=True,
            xmin=law.start,
            parameter_ranges={"alpha": list(EXPONENTS)},
            verbose=0,
        )
        own = fit.power_law
        plain: dict[str, Any] = {"exponent": float(own.alpha), "distance": float(own.D)}
        for name, theirs in (("log_normal", "lognormal"), ("exponential", "exponential")):
            z, p = fit.distribution_compare("power_law", theirs, normalized_ratio=True)
            plain[name] = {"z": float(z), "p": float(p)}
    return plain
