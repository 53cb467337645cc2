from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Floats
from egocnn.data.graphs import Graphs
from egocnn.explain import additive, explain
from egocnn.explain.additive import Views, blurred, contributions, handed_to_edges, integrated_gradients
from egocnn.explain.additive.cycles import LONGEST, MOST_EDGES, MOST_SEEN, Cycles
from egocnn.explain.structure import CriticalStructure
from egocnn.model import Model
from tests.explain.random_models import USUAL, assert_close, predictor_for, question_for
from tests.support.invariance import relabel
from tests.support.samples import cycle, one_graph
from tests.support.strategies import EDGE_NAMES, NODE_NAMES, random_connected, random_graphs, random_trees

NETWORKS = pytest.mark.parametrize("networks", [1, 3])
CLASSES = pytest.mark.parametrize("classes", [0, 2, 3], ids=["values", "2 classes", "3 classes"])
MODELS = pytest.mark.parametrize("changes", [{}, USUAL], ids=["plain", "usual"])
EMPTY = Graphs.from_edges(
    node_counts=[0],
    edges=np.zeros((0, 2), np.int64),
    node_label=np.zeros(0, np.int32),
    node_label_names=NODE_NAMES,
    edge_label=np.zeros(0, np.int32),
    edge_label_names=EDGE_NAMES,
)


def trees(classes: int) -> Graphs:
    target = np.arange(12) % classes if classes else np.linspace(-40.0, 90.0, 12)
    return random_trees(12, nodes=10, seed=2, target=target, class_names=tuple("abc"[:classes]))


def model_of(classes: int, networks: int, changes: dict[str, Any]) -> Model:
    return replace(predictor_for(trees(classes), networks=networks, **changes), temperature=0.6)


def explained(model: Model, graphs: Graphs, **settings: Any) -> list[CriticalStructure]:
    return explain(model, graphs, ExplainConfig(**settings), fidelity=False, device="cpu")


def size_of(structure: CriticalStructure) -> float:
    """What relative errors are relative to: contributions of both signs may cancel each other."""
    return float(np.abs(structure.node_importance).sum() + abs(structure.output) + abs(structure.base))


def totals(graphs: Graphs, values: Floats | Bools) -> Floats:
    return np.array([part.sum() for part in np.split(values, graphs.node_ptr[1:-1])])


# ── the sum ───────────────────────────────────────────────────────────────────────────────────────


@NETWORKS
@CLASSES
@MODELS
@pytest.mark.parametrize("steps", [1, 6])
def test_base_and_contributions_of_the_nodes_add_up_to_the_output(
    classes: int, networks: int, changes: dict[str, Any], steps: int
) -> None:
    model, graphs = model_of(classes, networks, changes), trees(classes)
    for structure in explained(model, graphs, steps=steps):
        assert abs(structure.output - structure.base) > 0
        off = structure.base + structure.node_importance.sum() - structure.output
        assert abs(off) <= 1e-9 * size_of(structure)


@settings(max_examples=40)
@given(graphs=random_graphs(classes=True), networks=st.sampled_from([1, 2]), usual=st.booleans())
def test_they_add_up_on_graphs_of_every_kind_and_over_the_edges_where_no_node_is_alone(
    graphs: Graphs, networks: int, usual: bool
) -> None:
    model = predictor_for(graphs, networks=networks, **(USUAL if usual else {}))
    for structure in explained(model, graphs):
        evidence, size = structure.output - structure.base, size_of(structure)
        assert abs(structure.node_importance.sum() - evidence) <= 1e-9 * size
        if len(np.unique(structure.graph.edges)) == structure.graph.n_nodes:
            assert abs(structure.edge_importance.sum() - evidence) <= 1e-9 * size


