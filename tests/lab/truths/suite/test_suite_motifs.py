"""Generated graphs: motifs are where the truth says, and published recipes are what was published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.truths.suite.catalogue import CATALOGUE
from lab.truths.suite.motifs.labelled import LABEL_TASKS
from lab.truths.suite.motifs.published import BASES, MOTIFS, make_ba_2motifs, make_spmotif, spmotif_base
from lab.truths.suite.motifs.shapes import CRANE, HOUSE, Shape, balanced_tree, cycle, grid, ladder, wheel
from lab.truths.suite.motifs.unlabelled import MOTIF_TASKS
from lab.truths.suite.motifs.values import MOTIF_VALUE_TASKS
from lab.truths.suite.task import Example, Sizes, SuiteTask

SIZES = Sizes(train=16, validation=4, test=4, larger=4)
NOWHERE = Path("no data needed")


def degrees(nodes: set[int], edges: list[tuple[int, int]]) -> list[int]:
    return sorted(sum(node in edge for edge in edges) for node in nodes)


def shape_of(example: Example) -> tuple[int, list[int]]:
    """Nodes of the truth, and how many critical edges end at each."""
    (nodes,) = example.alternatives
    assert example.critical_edges is not None
    return len(nodes), degrees(set(nodes), list(example.critical_edges))


def plain(shape: Shape) -> tuple[int, list[int]]:
    return shape.n_nodes, degrees(set(range(shape.n_nodes)), list(shape.edges))


@pytest.mark.parametrize("task", [*MOTIF_TASKS, *LABEL_TASKS, *MOTIF_VALUE_TASKS], ids=lambda task: task.name)
def test_every_graph_is_connected_simple_and_as_large_as_it_says(task: SuiteTask) -> None:
    examples = task.examples(SIZES, NOWHERE)
    assert len(examples) == SIZES.same_size + SIZES.larger
    for example in examples:
        assert len(set(example.edges)) == len(example.edges)
        assert all(0 <= u < v < example.n_nodes for u, v in example.edges)
        reached = {0}
        for _ in range(example.n_nodes):
            reached |= {end for edge in example.edges if reached & set(edge) for end in edge}
        assert len(reached) == example.n_nodes
        assert example.part == "test" or not example.larger
    usual, larger = ([e.n_nodes for e in examples if e.larger == which] for which in (False, True))
    assert np.mean(larger) > 1.8 * np.mean(usual)


@pytest.mark.parametrize(
    ("name", "target", "motif"),
    [
        ("house-against-grid", "house", HOUSE),
        ("house-against-grid", "grid", grid(3, 3)),
        ("ring-on-tree", "yes", cycle(6)),
        ("triangle-of-three", "yes", cycle(3)),
        ("alternating-ring", "yes", cycle(6)),
    ],
)
def test_the_truth_of_a_motif_is_its_nodes_and_its_edges(name: str, target: str, motif: Shape) -> None:
    examples = [e for e in CATALOGUE[name].examples(SIZES, NOWHERE) if e.target == target]
    assert examples
    assert all(shape_of(example) == plain(motif) for example in examples)


def test_two_houses_are_one_truth_and_one_house_alone_is_none() -> None:
    examples = CATALOGUE["two-houses"].examples(SIZES, NOWHERE)
    assert all(len(e.alternatives[0]) == 10 for e in examples if e.target == "yes")
    assert not any(e.alternatives for e in examples if e.target == "no")
    assert {e.nothing for e in examples if e.target == "no"} == {True, False}


def test_the_labels_of_a_rule_stand_on_the_motif() -> None:
    for example in CATALOGUE["chain-of-three"].examples(SIZES, NOWHERE):
        assert example.node_label is not None
        assert sorted(set(example.node_label) & set("XYZ")) == ["X", "Y", "Z"]
        middle = example.node_label.index("Y")
        ends = {example.node_label[u + v - middle] for u, v in example.edges if middle in (u, v)}
        assert ({"X", "Z"} <= ends) == (example.target == "yes")


def test_a_ring_alternates_only_where_it_is_said_to() -> None:
    for example in CATALOGUE["alternating-ring"].examples(SIZES, NOWHERE):
        if example.target == "yes":
            assert example.edge_label is not None
            kinds = dict(zip(example.edges, example.edge_label, strict=True))
            for node in example.alternatives[0]:
                own = [kinds[edge] for edge in example.critical_edges or () if node in edge]
                assert sorted(own) == ["double", "single"]


@pytest.mark.parametrize("task", MOTIF_VALUE_TASKS, ids=lambda task: task.name)
def test_values_of_nodes_add_up_to_the_value_of_the_graph(task: SuiteTask) -> None:
    for example in task.examples(SIZES, NOWHERE):
        assert example.values is not None
        assert example.target == pytest.approx(sum(example.values), abs=1e-2)


def test_ba_2motifs_has_a_thousand_graphs_of_25_nodes_and_edges_as_published() -> None:
    examples = [e for e in make_ba_2motifs(SIZES, np.random.default_rng(0), NOWHERE) if not e.larger]
    assert len(examples) == 1000
    assert {e.n_nodes for e in examples} == {25}
    assert np.mean([len(e.edges) for e in examples]) == 25.5  # 51 directed ones
    assert {(e.target, *plain(HOUSE if e.target == "house" else cycle(5))[:1]) for e in examples} == {
        ("house", 5),
        ("cycle", 5),
    }


@pytest.mark.parametrize("bias", [0.5, 0.9])
def test_spmotif_ties_motifs_to_bases_while_learning_and_not_in_the_test(bias: float) -> None:
    sizes = Sizes(train=600, validation=30, test=60, larger=0)
    examples = make_spmotif(bias)(sizes, np.random.default_rng(0), NOWHERE)
    learned = [e for e in examples if e.part == "train"]
    # a wheel has a hub of fourteen spokes or more; no other base has a node like it
    hubs = [max(degrees(set(range(e.n_nodes)), list(e.edges))) >= 12 for e in learned]
    cranes = [e.target == "crane" for e in learned]
    assert np.mean([hub for hub, crane in zip(hubs, cranes, strict=True) if crane]) == pytest.approx(bias, abs=0.1)
    assert np.mean([e.n_nodes for e in learned]) < 25 < np.mean([e.n_nodes for e in examples if e.part == "test"])
    for example in examples:
        assert shape_of(example) == plain(MOTIFS[str(example.target)])
        assert example.node_attr is not None
        assert {len(row) for row in example.node_attr} == {4}


def test_shapes_have_the_nodes_and_edges_of_their_names() -> None:
    sizes = {"ladder": ladder(4), "wheel": wheel(6), "tree": balanced_tree(3, 2), "crane": CRANE}
    assert {name: (shape.n_nodes, len(shape.edges)) for name, shape in sizes.items()} == {
        "ladder": (8, 10),
        "wheel": (6, 10),
        "tree": (13, 12),
        "crane": (5, 6),
    }
    assert all(spmotif_base(kind, np.random.default_rng(0), test=True).n_nodes >= 15 for kind in BASES)
