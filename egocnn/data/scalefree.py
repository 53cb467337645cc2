"""Degrees of nodes -> the power law nearest to their tail, whether they are scale-free, and whether to share filters.
Fit and comparison are those of Clauset, Shalizi and Newman (Power-law distributions in empirical data, 2009). Fit
(section 3): for every degree that the tail might start at, the exponent of greatest likelihood; of these, the start
with the least Kolmogorov-Smirnov distance. Comparison (section 5): Vuong's test of the log-likelihood ratio against a
log-normal and an exponential law. All works on how often each degree occurs: a million nodes cost no more than their
few hundred distinct degrees. Five questions decide, of how large deviations are, not if they are significant: where
nodes are many every law that is not exact is rejected, and the size of a graph bounds its degrees. So there is no
p-value, and a log-normal law may be slightly better."""

from dataclasses import asdict, dataclass
from math import erfc, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs

EXPONENTS = (1.01, 12.0)  # where the exponent is sought: at 1 the law has no sum, and beyond 12 hardly a second degree
STEPS = 45  # of the golden-section search: they narrow the exponent to nine digits
LEAST_TAIL = 50  # nodes that a tail needs, below which a power law cannot be distinguished from other laws
MOST_STARTS = 250  # distinct degrees, from the smallest on, that the tail may start at
RANGE = 10.0  # from its smallest degree the tail must reach to this many times that: hubs make a network scale-free
SCALE_FREE = (2.0, 3.5)  # exponents: below 2 there is no mean degree; far above 3 hubs are too rare to matter
CLOSE = 0.03  # distance beyond what chance explains, for which 1/sqrt(nodes of the tail) is a safe bound
MARGIN = 0.01  # by how much a log-normal law may raise a node's mean log-likelihood: one per cent of the likelihood
SIGNIFICANT = 0.05  # chance below which an exponential law counts as beaten


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many nodes have each degree; nodes without neighbours are left out, as a power law knows no zero."""

    degree: Ints  # (U) distinct degrees, ascending, 1 or more
    nodes: Ints  # (U) nodes of each

    @staticmethod
    def of(degrees: Ints) -> "Counts":
        """Degrees of nodes (N) -> how often each occurs."""
        return Counts(*np.unique(degrees[degrees > 0], return_counts=True))

    @property
    def total(self) -> int:
        """Nodes of all degrees."""
        return int(self.nodes.sum())

    def tail(self, start: int) -> "Counts":
        """Only the degrees from ``start`` on."""
        return Counts(self.degree[self.degree >= start], self.nodes[self.degree >= start])


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """The law that a share k^-exponent / zeta(exponent, start) of the tail has degree k."""

    exponent: float
    start: int  # smallest degree of the tail
    distance: float  # Kolmogorov-Smirnov: greatest difference between shares up to a degree, found and expected
    tail_nodes: int

    def log_share(self, degree: Ints) -> Floats:
        """(U) logarithm of the share that each degree has in the tail"""
        from scipy.special import zeta

        return np.asarray(-self.exponent * np.log(degree) - np.log(zeta(self.exponent, self.start)))


def fit_power_law(counts: Counts) -> PowerLaw | None:
    """The nearest power law; None where no tail has nodes enough and two degrees."""
    nodes_from = counts.nodes[::-1].cumsum()[::-1]  # (U) nodes of each degree or a larger one
    starts = np.flatnonzero(nodes_from[:-1] >= LEAST_TAIL)[:MOST_STARTS]
    if len(starts) == 0:
        return None
    logs_from = (counts.nodes * np.log(counts.degree))[::-1].cumsum()[::-1]
    exponents = _exponents(counts.degree[starts], logs_from[starts] / nodes_from[starts])
    tails = zip(starts, exponents.tolist(), strict=True)
    laws = (_measured(counts.degree[first:], nodes_from[first:], exponent) for first, exponent in tails)
    return min(laws, key=lambda law: law.distance)


def _exponents(start: Ints, mean_log: Floats) -> Floats:
    """(S) exponents of greatest likelihood for tails of these starts and mean logarithms of the degree."""
    from scipy.special import zeta

    # of a node -exponent * mean_log - log zeta(exponent, start), with one maximum: golden sections for all at once
    share = (np.sqrt(5) - 1) / 2
    low, high = (np.full(len(start), end) for end in EXPONENTS)
    for _ in range(STEPS):
        left, right = high - share * (high - low), low + share * (high - low)
        cost, other = (exponent * mean_log + np.log(zeta(exponent, start)) for exponent in (left, right))
        low, high = np.where(cost < other, low, left), np.where(cost < other, right, high)
    return np.asarray((low + high) / 2)


def _measured(degree: Ints, nodes_from: Ints, exponent: float) -> PowerLaw:
    from scipy.special import zeta

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

    def __str__(self) -> str:
        better = "the power law is more likely" if self.ratio > 0 else "it is more likely"
        return f"{better}: log-likelihood ratio {self.ratio:+,.1f}, z = {self.z:+.1f}, p = {self.p:.2g}"


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
    return np.asarray(np.log(-np.expm1(-rate)) - rate * beyond)


def log_normal(law: PowerLaw, counts: Counts) -> Floats:
    """(U) log shares under the most likely log-normal law, rounded to whole numbers and cut off below the tail"""
    from scipy.optimize import minimize

    tail = counts.tail(law.start)
    logs = np.log(tail.degree)

    def cost(place: NDArray[np.float64]) -> float:
        return -float(np.average(_log_normal_shares(tail, *place), weights=tail.nodes))

    first = np.array([np.average(logs, weights=tail.nodes), 0.0])
    found = minimize(cost, first, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 2000})
    return _log_normal_shares(tail, *found.x)


def _log_normal_shares(tail: Counts, mean: float, log_deviation: float) -> Floats:
    from scipy.special import log_ndtr

    deviation = np.exp(log_deviation)
    low, high = ((np.log(tail.degree + half) - mean) / deviation for half in (-0.5, 0.5))
    # the difference of two areas under the bell, taken on the side where both are small
    larger, smaller = np.where(low > 0, [-low, -high], [high, low])
    larger, smaller = log_ndtr(larger), log_ndtr(smaller)
    with np.errstate(divide="ignore"):  # a share too small for a number is a share of 0
        shares: Floats = larger + np.log(-np.expm1(smaller - larger)) - log_ndtr(-low[0])
    return np.maximum(shares, -1e6)


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
            last_word = "the validation score has the last word"
            return f"scale-free: try --tie, which reads every zoom level with the same filters; {last_word}"
        return "not scale-free: leave the layers untied, as they are by default; the paper lost by tying on such graphs"

    def lines(self) -> list[str]:
        """The judgement as lines of text."""
        isolated = f" ({self.isolated:,} without neighbours left out)" if self.isolated else ""
        text = [f"{self.nodes:,} nodes in {self.graphs:,} graphs{isolated}, degrees up to {self.largest:,}"]
        if (law := self.law) is None:
            return [*text, f"{self.reason}; {self.advice}"]
        tail = f"{law.tail_nodes:,} nodes, {law.tail_nodes / self.nodes:.1%}"
        text += [
            f"power law        k^-{law.exponent:.3f} from degree {law.start} on ({tail})",
            f"distance         {law.distance:.4f} (Kolmogorov-Smirnov)",
            f"or log-normal?   {self.log_normal}",
            f"or exponential?  {self.exponential}",
        ]
        text += [f"{'yes' if a.is_yes else 'no ':4} {a.question}? {a.found}" for a in self.answers]
        return [*text, self.advice]

    def to_plain(self) -> dict[str, Any]:
        """The judgement as JSON values."""
        return {"scale_free": self.is_scale_free, "reason": self.reason, "advice": self.advice, **asdict(self)}


def judge(graphs: Graphs) -> Judgement:
    """Fast enough to run before every training."""
    return judge_counts(Counts.of(graphs.degree), graphs=len(graphs), nodes=graphs.n_nodes)


def judge_counts(counts: Counts, *, graphs: int, nodes: int) -> Judgement:
    """The same from how often each degree occurs."""
    law, largest = fit_power_law(counts), int(counts.degree.max(initial=0))
    facts: dict[str, Any] = {"graphs": graphs, "nodes": counts.total, "isolated": nodes - counts.total}
    if law is None:
        return Judgement(**facts, largest=largest, law=None, log_normal=None, exponential=None, answers=())
    other, thin = (compare(law, counts, rival(law, counts)) for rival in (log_normal, exponential))
    answers = _answers(law, largest, other, thin)
    return Judgement(**facts, largest=largest, law=law, log_normal=other, exponential=thin, answers=answers)


def _answers(law: PowerLaw, largest: int, other: Comparison, thin: Comparison) -> tuple[Criterion, ...]:
    reach = largest / law.start
    allowed = CLOSE + 1 / sqrt(law.tail_nodes)
    gain = -other.ratio / law.tail_nodes
    low, high = SCALE_FREE
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
