import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import zeta

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.scalefree import EXPONENTS, Counts, PowerLaw, compare, exponential, fit_power_law, judge, log_normal
from lab.figures.bootstrap import draw_tail
from tests.support.samples import one_graph, sure


def zipf(exponent: float, nodes: int, seed: int) -> Ints:
    drawn: Ints = np.minimum(np.random.default_rng(seed).zipf(exponent, nodes), 10**6)
    return drawn


def grown(graphs: int, nodes: int, links: int, seed: int) -> Graphs:
    """Barabási and Albert's graphs: every new node links to old ones, the more likely the more links they have."""
    random = np.random.default_rng(seed)
    edges: list[tuple[int, int]] = []
    for first in range(0, graphs * nodes, nodes):
        ends = list(range(first, first + links))
        for new in range(first + links, first + nodes):
            chosen: set[int] = set()
            while len(chosen) < links:
                chosen.add(ends[random.integers(len(ends))])
            edges += [(new, old) for old in chosen]
            ends += [*chosen, *[new] * links]
    return Graphs.from_edges(node_counts=[nodes] * graphs, edges=np.array(edges))


def thrown(graphs: int, nodes: int, degree: float, seed: int) -> Graphs:
    """Erdős and Rényi's graphs: every pair of nodes is linked with the same chance."""
    random = np.random.default_rng(seed)
    pairs = np.column_stack(np.triu_indices(nodes, 1))
    edges = [pairs[random.random(len(pairs)) < degree / nodes] + first for first in range(0, graphs * nodes, nodes)]
    return Graphs.from_edges(node_counts=[nodes] * graphs, edges=np.concatenate(edges))


@pytest.mark.parametrize("exponent", [2.1, 2.5, 3.2])
def test_the_exponent_of_a_power_law_is_found_again(exponent: float) -> None:
    law = sure(fit_power_law(Counts.of(zipf(exponent, 50_000, seed=1))))
    assert law.exponent == pytest.approx(exponent, abs=0.04)
    assert law.distance < 0.01


def test_the_tail_starts_where_the_power_law_does() -> None:
    random = np.random.default_rng(0)
    law = fit_power_law(Counts.of(np.append(random.integers(1, 10, 5000), zipf(2.5, 500_000, seed=2).clip(10))))
    cut = PowerLaw(exponent=2.5, start=10, distance=0.0, tail_nodes=20_000)
    tail = fit_power_law(Counts.of(np.append(random.integers(1, 10, 20_000), draw_tail(cut, 20_000, random))))
    assert law is not None
    assert tail is not None
    assert law.start > 10  # a heap of nodes at 10 is no part of a power law
    assert 9 <= tail.start <= 20
    assert tail.exponent == pytest.approx(2.5, abs=0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(1.8, 4), st.integers(60, 400))
def test_no_other_exponent_is_more_likely_and_the_distance_is_that_of_the_definition(
    seed: int, exponent: float, nodes: int
) -> None:
    degrees = np.minimum(zipf(exponent, nodes, seed), 300)
    law = fit_power_law(Counts.of(degrees))
    if law is None:
        return
    tail = np.sort(degrees[degrees >= law.start])

    def likelihood(other: float) -> float:
        return float(-other * np.log(tail).sum() - len(tail) * np.log(zeta(other, law.start)))

    if law.exponent < 11.9:
        assert all(likelihood(law.exponent) >= likelihood(law.exponent + step) for step in (-1e-3, 1e-3, -0.5, 0.5))
    degree = np.arange(law.start, tail[-1] + 1)
    found = np.searchsorted(tail, degree, side="right") / len(tail)
    expected = 1 - zeta(law.exponent, degree + 1) / zeta(law.exponent, law.start)
    assert law.distance == pytest.approx(np.abs(found - expected).max(), abs=1e-9)
    assert law.tail_nodes == len(tail) >= 50


@pytest.mark.parametrize("degrees", [[], [0] * 100, [3] * 1000, [1] * 30 + [2] * 10])
def test_without_a_tail_there_is_no_law(degrees: list[int]) -> None:
    assert fit_power_law(Counts.of(np.array(degrees, int))) is None


def test_the_law_that_drew_the_degrees_is_the_more_likely_one_and_equal_laws_equally() -> None:
    random = np.random.default_rng(0)
    law = PowerLaw(exponent=2.5, start=1, distance=0, tail_nodes=20_000)
    degrees = {
        "power": Counts.of(zipf(2.5, 20_000, seed=1)),
        "exponential": Counts.of(random.geometric(0.3, 20_000)),
        "log-normal": Counts.of(np.maximum(np.rint(random.lognormal(1.5, 0.6, 20_000)), 1).astype(int)),
    }
    assert compare(law, degrees["power"], exponential(law, degrees["power"])).z > 5
    assert compare(law, degrees["exponential"], exponential(law, degrees["exponential"])).z < -5
    assert compare(law, degrees["log-normal"], log_normal(law, degrees["log-normal"])).z < -5
    gain = log_normal(law, degrees["log-normal"]) - exponential(law, degrees["log-normal"])
    assert np.average(gain, weights=degrees["log-normal"].nodes) > 0
    counts = Counts.of(zipf(2.5, 500, seed=0))
    law = PowerLaw(exponent=2.5, start=1, distance=0, tail_nodes=500)
    same = compare(law, counts, law.log_share(counts.degree))
    assert (same.ratio, same.z, same.p) == (0, 0, 1)


