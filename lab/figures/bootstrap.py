"""Degrees and the power law of their tail -> the p-value of a bootstrap: whether a deviation can be noticed.

Section 4 of Clauset, Shalizi and Newman (2009): draw as many degrees as there are nodes, from the power law in the tail
and from the degrees found below it, and fit a power law anew. They call a law plausible from a p-value of 0.1 on.
"""

import numpy as np
from scipy.special import zeta

from egocnn.data.arrays import Floats, Ints
from egocnn.data.scalefree import Counts, PowerLaw, fit_power_law

TABLE = 20_000  # degrees of the tail that are drawn exactly; beyond them a continuous law is as good
LARGEST_DEGREE = 2**53  # what is drawn beyond is taken for it: a law with an exponent near 1 knows no bounds


def goodness(counts: Counts, law: PowerLaw, *, samples: int = 100, seed: int = 0) -> float:
    """The p-value: share of samples that are at least as far from their own power law as the degrees from theirs."""
    random = np.random.default_rng(seed)
    farther = 0
    for _ in range(samples):
        own = fit_power_law(draw_counts(counts, law, random))
        farther += own is not None and own.distance >= law.distance
    return farther / samples


def draw_counts(counts: Counts, law: PowerLaw, random: np.random.Generator) -> Counts:
    """As many nodes again, with degrees as found below the tail and as the law has them in it."""
    below = Counts(counts.degree[counts.degree < law.start], counts.nodes[counts.degree < law.start])
    in_tail = int(random.binomial(counts.total, law.tail_nodes / counts.total))
    body = random.multinomial(counts.total - in_tail, below.nodes / below.total) if below.total else below.nodes
    drawn = Counts.of(draw_tail(law, in_tail, random))
    degree, nodes = np.append(below.degree, drawn.degree), np.append(body, drawn.nodes)
    return Counts(degree[nodes > 0], nodes[nodes > 0])


def share_from(law: PowerLaw, degree: Ints) -> Floats:
    """(U) share of the tail with this degree or a larger one"""
    return np.asarray(zeta(law.exponent, degree) / zeta(law.exponent, law.start))


def draw_tail(law: PowerLaw, nodes: int, random: np.random.Generator) -> Ints:
    """(nodes) degrees that follow the law"""
    shares = share_from(law, np.arange(law.start, law.start + TABLE + 1))  # from 1 down
    above = random.random(nodes)  # the share of nodes with a larger degree
    place = len(shares) - 1 - np.searchsorted(shares[::-1], above, side="left")
    degree = law.start + np.maximum(place, 0)
    beyond = above <= shares[-1]
    scale = (shares[-1] / np.maximum(above[beyond], np.finfo(float).tiny)) ** (1 / (law.exponent - 1))
    degree[beyond] = np.minimum((law.start + TABLE - 0.5) * scale + 0.5, LARGEST_DEGREE)
    return degree
