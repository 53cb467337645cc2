"""A power law and the degrees of its tail -> is another law, log-normal or exponential, more likely?

Vuong's test of the log-likelihood ratio, as Clauset, Shalizi and Newman (2009, section 5) use it: the ratio of a node,
averaged over the tail and divided by its standard error, is about normally distributed where both laws are equally far
from the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr

from egocnn.data.arrays import Floats
from egocnn.data.scalefree.fit import Counts, PowerLaw


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