@NETWORKS
@CLASSES
@MODELS
def test_the_output_is_what_the_model_predicts_and_the_base_what_it_predicts_for_an_empty_graph(
    classes: int, networks: int, changes: dict[str, Any]
) -> None:
    model, graphs = model_of(classes, networks, changes), trees(classes)
    rows, nothing = model.predictions(graphs), model.predictions(EMPTY)[0]
    for row, structure in zip(rows, explained(model, graphs), strict=True):
        if classes:
            chosen = model.class_names.index(str(structure.explained))
            assert 1 / (1 + np.exp(-structure.output)) == pytest.approx(row[chosen], rel=1e-5)
            assert 1 / (1 + np.exp(-structure.base)) == pytest.approx(nothing[chosen], rel=1e-5)
        else:
            assert structure.output == pytest.approx(row, rel=1e-5, abs=1e-3)
            assert structure.base == pytest.approx(nothing, rel=1e-5, abs=1e-3)


def test_every_node_hands_its_contribution_to_its_edges_in_equal_parts() -> None:
    graphs = one_graph(5, [(0, 1), (0, 2), (0, 3), (3, 3)])  # the last node is alone
    found = handed_to_edges(graphs, np.array([6.0, 1.0, -2.0, 9.0, 5.0]))
    of_edge = dict(zip(map(tuple, graphs.edges.tolist()), found.tolist(), strict=True))
    assert of_edge == {(0, 1): 3.0, (0, 2): 0.0, (0, 3): 5.0, (3, 3): 6.0}


# ── how much, and where ───────────────────────────────────────────────────────────────────────────


@settings(max_examples=80)
@given(graphs=random_graphs(classes=False), seed=st.integers(0, 1000), exact=st.booleans())
def test_positive_and_negative_totals_are_those_of_the_integrated_gradients(
    graphs: Graphs, seed: int, exact: bool
) -> None:
    random = np.random.default_rng(seed)
    gradients, place = random.normal(size=(2, graphs.n_nodes))
    gap = np.zeros(len(graphs)) if exact else random.normal(size=len(graphs))
    found = contributions(graphs, gradients, place, totals(graphs, gradients) + gap)
    assert_close(totals(graphs, found), totals(graphs, gradients) + gap, tolerance=1e-12)
    of_both_signs = (totals(graphs, np.maximum(place, 0)) > 0) & (totals(graphs, np.maximum(-place, 0)) > 0)
    for sign in (1, -1):
        wanted = totals(graphs, np.maximum(sign * gradients, 0)) + np.maximum(sign * gap, 0)
        taken = totals(graphs, np.maximum(sign * found, 0))
        assert_close(taken[of_both_signs], wanted[of_both_signs], tolerance=1e-12)
    assert (found * place)[of_both_signs[graphs.graph_of]].min(initial=0) >= 0


@settings(max_examples=40)
@given(graphs=random_graphs(classes=False), seed=st.integers(0, 1000))
@pytest.mark.parametrize(("of_class", "weight"), [(True, 1.0), (False, 0.25)])
def test_views_count_by_their_shares_and_a_class_also_with_what_stands_around_and_on_cycles(
    of_class: bool, weight: float, graphs: Graphs, seed: int
) -> None:
    several = np.random.default_rng(seed).normal(size=(3, graphs.n_nodes)) * [[1.0], [1000.0], [0.001]]
    g, e, r = (view / totals(graphs, np.abs(view))[graphs.graph_of] for view in several)
    wanted = g + 0.5 * e + weight * r
    if of_class:
        wanted = Cycles.of(graphs).share(blurred(graphs, wanted, 0.25), 0.5)
    assert_close(Views(*several).together(graphs, of_class=of_class), wanted, tolerance=1e-12)


def test_nodes_on_cycles_take_a_share_of_their_mean_and_others_keep_their_own() -> None:
    fused = one_graph(
        7, [*cycle(0, 1, 2, 3), (2, 4), (4, 5), (5, 3), (5, 6)]
    )  # squares that share the edge 2-3, a leaf
    left, right = 6 / 4, 14 / 4
    both = 15 / 6  # the unit of the edge that they share
    found = Cycles.of(fused).share(np.arange(7.0), 0.5)
    own = np.array([(3 * left + both) / 4] * 2 + [(3 * left + 3 * right + both) / 7] * 2 + [(3 * right + both) / 4] * 2)
    assert found == pytest.approx([*(0.5 * np.arange(6) + 0.5 * own), 6.0])


