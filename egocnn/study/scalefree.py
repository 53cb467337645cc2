"""Graphs -> how far their degrees follow a power law, with the p-value of a bootstrap, as a record and as text.
Bootstrap (section 4 of Clauset, Shalizi and Newman, 2009): draw as many degrees as there are nodes, from the power law
in the tail and from the degrees found below it, and fit a power law anew."""

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import Comparison, Counts, Judgement, PowerLaw, fit_power_law, judge

TABLE = 20_000  # degrees of the tail that are drawn exactly; beyond them a continuous law is as good
LARGEST_DEGREE = 2**53  # what is drawn beyond is taken for it: a law with an exponent near 1 knows no bounds
Report = Callable[[int], None]  # called with the number of samples drawn so far
PLAUSIBLE = 0.1  # the p-value from which Clauset, Shalizi and Newman call a power law plausible


def assess(graphs: Graphs, *, samples: int = 100, seed: int = 0, report: Report | None = None) -> Judgement:
    """The judgement with the p-value of so many bootstrap samples (0: none)."""
    judgement = judge(graphs)
    if judgement.law is None:
        return judgement
    counts = Counts.of(graphs.degree)
    p = goodness(counts, judgement.law, samples=samples, seed=seed, report=report) if samples else None
    return replace(judgement, p=p, samples=samples)


def goodness(counts: Counts, law: PowerLaw, *, samples: int, seed: int, report: Report | None = None) -> float:
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


def lines(judgement: Judgement) -> list[str]:
    """The judgement as lines of text."""
    isolated = f" ({judgement.isolated:,} without neighbours left out)" if judgement.isolated else ""
    text = [f"{judgement.nodes:,} nodes in {judgement.graphs:,} graphs{isolated}, degrees up to {judgement.largest:,}"]
    law = judgement.law
    if law is None or judgement.log_normal is None or judgement.exponential is None:
        return [*text, f"{judgement.reason}; {judgement.advice}"]
    share, fit = law.tail_nodes / judgement.nodes, "not asked for"
    if (p := judgement.p) is not None:
        error = sqrt(max(p * (1 - p), 1 / judgement.samples) / judgement.samples)
        plausible, not_so = "nothing here that a power law and chance would not bring", "more than chance parts them"
        meaning = plausible if p >= PLAUSIBLE else f"{not_so}; how much, the distance says"
        fit = f"p = {p:.2f} ± {error:.2f} ({judgement.samples} samples): {meaning}"
    text += [
        f"power law        k^-{law.exponent:.3f} from degree {law.start} on ({law.tail_nodes:,} nodes, {share:.1%})",
        f"distance         {law.distance:.4f} (Kolmogorov-Smirnov)",
        f"goodness of fit  {fit}",
        f"or log-normal?   {_ratio(judgement.log_normal)}",
        f"or exponential?  {_ratio(judgement.exponential)}",
    ]
    text += [f"{'yes' if a.is_yes else 'no ':4} {a.question}? {a.found}" for a in judgement.answers]
    return [*text, judgement.advice]


def _ratio(comparison: Comparison) -> str:
    better = "the power law is more likely" if comparison.ratio > 0 else "it is more likely"
    return f"{better}: log-likelihood ratio {comparison.ratio:+,.1f}, z = {comparison.z:+.1f}, p = {comparison.p:.2g}"
