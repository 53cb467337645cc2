import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.sources.columns import describe_columns
from egocnn.data.sources.smiles import from_smiles
from egocnn.encode.colours import looks
from egocnn.study.describe import describe
from tests.support.invariance import relabel
from tests.support.samples import cycle, molecules, one_graph
from tests.support.strategies import random_graphs
from tests.support.tiny import alcohols, oxygens


def problems(graphs: Graphs) -> list[str]:
    found: list[str] = describe([graphs])["problems"]
    return found


def pair(one: Graphs, other: Graphs, classes: tuple[int, int] = (0, 1)) -> Graphs:
    return Graphs.concat([one, other]).replace(target=np.array(classes), class_names=("no", "yes"))


def path(length: int) -> list[tuple[int, int]]:
    return [(node, node + 1) for node in range(length - 1)]


def test_counts_are_those_of_the_collection_edges_undirected_a_loop_once_and_values_no_classes() -> None:
    facts = describe([molecules()])
    promised = {"graphs": 3, "classes": 2, "avg_nodes": 8 / 3, "avg_edges": 2.0, "max_nodes": 4}
    promised |= {"node_labels": 3, "edge_labels": 2, "node_attributes": 2}
    assert facts.items() >= promised.items()
    assert facts["parts"] == {"train": 1, "validation": 1, "test": 1}
    assert facts["class_counts"] == {"no": 1, "yes": 1}
    assert facts["edge_weights"] is True
    assert facts["max_degree"] == 2
    facts = describe([Graphs.from_edges(node_counts=[1, 0], edges=np.zeros((0, 2), int))])
    assert (facts["classes"], facts["target"], facts["class_counts"], facts["parts"]) == (0, None, {}, {})
    assert (facts["avg_edges"], facts["max_degree"], facts["node_attributes"]) == (0, 0, 0)
    assert facts["problems"] == [
        "1 isolated nodes in 1 graphs; no neighbour tells about them",
        "no target: good for prediction only",
    ]
    salts = problems(from_smiles(["[Na+].[Cl-]", "O.CCO"]))
    assert salts[0] == "3 atoms without a bond in 2 molecules; no neighbour tells about them"
    facts = describe([oxygens()])
    assert (facts["target"], facts["classes"], facts["class_counts"]) == ("value", 0, {})
    assert oxygens().target is not None
    gap = oxygens().replace(target=np.where(np.arange(len(oxygens())) < 3, np.nan, 1.0))
    assert "3 graphs have no target value" in problems(gap)


@given(random_graphs())
def test_every_record_can_be_written_as_json(graphs: Graphs) -> None:
    facts = describe([graphs])
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["avg_nodes"] * len(graphs) == pytest.approx(sum(graph.n_nodes for graph in graphs))
    assert facts["avg_edges"] * len(graphs) == pytest.approx(sum(len(graph.edges) for graph in graphs))


def test_problems_with_classes_and_loops_are_named() -> None:
    chains = Graphs.concat([one_graph(n, path(n)) for n in range(2, 24)])
    several: list[tuple[list[int], tuple[str, ...], str]] = [
        ([0] * 21 + [1], ("a", "b"), "far from equal in size; accuracy misleads, consider --class-weights"),
        ([0] * 22, ("a",), "one class only: there is nothing to tell apart"),
        ([-1] * 2 + [0, 1] * 10, ("a", "b"), "2 graphs have no class"),
    ]
    for target, names, wanted in several:
        (found,) = problems(chains.replace(target=np.array(target), class_names=names))
        assert wanted in found
    assert problems(chains.replace(target=np.arange(22) % 2, class_names=("a", "b"))) == []
    loops = "1 self-loops; they are read as adjacency of a node to itself, never as neighbours"
    assert problems(pair(one_graph(2, [(0, 1), (0, 0)]), one_graph(3, path(3)))) == [loops]


# ── twins ─────────────────────────────────────────────────────────────────────────────────────────