def units_of(plain: nx.Graph) -> list[list[int]]:
    """One edge after the other, as the words say it."""
    core, wanted = nx.k_core(plain, 2), []
    for u, v in list(core.edges):
        u, v = sorted((u, v))
        core.remove_edge(u, v)
        ways = list(nx.all_shortest_paths(core, u, v)) if nx.has_path(core, u, v) else []
        seen = nx.single_source_shortest_path_length(core, u, len(ways[0]) - 2) if ways else {}
        if ways and len(ways[0]) <= LONGEST and len(seen) <= MOST_SEEN:
            wanted.append(sorted({node for way in ways for node in way}))
        core.add_edge(u, v)
    return wanted


def sketches(seed: int) -> Iterator[nx.Graph]:
    """Graphs with cycles of all lengths, dense ones, and trees, some with nodes that are alone."""
    size = 3 + seed % 12
    yield nx.cycle_graph(size)
    yield nx.disjoint_union(nx.gnm_random_graph(2 * size, 2 * size + seed % 7, seed=seed), nx.ladder_graph(seed % 5))
    yield nx.complete_bipartite_graph(1 + size % 4, 3)
    yield nx.random_labeled_tree(size, seed=seed)


@settings(max_examples=60)
@given(graphs=random_graphs(classes=False), seed=st.integers(0, 1000), at_once=st.sampled_from([1, 60, 1 << 22]))
def test_units_are_all_nodes_on_the_shortest_cycles_through_an_edge(graphs: Graphs, seed: int, at_once: int) -> None:
    drawn = [one_graph(len(each), [*each.edges]) for each in sketches(seed)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additive.cycles, "ENTRIES_AT_ONCE", at_once)
        for some in (graphs, Graphs.concat(drawn)):
            cycles, plain = Cycles.of(some), nx.Graph([(u, v) for u, v in some.edges.tolist() if u != v])
            found = [cycles.node[cycles.unit == unit].tolist() for unit in np.unique(cycles.unit)]
            assert sorted(found) == sorted(units_of(plain))


def test_no_cycle_is_found_around_an_edge_with_too_many_nodes_in_sight() -> None:
    fan = [(0, n) for n in range(1, MOST_SEEN + 40)] + [(n, n + 1) for n in range(1, MOST_SEEN + 39)]
    plain = nx.Graph(fan)  # from the hub it is too many, from its neighbours only the hub is in sight
    cycles = Cycles.of(one_graph(len(plain), fan))
    assert len(np.unique(cycles.unit)) == len(units_of(plain)) == MOST_SEEN + 38


def test_no_cycles_are_looked_for_in_very_large_graphs() -> None:
    wheel = one_graph(MOST_EDGES, cycle(*range(MOST_EDGES)) + [(0, n) for n in range(2, 4)])
    assert len(Cycles.of(wheel).node) == 0


def test_a_node_takes_a_share_of_the_mean_around_it_and_one_alone_keeps_its_own() -> None:
    graphs = one_graph(5, [(0, 1), (0, 2), (0, 3)])
    found = blurred(graphs, np.array([4.0, 1.0, 2.0, 3.0, 7.0]), 0.25)
    assert found == pytest.approx([0.75 * 4 + 0.25 * 2, 0.75 + 1, 1.5 + 1, 2.25 + 1, 7.0])


def test_where_no_node_speaks_against_it_what_does_lowers_all_others_alike() -> None:
    graphs = one_graph(3, cycle(0, 1, 2))
    found = contributions(graphs, np.array([3.0, -1.0, 2.0]), np.array([1.0, 1.0, 2.0]), np.array([4.0]))
    assert found == pytest.approx([1.0, 1.0, 2.0])
    assert contributions(graphs, -np.array([3.0, -1.0, 2.0]), -np.array([1.0, 1.0, 2.0]), np.array([-4.0])) == (
        pytest.approx([-1.0, -1.0, -2.0])
    )