@pytest.mark.parametrize("rival", [exponential, log_normal])
def test_the_shares_of_a_rival_sum_to_one(rival: Any) -> None:
    counts = Counts(np.arange(3, 300), (1e8 * 0.9 ** np.arange(297)).astype(int) + 1)
    law = PowerLaw(exponent=2.0, start=3, distance=0, tail_nodes=counts.total)
    assert np.exp(rival(law, counts)).sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("shape", [(1, 3000, 2), (1, 3000, 4), (40, 300, 2), (100, 300, 1)])
@pytest.mark.parametrize("seed", [0, 1])
def test_graphs_grown_by_preferential_attachment_are_scale_free(shape: tuple[int, int, int], seed: int) -> None:
    judgement = judge(grown(*shape, seed=seed))
    assert judgement.is_scale_free, judgement.reason
    assert "--tie" in judgement.advice


@pytest.mark.parametrize("shape", [(1, 1500, 4.0), (50, 100, 6.0), (200, 30, 2.5)])
@pytest.mark.parametrize("seed", [0, 1])
def test_random_graphs_are_not(shape: tuple[int, int, float], seed: int) -> None:
    judgement = judge(thrown(*shape, seed=seed))
    assert not judgement.is_scale_free
    assert "Are there hubs? no" in judgement.reason


def test_neither_is_a_mixture_of_stars_nor_what_is_too_small_to_tell() -> None:
    hubs = np.random.default_rng(0).integers(2, 50, 300)
    first = np.cumsum(hubs + 1) - hubs - 1
    stars = [np.column_stack([np.full(h, f), np.arange(f + 1, f + 1 + h)]) for f, h in zip(first, hubs, strict=True)]
    edges = np.concatenate(stars)
    judgement = judge(Graphs.from_edges(node_counts=hubs + 1, edges=edges))
    assert not judgement.is_scale_free
    assert "Is the power law close to the degrees? no" in judgement.reason
    nothing = Graphs.from_edges(node_counts=[], edges=np.zeros((0, 2), int))
    for few in (one_graph(3, [(0, 1)]), one_graph(2, []), nothing):
        assert not judge(few).is_scale_free
        assert "too few degrees for any law" in judge(few).lines()[-1]


def test_exponent_distance_and_ratios_are_those_of_the_powerlaw_library() -> None:
    """The start of the tail is ours: the library passes over starts with an exponent above 3."""
    powerlaw = pytest.importorskip("powerlaw")
    random = np.random.default_rng(3)
    for degrees in (zipf(2.5, 3000, seed=5), np.ceil(random.lognormal(1.5, 1, 3000)).astype(int)):
        counts = Counts.of(degrees)
        law = sure(fit_power_law(counts))
        tail = degrees[degrees >= law.start]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on how its optimiser fares
            theirs = powerlaw.Fit(
                tail, discrete=True, xmin=law.start, parameter_ranges={"alpha": list(EXPONENTS)}, verbose=0
            )
            assert theirs.power_law.alpha == pytest.approx(law.exponent, abs=1e-3)
            assert float(theirs.power_law.D) == pytest.approx(law.distance, abs=1e-3)
            for name, rival in (("lognormal", log_normal), ("exponential", exponential)):
                z, _ = theirs.distribution_compare("power_law", name, normalized_ratio=True)
                assert z == pytest.approx(compare(law, counts, rival(law, counts)).z, abs=0.15)


def test_the_text_answers_every_question() -> None:
    judgement = judge(grown(1, 2000, 2, seed=0))
    text = "\n".join(judgement.lines())
    for answer in judgement.answers:
        assert f"{answer.question}? {answer.found}" in text
    for law in (judgement.log_normal, judgement.exponential):
        assert law is not None
        assert f"log-likelihood ratio {law.ratio:+,.1f}, z = {law.z:+.1f}, p = {law.p:.2g}" in text
    assert text.endswith(judgement.advice)


@pytest.mark.parametrize("name", ["REDDIT-BINARY", "MUTAG", "PTC_MR", "NCI1", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI"])
def test_discussions_are_scale_free_molecules_and_casts_are_not(data_folder: Path, name: str) -> None:
    judgement = judge(read(data_folder / "tu" / f"{name}.zip"))
    assert judgement.is_scale_free is (name == "REDDIT-BINARY"), judgement.reason
