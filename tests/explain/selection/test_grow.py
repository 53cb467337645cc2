from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from typing import Any

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


def some_of(share: float, *nodes: int) -> Held:
    """The nodes together hold this share, the rest it takes all of a graph to hold."""
    return lambda present: 1.0 if len(present) in (9, 20) else share * (set(nodes) <= present)


def any_of(*nodes: int) -> Held:
    return lambda present: float(bool(set(nodes) & present))


def at(n_nodes: int, values: dict[int, float], rest: float = 0.0) -> Floats:
    """These importances, and the rest for all other nodes."""
    return np.array([values.get(node, rest) for node in range(n_nodes)])


# ── what is found ─────────────────────────────────────────────────────────────────────────────────

TRIANGLE = one_graph(10, [*((n, n + 1) for n in range(9)), (3, 5)])
PLANTED = np.array([0.1, 0.05, 0.2, 0.9, 1.0, 0.8, 0.3, 0.15, 0.02, 0.01])
PAIR = at(9, {1: 1.0, 2: 0.9, 3: 0.2, 4: 0.1})
FAR = at(20, {1: 1.0, 2: 0.9, 17: 0.8, 18: 0.7}, rest=0.01)
MIRRORED = np.array([1.0, 0.5, 0.1, 0.05, 0.1, 0.5, 1.0])
SALT = one_graph(12, [(0, 1), *((n, n + 1) for n in range(2, 11))])
SIX = at(10, dict.fromkeys(range(6), 1.0)) + np.linspace(0.01, 0, 10)
FIRST = at(6, {0: 1.0})
AGAINST = np.array([-1.0, 0.0, -0.5, 0.0])
RAISED = at(8, {1: 3.0, 2: 2.0, 3: 0.1})


def three_are_enough(present: set[int]) -> float:
    return min(1.0, len(present) / 3)


def up_and_down(present: set[int]) -> float:
    return 4.0 * (1 in present) - 3.0 * (2 in present)


FOUND: dict[str, tuple[Graphs, Floats, Held, dict[str, Any], list[int]]] = {
    "a planted structure that counts as a whole": (TRIANGLE, PLANTED, all_of(3, 4, 5), {}, [3, 4, 5]),
    "a planted structure of shares": (TRIANGLE, PLANTED, each_of(3, 4, 5), {}, [3, 4, 5]),
    "what stands between": (path(9), at(9, {2: 1.0, 3: 0.01, 4: 0.9}), all_of(2, 4), {}, [2, 3, 4]),
    # either of two nodes is enough: without the first, the second still says it all
    "until the rest has lost what it held": (path(9), PAIR, any_of(1, 2), {}, [1, 2]),
    "nothing where any other node would do as well": (path(9), PAIR, any_of(*range(9)), {}, []),
    "the first part of a value that any node has": (path(9), PAIR, any_of(*range(9)), {"unit": 1.0}, [1]),
    "two groups far apart that are both needed": (path(20), FAR, all_of(1, 2, 17, 18), {}, [1, 2, 17, 18]),
    # a third of the nodes is not enough, but holds most of the contributions
    "two groups far apart that keep half": (path(20), FAR, some_of(0.5, 1, 2, 17, 18), {}, [1, 2, 17, 18]),
    "nothing where groups far apart keep less than half": (path(20), FAR, some_of(0.49, 1, 2, 17, 18), {}, []),
    "one group that keeps little of what it contributes": (path(9), PAIR, some_of(0.1, 1, 2), {}, [1, 2, 3]),
    "symmetric nodes": (path(7), MIRRORED, all_of(0), {}, [0, 6]),
    "symmetric pairs": (path(7), MIRRORED, all_of(0, 1), {}, [0, 1, 5, 6]),
    # what holds the evidence stands in two parts that no edge joins
    "a second component": (SALT, at(12, {0: 1.0, 1: 0.9, 2: 0.8, 3: 0.1}), all_of(0, 1, 2), {}, [0, 1, 2]),
    "nothing where half the nodes are not enough": (path(8), np.linspace(1.0, 0.3, 8), each_of(*range(8)), {}, []),
    "six of ten nodes if so many may be": (path(10), SIX, all_of(*range(6)), {"largest": 0.6}, [*range(6)]),
    # a class that stands for the lack of something: any part keeps the evidence, and none holds more than the rest
    "nothing where half is as good as the rest": (path(8), np.linspace(1.0, 0.7, 8), three_are_enough, {}, []),
    "nothing where the odds are not doubled": (path(6), FIRST, all_of(0), {"amount": 0.99 * LEAST_ODDS}, []),
    "a node that doubles the odds": (path(6), FIRST, all_of(0), {"amount": 1.01 * LEAST_ODDS}, [0]),
    "nothing where the evidence is against": (path(6), FIRST, all_of(0), {"amount": -5.0 * LEAST_ODDS}, []),
    "nothing where no node speaks for the class": (path(4), AGAINST, all_of(0), {"evidence": 0.85}, []),
    "nothing there though nothing is enough": (path(4), AGAINST, all_of(0), {"evidence": 0.0}, []),
    "what raised a value": (path(8), RAISED, each_of(1, 2), {"amount": 5.0, "unit": 1.0}, [1, 2]),
    "what lowered a value": (path(8), -RAISED, each_of(1, 2), {"amount": -5.0, "unit": 1.0}, [1, 2]),
    # up by 4 and down by 3: the value is above the base because of the first
    "what moved a value to its side of the base": (
        *(path(8), at(8, {1: 4.0, 2: -3.0, 3: 0.1}), up_and_down),
        *({"amount": 1.0, "base": 10.0, "unit": 0.5}, [1]),
    ),
    "nothing for a value of the empty graph": (path(8), at(8, {1: 0.1}), all_of(1), {"amount": 0.1, "unit": 1.0}, []),
}


@pytest.mark.parametrize("case", FOUND)
def test_the_part_is_the_one_that_holds_the_evidence(case: str) -> None:
    graphs, score, held, how, nodes = FOUND[case]
    chosen = {name: value for name, value in how.items() if name in ("largest", "evidence")}
    given = evidence(graphs, held, **{name: value for name, value in how.items() if name not in chosen})
    assert grown(graphs, score, given, ExplainConfig(**chosen)) == nodes
    assert log(2) == LEAST_ODDS


def test_every_graph_gets_its_own_part_and_one_without_nodes_none() -> None:
    graphs = Graphs.concat([path(8), Graphs.from_edges(node_counts=[0], edges=np.zeros((0, 2), np.int64)), path(8)])
    score = np.array([1.0, 0.9, 0.1, 0.2, 0, 0, 0, 0, *[0.0] * 4, 0.1, 0.2, 0.9, 1.0])

    def held(present: set[int]) -> float:
        return float({0, 1} <= present or {6, 7} <= present)  # the other pair would do, too: no class but a value

    assert grown(graphs, score, evidence(graphs, held, unit=1.0)) == [0, 1, 14, 15]


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