@pytest.mark.parametrize("relevance", [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("gradients", [[0.0, 0.0, 0.0], [1.0, 2.0, 0.0], [-1.0, -1.0, -1.0]])
@pytest.mark.parametrize("difference", [0.0, 5.0, -5.0])
def test_the_sum_holds_also_where_one_side_has_no_place(
    gradients: list[float], relevance: list[float], difference: float
) -> None:
    graphs = one_graph(3, cycle(0, 1, 2))
    found = contributions(graphs, np.array(gradients), np.array(relevance), np.array([difference]))
    assert found.sum() == pytest.approx(difference, abs=1e-12)


@CLASSES
@pytest.mark.parametrize("changes", [{}, USUAL | {"readout": "log+max"}], ids=["plain", "usual without means"])
def test_the_integrated_gradients_add_up_to_output_less_base_the_better_the_more_points(
    classes: int, changes: dict[str, Any]
) -> None:
    """Without means, which jump where the last nodes go: they are as large for a trace of a graph as for all of it."""
    graphs = trees(classes)
    question = question_for(model_of(classes, 2, changes), graphs)
    nodes = torch.zeros(graphs.n_nodes, dtype=torch.float64)
    difference = (question.answer() - question.answer(nodes)).numpy()
    off = []
    for steps in (2, 120):
        found = integrated_gradients(question, steps, divided=False).numpy()
        off.append(float(np.abs(totals(graphs, found) - difference).max()))
    assert off[1] < 0.02 * np.abs(difference).max()
    assert off[1] < off[0]


@CLASSES
@pytest.mark.parametrize("networks", [1, 2, 3, 5])
def test_networks_that_divide_the_points_give_the_mean_of_what_each_gives_at_its_own(
    classes: int, networks: int
) -> None:
    graphs = trees(classes)
    question = question_for(model_of(classes, networks, {}), graphs)
    points, weights = np.polynomial.legendre.leggauss(3)
    wanted = np.zeros(graphs.n_nodes)
    for number, asked in enumerate({1: "000", 2: "010", 3: "012", 5: ("03", "14", "2")}[networks]):
        own = replace(question, networks=[question.networks[int(each)] for each in asked])
        presence = torch.full((graphs.n_nodes,), (points[number] + 1) / 2, dtype=torch.float64)
        wanted += weights[number] / 2 * own.slope(presence).numpy()
    found = integrated_gradients(question, 3, divided=True).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@MODELS
@pytest.mark.parametrize("classes", [0, 3])
def test_the_slope_is_what_a_little_more_of_a_node_adds(classes: int, changes: dict[str, Any]) -> None:
    graphs = trees(classes)[:2]
    question, step = question_for(model_of(classes, 3, changes), graphs), 1e-6
    presence = torch.linspace(0.3, 0.9, graphs.n_nodes, dtype=torch.float64)
    slope = question.slope(presence).numpy()
    assert np.abs(slope).max() > 0
    for node in range(graphs.n_nodes):
        little = step * torch.nn.functional.one_hot(torch.tensor(node), graphs.n_nodes)
        above, below = (float(question.answer(presence + sign * little).sum()) for sign in (1, -1))
        assert slope[node] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-4 * np.abs(slope).max())


# ── what must not matter ──────────────────────────────────────────────────────────────────────────


@NETWORKS
@CLASSES
def test_renumbering_a_graph_permutes_its_contributions(classes: int, networks: int) -> None:
    target = np.arange(12) % classes if classes else np.linspace(-40.0, 90.0, 12)
    names = tuple("abc"[:classes])
    for seed in range(3):
        graphs = random_connected(12, nodes=9, extra=seed, seed=seed, target=target, class_names=names)
        model = predictor_for(graphs, networks=networks, seed=seed, **USUAL)
        relabelled, new = relabel(graphs, seed)
        for g, (one, other) in enumerate(zip(explained(model, graphs), explained(model, relabelled), strict=True)):
            inner = new[graphs.node_ptr[g] : graphs.node_ptr[g + 1]] - graphs.node_ptr[g]
            off = np.abs(other.node_importance[inner] - one.node_importance).max()
            assert off <= 1e-3 * np.abs(one.node_importance).max()
            assert other.base == pytest.approx(one.base, abs=1e-4 * size_of(one))
            assert other.output == pytest.approx(one.output, abs=1e-4 * size_of(one))
