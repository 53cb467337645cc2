from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.explain import explain
from egocnn.explain.selection.grow import CONCENTRATED, LEAST_ODDS, MOST_PARTS, Evidence, grow, parts_of
from tests.explain.random_models import USUAL, predictor_for
from tests.support.invariance import relabel
from tests.support.samples import one_graph
from tests.support.strategies import random_connected

CONFIG = ExplainConfig()
Held = Callable[[set[int]], float]
"""the nodes of a graph that are present -> the share of the evidence that they hold"""


def all_of(*nodes: int) -> Held:
    return lambda present: float(set(nodes) <= present)


def each_of(*nodes: int) -> Held:
    return lambda present: len(set(nodes) & present) / len(nodes)


def evidence(
    graphs: Graphs, held: Held, *, amount: float = 3.0, base: float = -1.0, unit: float | None = None
) -> Evidence:
    """A model that has this much evidence for every graph, of which parts hold a share."""

    def ask(numbers: Ints, parts: Sequence[Ints]) -> Floats:
        there = [part - graphs.node_ptr[g] for g, part in zip(numbers.tolist(), parts, strict=True)]
        return np.array([base + amount * held(set(nodes.tolist())) for nodes in there])

    whole = np.full(len(graphs), base + amount)
    return Evidence(whole, np.full(len(graphs), base), unit, ask)


def grown(graphs: Graphs, score: list[float] | Floats, given: Evidence, config: ExplainConfig = CONFIG) -> list[int]:
    return np.flatnonzero(grow(graphs, np.asarray(score, np.float64), given, config)).tolist()


def path(n_nodes: int) -> Graphs:
    return one_graph(n_nodes, [(n, n + 1) for n in range(n_nodes - 1)])


def pieces(graphs: Graphs, nodes: set[int]) -> list[set[int]]:
    """The connected pieces of these nodes"""
    found, left = [], set(nodes)
    while left:
        reached, waiting = set[int](), [min(left)]
        while waiting:
            node = waiting.pop()
            reached.add(node)
            around = graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]].tolist()
            waiting += [other for other in around if other in left - reached]
        found.append(reached)
        left -= reached
    return found


# ── what is found ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("held", [all_of(3, 4, 5), each_of(3, 4, 5)], ids=["together", "each its share"])
def test_a_planted_structure_is_found(held: Held) -> None:
    graphs = one_graph(10, [*((n, n + 1) for n in range(9)), (3, 5)])
    score = [0.1, 0.05, 0.2, 0.9, 1.0, 0.8, 0.3, 0.15, 0.02, 0.01]
    assert grown(graphs, score, evidence(graphs, held)) == [3, 4, 5]


def test_every_graph_gets_its_own_part_and_one_without_nodes_none() -> None:
    graphs = Graphs.concat([path(8), Graphs.from_edges(node_counts=[0], edges=np.zeros((0, 2), np.int64)), path(8)])
    score = np.array([1.0, 0.9, 0.1, 0.2, 0, 0, 0, 0, *[0.0] * 4, 0.1, 0.2, 0.9, 1.0])

    def held(present: set[int]) -> float:
        return float({0, 1} <= present or {6, 7} <= present)  # the other pair would do, too: no class but a value

    assert grown(graphs, score, evidence(graphs, held, unit=1.0)) == [0, 1, 14, 15]


def test_a_part_grows_over_what_stands_between() -> None:
    """Two nodes hold the evidence, the one between them contributes nothing of its own."""
    graphs = path(9)
    score = [0.0, 0.0, 1.0, 0.01, 0.9, 0.0, 0.0, 0.0, 0.0]
    assert grown(graphs, score, evidence(graphs, all_of(2, 4))) == [2, 3, 4]


def test_a_part_that_is_enough_grows_until_the_rest_has_lost_what_it_held() -> None:
    """Either of two nodes is enough: without the first, the second still says it all."""
    graphs = path(9)
    score = [0.0, 1.0, 0.9, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0]

    def either(present: set[int]) -> float:
        return float(bool({1, 2} & present))

    assert grown(graphs, score, evidence(graphs, either)) == [1, 2]

    def anywhere(present: set[int]) -> float:
        return float(bool(present))

    assert grown(graphs, score, evidence(graphs, anywhere)) == []  # any other node would do as well
    assert grown(graphs, score, evidence(graphs, anywhere, unit=1.0)) == [1]  # of a value the first part


def test_two_groups_far_apart_that_are_both_needed_make_two_pieces() -> None:
    graphs = path(20)
    score = np.full(20, 0.01)
    score[[1, 2, 17, 18]] = [1.0, 0.9, 0.8, 0.7]
    assert grown(graphs, score, evidence(graphs, all_of(1, 2, 17, 18))) == [1, 2, 17, 18]


def test_symmetric_nodes_join_together() -> None:
    graphs = path(7)
    score = [1.0, 0.5, 0.1, 0.05, 0.1, 0.5, 1.0]
    assert grown(graphs, score, evidence(graphs, all_of(0))) == [0, 6]
    assert grown(graphs, score, evidence(graphs, all_of(0, 1))) == [0, 1, 5, 6]


def test_a_second_component_joins_when_the_first_is_used_up() -> None:
    """A salt: what holds the evidence stands in two parts that no edge joins."""
    graphs = one_graph(12, [(0, 1), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11)])
    score = [1.0, 0.9, 0.8, 0.1, *[0.0] * 8]
    assert grown(graphs, score, evidence(graphs, all_of(0, 1, 2))) == [0, 1, 2]


