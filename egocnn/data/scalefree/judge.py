"""Graphs -> whether they are scale-free, why, and whether the layers should share their filters; also as text.

The rule asks how large the deviations from a power law are, not whether they are significant. The p-value of the
bootstrap says the latter: with hundreds of thousands of nodes it rejects every law that is not exact, and no
collection of real graphs follows one exactly, since the size of a graph bounds its degrees. So the p-value is
reported and does not decide; nor does a log-normal law that is only slightly better. Five questions decide, answered
in well under a second: the graphs are scale-free if the answer to each is yes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from typing import Any

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree.power_law import (
    Comparison,
    Counts,
    PowerLaw,
    compare,
    exponential,
    fit_power_law,
    goodness,
    log_normal,
    second_opinion,
)

log = logging.getLogger(__name__)

RANGE = 10.0
"""The tail must reach from its smallest degree to this many times that: hubs are what makes a network scale-free."""
EXPONENTS = (2.0, 3.5)
"""Below 2 there is no mean degree for large graphs to have; far above 3 hubs are too rare to matter."""
CLOSE = 0.03
"""Distance from the power law beyond what chance explains, for which 1/sqrt(nodes of the tail) is a safe bound."""
MARGIN = 0.01
"""By how much a log-normal law may raise the mean log-likelihood of a node: the likelihood by one per cent."""
SIGNIFICANT = 0.05  # chance below which an exponential law counts as beaten
PLAUSIBLE = 0.1  # the p-value from which Clauset, Shalizi and Newman call a power law plausible


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question of the rule, and its answer."""

    question: str
    is_yes: bool
    found: str  # the number that decided, with its limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How far the degrees of a collection follow a power law."""

    graphs: int
    nodes: int  # those with neighbours; the others have no place in a power law
    isolated: int
    largest: int  # degree
    law: PowerLaw | None  # None where no tail is long enough for one
    log_normal: Comparison | None
    exponential: Comparison | None
    answers: tuple[Criterion, ...]
    p: float | None = None  # of the bootstrap, where it was run
    samples: int = 0
    library: dict[str, Any] | None = field(default=None)  # the same figures by the powerlaw library, where wanted

    @property
    def is_scale_free(self) -> bool:
        """Whether every criterion is met."""
        return bool(self.answers) and all(answer.is_yes for answer in self.answers)

    @property
    def reason(self) -> str:
        """Why, in one line."""
        if not self.answers:
            return "too few degrees for any law"
        against = [f"{answer.question}? no: {answer.found}" for answer in self.answers if not answer.is_yes]
        return "; ".join(against) if against else "; ".join(answer.found for answer in self.answers)

    @property
    def advice(self) -> str:
        """Whether to tie the layers."""
        if self.is_scale_free:
            return (
                "scale-free: try --tie, which reads every zoom level with the same filters; the validation score has "
                "the last word"
            )
        return "not scale-free: leave the layers untied, as they are by default; the paper lost by tying on such graphs"

    def to_plain(self) -> dict[str, Any]:
        """The judgement as JSON values."""
        return {"scale_free": self.is_scale_free, "reason": self.reason, "advice": self.advice, **asdict(self)}


def judge(graphs: Graphs) -> Judgement:
    """All but the bootstrap: fast enough to run before every training."""
    return judge_counts(Counts.of(graphs.degree), graphs=len(graphs), nodes=graphs.n_nodes)


def judge_counts(counts: Counts, *, graphs: int, nodes: int) -> Judgement:
    """The same from how often each degree occurs."""
    law = fit_power_law(counts)
    facts: dict[str, Any] = {
        "graphs": graphs,
        "nodes": counts.total,
        "isolated": nodes - counts.total,
        "largest": int(counts.degree[-1]) if len(counts.degree) else 0,
        "law": law,
    }
    if law is None:
        return Judgement(**facts, log_normal=None, exponential=None, answers=())
    versus_log_normal = compare(law, counts, log_normal(law, counts))
    versus_exponential = compare(law, counts, exponential(law, counts))
    return Judgement(
        **facts,
        log_normal=versus_log_normal,
        exponential=versus_exponential,
        answers=_answers(law, facts["largest"], versus_log_normal, versus_exponential),
    )


def decide_by(model: ModelConfig, judged: Callable[[], Judgement]) -> tuple[ModelConfig, Judgement | None]:
    """Settings in which ``tie`` is true or false, and where it was ``auto`` the judgement of the training graphs."""
    if model.tie != "auto":
        return model, None
    judgement = judged()
    log.info("tie auto: %s (%s)", "tied" if judgement.is_scale_free else "not tied", judgement.reason)
    return replace(model, tie=judgement.is_scale_free), judgement


def _answers(law: PowerLaw, largest: int, other: Comparison, thin: Comparison) -> tuple[Criterion, ...]:
    reach = largest / law.start
    allowed = CLOSE + 1 / sqrt(law.tail_nodes)
    gain = -other.ratio / law.tail_nodes
    low, high = EXPONENTS
    side = "for the power law" if thin.z > 0 else "against the power law"
    hubs = f"degrees reach {reach:,.1f} times the tail's smallest, {RANGE:.0f} wanted"
    exponent = f"the exponent is {law.exponent:.2f}, {low:g} to {high:g} wanted"
    distance = f"the distance is {law.distance:.4f}, {allowed:.4f} allowed"
    against_exponential = f"{abs(thin.z):.1f} standard errors {side} (p = {thin.p:.2g})"
    against_log_normal = f"it changes a node's log-likelihood by {gain:+.4f}, up to {MARGIN:+g} allowed"
    heavier = thin.z > 0 and thin.p < SIGNIFICANT
    return (
        Criterion("Are there hubs", reach >= RANGE, hubs),
        Criterion("Is the exponent that of a scale-free network", low < law.exponent < high, exponent),
        Criterion("Is the power law close to the degrees", law.distance <= allowed, distance),
        Criterion("Is the tail heavier than an exponential one", heavier, against_exponential),
        Criterion("Is a log-normal law no better, or hardly", gain <= MARGIN, against_log_normal),
    )


def assess(
    graphs: Graphs,
    *,
    samples: int = 100,
    seed: int = 0,
    library: bool = False,
    report: Callable[[int], None] | None = None,
) -> Judgement:
    """The judgement with the p-value of so many bootstrap samples (0: none), by the powerlaw ``library`` as well."""
    judgement = judge(graphs)
    law = judgement.law
    if law is None:
        return judgement
    opinion = second_opinion(graphs.degree, law) if library else None
    p = goodness(Counts.of(graphs.degree), law, samples=samples, seed=seed, report=report) if samples else None
    return replace(judgement, p=p, samples=samples, library=opinion)


def lines(judgement: Judgement) -> list[str]:
    """The judgement as lines of text."""
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
