"""Graphs -> the whole judgement, bootstrap and second opinion included, and its text for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

from egocnn.data.graphs import Graphs
from egocnn.data.scalefree.bootstrap import goodness
from egocnn.data.scalefree.fit import Counts
from egocnn.data.scalefree.judge import Judgement, judge
from egocnn.data.scalefree.library import second_opinion
from egocnn.data.scalefree.rivals import Comparison

PLAUSIBLE = 0.1  # The p-value from which Clauset, Shalizi and Newman call a power law plausible.


def assess(
    graphs: Graphs,
    *,
    samples: int = 100,
    seed: int = 0,
    library: bool = False,
    report: Callable[[int], None] | None = None,
) -> Judgement:
    """The judgement with the p-value of so many bootstrap samples (0: without), and the library's figures if asked."""
    judgement = judge(graphs)
    law = judgement.law
    if law is None:
        return judgement
    opinion = second_opinion(graphs.degree, law) if library else None
    p = goodness(Counts.of(graphs.degree), law, samples=samples, seed=seed, report=report) if samples else None
    return replace(judgement, p=p, samples=samples, library=opinion)


def lines(judgement: Judgement) -> list[str]:
    """The judgement in words."""
    isolated = f" ({judgement.isolated:,} without neighbours left out)" if judgement.isolated else ""
    text = [f"{judgement.nodes:,} nodes in {judgement.graphs:,} graphs{isolated}, degrees up to {judgement.largest:,}"]
    law = judgement.law
    if law is None or judgement.log_normal is None or judgement.exponential is None:
        return [*text, f"{judgement.reason}; {judgement.advice}"]
    share = law.tail_nodes / judgement.nodes
    text += [
        f"power law        k^-{law.exponent:.3f} from degree {law.start} on ({law.tail_nodes:,} nodes, {share:.1%})",
        f"distance         {law.distance:.4f} (Kolmogorov-Smirnov)",
        f"goodness of fit  {_goodness(judgement)}",
        f"or log-normal?   {_ratio(judgement.log_normal)}",
        f"or exponential?  {_ratio(judgement.exponential)}",
    ]
    if judgement.library is not None:
        own = judgement.library
        z = ", ".join(f"{name.replace('_', '-')} {own[name]['z']:+.1f}" for name in ("log_normal", "exponential"))
        text.append(
            f"powerlaw library exponent {own['exponent']:.3f}, distance {own['distance']:.4f}, standard errors: {z}"
        )
    text += [f"{'yes' if a.is_yes else 'no ':4} {a.question}? {a.found}" for a in judgement.answers]
    return [*text, judgement.advice]


def _goodness(judgement: Judgement) -> str:
    if judgement.p is None:
        return "not asked for"
    error = sqrt(max(judgement.p * (1 - judgement.p), 1 / judgement.samples) / judgement.samples)
    if judgement.p >= PLAUSIBLE:
        meaning = "nothing here that a power law and chance would not bring"
    else:
        meaning = "more than chance parts them; how much, the distance says"
    return f"p = {judgement.p:.2f} ± {error:.2f} ({judgement.samples} samples): {meaning}"


def _ratio(comparison: Comparison) -> str:
    better = "the power law is more likely" if comparison.ratio > 0 else "it is more likely"
    return f"{better}: log-likelihood ratio {comparison.ratio:+,.1f}, z = {comparison.z:+.1f}, p = {comparison.p:.2g}"