# ── nothing ───────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_critical_where_no_part_of_half_the_nodes_is_enough() -> None:
    graphs = path(8)
    score = np.linspace(1.0, 0.3, 8)
    assert grown(graphs, score, evidence(graphs, each_of(*range(8)))) == []
    graphs, score = path(10), np.array([1.0] * 6 + [0.0] * 4) + np.linspace(0.01, 0, 10)
    given = evidence(graphs, all_of(*range(6)))
    assert grown(graphs, score, given, ExplainConfig(largest=0.6)) == [*range(6)]


def test_half_a_graph_that_is_as_good_a_witness_as_the_other_half_does_not_stand_out() -> None:
    """A class that stands for the lack of something: any part keeps the evidence, and none holds more than the rest."""
    graphs = path(8)
    assert grown(graphs, np.linspace(1.0, 0.7, 8), evidence(graphs, lambda present: min(1.0, len(present) / 3))) == []


@pytest.mark.parametrize(("amount", "found"), [(0.99, []), (1.01, [0]), (-5.0, [])])
def test_nothing_is_critical_where_the_evidence_does_not_double_the_odds(amount: float, found: list[int]) -> None:
    assert log(2) == LEAST_ODDS
    graphs = path(6)
    given = evidence(graphs, all_of(0), amount=amount * LEAST_ODDS)
    assert grown(graphs, [1.0, 0, 0, 0, 0, 0], given) == found


@pytest.mark.parametrize("share", [0.0, 0.85])
def test_nothing_is_critical_where_no_node_speaks_for_the_class(share: float) -> None:
    graphs = path(4)
    config = ExplainConfig(evidence=share)
    assert grown(graphs, [-1.0, 0.0, -0.5, 0.0], evidence(graphs, all_of(0)), config) == []


# ── values ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("amount", [5.0, -5.0])
def test_the_part_of_a_value_holds_what_raised_and_what_lowered_it(amount: float) -> None:
    graphs = path(8)
    score = np.sign(amount) * np.array([0.0, 3.0, 2.0, 0.1, 0, 0, 0, 0])
    assert grown(graphs, score, evidence(graphs, each_of(1, 2), amount=amount, unit=1.0)) == [1, 2]


def test_where_parts_of_a_value_cancel_the_part_is_what_moved_it_to_its_side_of_the_base() -> None:
    """Up by 4 and down by 3: it is above the base because of the first."""
    graphs = path(8)

    def held(present: set[int]) -> float:
        return 4.0 * (1 in present) - 3.0 * (2 in present)

    score = [0.0, 4.0, -3.0, 0.1, 0.0, 0.0, 0.0, 0.0]
    assert grown(graphs, score, evidence(graphs, held, amount=1.0, base=10.0, unit=0.5)) == [1]


def test_a_value_that_the_empty_graph_has_as_well_needs_no_part() -> None:
    graphs = path(8)
    given = evidence(graphs, all_of(1), amount=0.1, unit=1.0)
    assert grown(graphs, [0.0, 0.1, 0, 0, 0, 0, 0, 0], given) == []


# ── what holds for all ────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), nodes=st.integers(3, 20), extra=st.integers(0, 6), is_value=st.booleans())
def test_a_part_has_at_most_three_pieces_and_is_enough_or_a_third_that_holds_most(
    seed: int, nodes: int, extra: int, is_value: bool
) -> None:
    random = np.random.default_rng(seed)
    graphs = random_connected(3, nodes=nodes, extra=extra, seed=seed)
    score = random.normal(size=graphs.n_nodes) + 0.5
    share = np.maximum(score, 0) if not is_value else np.abs(score)

    def ask(numbers: Ints, parts: Sequence[Ints]) -> Floats:
        all_of_it = np.bincount(graphs.graph_of, weights=share, minlength=3)[numbers]
        return 8.0 * np.array([share[part].sum() for part in parts]) / np.maximum(all_of_it, 1e-9)

    every = np.arange(3)
    output = ask(every, parts_of(graphs, every, np.ones(graphs.n_nodes, bool)))
    given = Evidence(output, np.zeros(3), 1.0 if is_value else None, ask)
    chosen = grow(graphs, score, given, CONFIG)
    for g in every.tolist():
        own = set(np.flatnonzero(chosen & (graphs.graph_of == g)).tolist())
        if own:
            assert len(pieces(graphs, own)) <= MOST_PARTS
            assert len(own) <= np.ceil(graphs.node_counts[g] / 2)
            is_enough = given.kept(np.array([g]), ask(np.array([g]), [np.array(sorted(own))])) >= CONFIG.evidence
            all_of_it = np.maximum(score * given.direction[graphs.graph_of], 0)[graphs.graph_of == g].sum()
            holds_most = score[sorted(own)].sum() * given.direction[g] >= CONCENTRATED * all_of_it
            assert is_enough or (holds_most and len(own) <= max(1, graphs.node_counts[g] / 3))


@pytest.mark.parametrize("networks", [1, 3])
@pytest.mark.parametrize("classes", [0, 2])
def test_renumbering_a_graph_renumbers_its_part(classes: int, networks: int) -> None:
    target = np.arange(25) % 2 if classes else np.linspace(-3.0, 3.0, 25)
    graphs = random_connected(25, nodes=12, extra=2, seed=1, target=target, class_names=("no", "yes")[:classes])
    one = predictor_for(graphs, **USUAL)  # several untrained ones favour one class whatever they are shown
    predictor = replace(one, networks=one.networks * networks, temperature=0.2)
    relabelled, new = relabel(graphs, 3)
    found = [explain(predictor, some, fidelity=False, device="cpu") for some in (graphs, relabelled)]
    assert any(len(structure.critical_nodes) for structure in found[0])
    for g, (one, other) in enumerate(zip(*found, strict=True)):
        inner = new[graphs.node_ptr[g] : graphs.node_ptr[g + 1]] - graphs.node_ptr[g]
        assert sorted(inner[one.critical_nodes].tolist()) == other.critical_nodes.tolist()