@given(random_graphs(), st.integers(0, 5))
def test_graphs_look_the_same_however_their_nodes_are_numbered_and_whatever_else_there_is(
    graphs: Graphs, seed: int
) -> None:
    relabelled, _ = relabel(graphs, seed)
    np.testing.assert_array_equal(looks(graphs), looks(relabelled))
    np.testing.assert_array_equal(looks(graphs)[-1:], looks(graphs[-1:]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"edges": path(4)}, {"edges": [(0, 1), (0, 2), (0, 3)]}),
        ({"edges": path(4), "node_label": [*"abab"]}, {"edges": path(4), "node_label": [*"abba"]}),
        ({"edges": path(4), "edge_weight": [1, 2, 3]}, {"edges": path(4), "edge_weight": [2, 1, 3]}),
        ({"edges": path(4), "node_attr": [[1], [2], [3], [4]]}, {"edges": path(4), "node_attr": [[2], [1], [3], [4]]}),
    ],
)
def test_graphs_that_differ_in_anything_the_model_reads_are_no_twins(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert problems(pair(one_graph(4, **one), one_graph(4, **other))) == []


def test_twins_and_their_disagreement_are_counted_and_differences_many_hops_away_make_none() -> None:
    # A chain of thirty with a side node at place 10, and with one at place 11.
    one, other = (one_graph(31, [*path(30), (at, 30)]) for at in (10, 11))
    assert problems(pair(one, other)) == []
    assert not [text for text in problems(read("compounds:alcohols:per_size=64")) if "twin" in text]
    assert problems(alcohols()) == []
    ring, two_rings = one_graph(6, cycle(*range(6))), one_graph(6, [*cycle(0, 1, 2), *cycle(3, 4, 5)])
    twins = "2 graphs have a twin that Weisfeiler-Lehman colours cannot tell from it"
    split = "; a random split can put twins on both sides"
    disagree = "1 such look-alikes have different classes: hardly any model gets all right"
    assert problems(pair(ring, two_rings)) == [twins + split, disagree]
    assert problems(pair(ring, ring).replace(group=np.array([0, 0]))) == [twins, disagree]
    alike = Graphs.concat([ring, ring, one_graph(2, path(2))]).replace(class_names=("no", "yes"))
    assert problems(alike.replace(target=np.array([0, 0, 1]))) == [twins + split]
    assert problems(alike.replace(target=np.array([0, -1, 1]))) == [twins + split, "1 graphs have no class"]


def test_mutag_is_described_as_published(data_folder: Path) -> None:
    from egocnn.data.sources.tu import read_tu

    facts = describe([read_tu(data_folder / "tu" / "MUTAG.zip", ReadConfig())])
    assert (facts["graphs"], facts["classes"], facts["max_nodes"]) == (188, 2, 28)
    assert (round(facts["avg_nodes"], 2), round(facts["avg_edges"], 2)) == (17.93, 19.79)
    assert (facts["node_labels"], facts["edge_labels"], facts["node_attributes"]) == (7, 4, 0)


@pytest.mark.parametrize(
    ("name", "values", "kind", "facts"),
    [
        ("Canonical_SMILES", ["CCO", "oops"], "SMILES", {}),
        ("Structure", ["CCO", "C"], "SMILES", {}),
        ("code", ["CC(=O)O", "c1ccccc1", None], "SMILES", {"missing": 1}),
        ("toxic", ["1", "0", "1", "NA"], "classes", {"counts": {"1": 2, "0": 1}, "missing": 1}),
        ("series", ["a", "b", "a"], "classes", {"counts": {"a": 2, "b": 1}}),
        ("logP", ["0", "-1.5", "2.25"], "values", {"least": -1.5, "most": 2.25}),
        ("logP", ["inf", "inf"], "texts", {"different": 1}),
        ("pick", [1.5, 2, None], "values", {"least": 1.5, "most": 2.0, "missing": 1}),
        ("mol_id", ["3", "1", "2.5"], "names", {"different": 3}),
        ("__index_level_0__", ["41", "7", "1126"], "names", {"different": 3}),
        ("Unnamed: 0", ["41", "7", "1126"], "names", {"different": 3}),
        ("comment", ["seen twice", "never"], "names", {"different": 2}),
        ("comment", [str(n % 60) + "x" for n in range(70)], "texts", {"different": 60}),
        ("fold", ["Train", "test", "VAL"], "split", {"counts": {"Train": 1, "test": 1, "VAL": 1}}),
        ("nothing", ["", "-", None], "empty", {"missing": 3}),
    ],
)
def test_a_column_is_told_by_its_name_and_by_what_it_holds(
    name: str, values: list[Any], kind: str, facts: dict[str, Any]
) -> None:
    pytest.importorskip("rdkit")
    found = describe_columns({name: value, "\0": "the molecule itself"} for value in values)
    assert list(found) == [name]
    assert found[name]["kind"] == kind
    assert found[name].items() >= ({"missing": 0} | facts).items()
