"""Graphs -> are they scale-free, why, and should the weights of the layers be tied?

The rule asks how large the deviations from a power law are, not whether they can be noticed. The p-value of the
bootstrap says the latter: with hundreds of thousands of nodes it rejects whatever is not exact, and no collection of
real graphs is, since the size of a graph bounds its degrees. So the p-value is told and does not decide; nor does a
log-normal law that is better, but hardly. Five questions decide, answered in well under a second: the graphs are
scale-free if the answer to each is yes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from typing import Any

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree.fit import Counts, PowerLaw, fit_power_law
from egocnn.data.scalefree.rivals import Comparison, compare, exponential, log_normal

log = logging.getLogger(__name__)

RANGE = 10.0
"""The tail must reach from its smallest degree to this many times that: hubs are what makes a network scale-free."""
EXPONENTS = (2.0, 3.5)
"""Below 2 there is no mean degree for large graphs to have; far above 3 hubs are too rare to matter."""
CLOSE = 0.03
"""Distance from the power law beyond what chance explains, for which 1/sqrt(nodes of the tail) is a safe bound."""
MARGIN = 0.01
"""By how much a log-normal law may raise the mean log-likelihood of a node: the likelihood by one per cent."""
SIGNIFICANT = 0.05
"""Chance below which an exponential law counts as beaten."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question of the rule."""

    question: str
    is_yes: bool
    found: str
    """the figure behind it, in words"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the degrees of a collection say."""

    graphs: int
    nodes: int
    """those with neighbours; the others have no place in a power law"""
    isolated: int
    largest: int
    """degree"""
    law: PowerLaw | None
    """None where no tail is long enough for one"""
    log_normal: Comparison | None
    exponential: Comparison | None
    answers: tuple[Answer, ...]
    p: float | None = None
    """of the bootstrap, where it was run"""
    samples: int = 0
    library: dict[str, Any] | None = field(default=None)
    """the same figures by the powerlaw library, where it was asked"""

    @property
    def is_scale_free(self) -> bool:
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
        if self.is_scale_free:
            return (
                "scale-free: try --tie, which reads every zoom level with the same filters; the validation score has "
                "the last word"
            )
        return "not scale-free: leave the layers untied, as they are by default; the paper lost by tying on such graphs"

    def to_plain(self) -> dict[str, Any]:
        return {"scale_free": self.is_scale_free, "reason": self.reason, "advice": self.advice, **asdict(self)}


def judge(graphs: Graphs) -> Judgement:
    """All but the bootstrap: fast enough to be asked before every training."""
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


def _answers(law: PowerLaw, largest: int, other: Comparison, thin: Comparison) -> tuple[Answer, ...]:
    reach = largest / law.start
    allowed = CLOSE + 1 / sqrt(law.tail_nodes)
    gain = -other.ratio / law.tail_nodes
    low, high = EXPONENTS
    side = "for the power law" if thin.z > 0 else "against the power law"
    return (
        Answer(
            "Are there hubs",
            reach >= RANGE,
            f"degrees reach {reach:,.1f} times the tail's smallest, {RANGE:.0f} wanted",
        ),
        Answer(
            "Is the exponent that of a scale-free network",
            low < law.exponent < high,
            f"the exponent is {law.exponent:.2f}, {low:g} to {high:g} wanted",
        ),
        Answer(
            "Is the power law close to the degrees",
            law.distance <= allowed,
            f"the distance is {law.distance:.4f}, {allowed:.4f} allowed",
        ),
        Answer(
            "Is the tail heavier than an exponential one",
            thin.z > 0 and thin.p < SIGNIFICANT,
            f"{abs(thin.z):.1f} standard errors {side} (p = {thin.p:.2g})",
        ),
        Answer(
            "Is a log-normal law no better, or hardly",
            gain <= MARGIN,
            f"it changes a node's log-likelihood by {gain:+.4f}, up to {MARGIN:+g} allowed",
        ),
    )
