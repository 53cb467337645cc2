"""Patterns found in structures whose truth is known."""

import math
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import egocnn
from egocnn.errors import DataError
from egocnn.explain.patterns import Pattern, find_patterns
from egocnn.explain.structure import CriticalStructure
from tests.explain.patterns.made_up_structures import labelled, molecules, some_nodes, structure

pytest.importorskip("rdkit")

CHAINS = ["C" * n for n in range(2, 14)]


def of_class(patterns: list[Pattern], name: str) -> list[Pattern]:
    return [pattern for pattern in patterns if pattern.class_name == name]


def nitro_and_chains() -> list[CriticalStructure]:
    """Nitro groups, critical with one carbon more in some molecules, two in others; chains without."""
    alone = molecules([f"{'C' * n}[N+](=O)[O-]" for n in range(1, 7)], "[N+](=O)[O-]", "toxic")
    wider = molecules([f"{'C' * n}Oc1ccc([N+](=O)[O-])cc1" for n in range(1, 7)], "cc[N+](=O)[O-]", "toxic")
    return [*alone, *wider, *molecules(CHAINS, "CC", "harmless")]


def test_a_group_comes_out_though_more_around_it_was_critical_here_and_there() -> None:
    patterns = of_class(find_patterns(nitro_and_chains()), "toxic")
    first = patterns[0]
    assert first.name == "nitro group"
    assert first.smiles == "O=[N+][O-]"
    assert (first.critical, first.in_class, first.of_class, first.in_others, first.of_others) == (12, 12, 12, 0, 12)
    assert first.lift == 2.0
    assert first.p_value == pytest.approx(first.tests / math.comb(24, 12))  # one of all ways to draw 12 of 24
    assert first.is_significant
    assert str(first).startswith("nitro group: in 100% of class toxic, 0% of the others (lift 2.0, p < 1e-")
    assert [p.name for p in patterns].count("nitro group") == 1
    # what lies inside a pattern and tells no more is left out
    assert {"[N+]", "[O-]", "[N+]=O", "[N+][O-]", "c[N+](=O)[O-]"}.isdisjoint(p.smiles for p in patterns)


def test_a_pattern_knows_where_it_was_critical() -> None:
    structures = nitro_and_chains()
    critical = {s.graph.name: set(s.critical_nodes.tolist()) for s in structures}
    for pattern in find_patterns(structures):
        assert 1 <= len(pattern.examples) <= 5
        for example in pattern.examples:
            assert set(example.nodes) <= critical[example.graph.name]
            assert len(example.nodes) == pattern.graph.n_nodes


def test_hydroxyl_and_ether_oxygens_are_different_without_hydrogens_in_the_graph() -> None:
    alcohols = molecules([f"{'C' * n}O" for n in range(2, 14)], "[OH]", "alcohol")
    ethers = molecules([f"{'C' * n}OC" for n in range(2, 14)], "[OX2]", "ether")
    patterns = find_patterns([*alcohols, *ethers])
    assert [(p.class_name, p.name) for p in patterns] == [
        ("alcohol", "OH group (hydroxyl)"),
        ("ether", "oxygen atom"),
    ]
    assert [p.in_others for p in patterns] == [0, 0]


def test_structures_traced_for_another_class_than_the_predicted_add_their_graph_alone() -> None:
    structures = nitro_and_chains()
    turned = [replace(s, explained="harmless") if s.predicted == "toxic" else s for s in structures]
    patterns = find_patterns(turned)
    assert {p.class_name for p in patterns} == {"harmless"}
    assert patterns[0].of_others == 12


def test_a_graph_explained_twice_counts_once_order_does_not_matter_and_bounds_hold() -> None:
    once, twice = (find_patterns(nitro_and_chains() * times) for times in (1, 2))
    assert [dict(p.to_plain()) for p in once] == [dict(p.to_plain()) for p in twice]

    def counts(patterns: list[Pattern]) -> set[tuple[object, ...]]:
        return {(p.class_name, p.smiles, p.critical, p.in_class, p.in_others, p.p_value) for p in patterns}

    structures = nitro_and_chains()
    assert counts(find_patterns(structures)) == counts(find_patterns(structures[::-1]))
    patterns = find_patterns(nitro_and_chains(), min_support=6, most=2)
    assert patterns
    assert all(p.critical >= 6 for p in patterns)
    assert all(len(of_class(patterns, name)) <= 2 for name in ("toxic", "harmless"))


def test_shapes_of_graphs_without_labels_are_found_and_named() -> None:
    structures = []
    for n in range(10):
        ring = [(i, (i + 1) % (5 + n)) for i in range(5 + n)]
        chord = labelled([*ring, (0, 2)], [""] * (5 + n), "with", f"with {n}")
        plain = labelled(ring, [""] * (5 + n), "without", f"without {n}")
        structures += [structure(chord, [0, 1, 2], "with"), structure(plain, [0, 1, 2], "without")]
    patterns = find_patterns(structures)
    first = of_class(patterns, "with")[0]
    assert (first.name, first.in_class, first.in_others) == ("triangle", 10, 0)
    assert first.smiles is None
    assert not any(p.is_significant for p in of_class(patterns, "without"))


def test_a_search_that_is_given_up_counts_against_the_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    structures = []
    for n in range(10):
        ring = [(i, (i + 1) % 6) for i in range(6)]
        chord = labelled([*ring, (0, 2)], [""] * 6, "with", f"with {n}")
        plain = labelled([*ring, (0, 3)], [""] * 6, "without", f"without {n}")
        structures += [structure(chord, [0, 1, 2], "with"), structure(plain, [5], "without")]
    sure = of_class(find_patterns(structures), "with")[0]
    monkeypatch.setattr("egocnn.explain.patterns.labelled.MOST_STEPS", 3)
    unsure = of_class(find_patterns(structures), "with")[0]
    assert (sure.name, sure.in_others, sure.undecided) == ("triangle", 0, 0)
    assert (unsure.name, unsure.in_others, unsure.undecided) == ("triangle", 10, 10)
    assert unsure.p_value > sure.p_value
    assert "10 undecided graphs" in str(unsure)


def test_predicted_values_give_what_raises_and_what_lowers_them() -> None:
    structures = []
    for n in range(12):
        for label, value in (("up", 1.0), ("down", -1.0)):
            graph = replace(labelled([(0, 1), (1, 2)], ["x", label, "x"], "", f"{label} {n}"), target=value + 0.01 * n)
            one = structure(graph, [1], value, explained=None)
            structures.append(replace(one, node_importance=one.node_importance * np.float32(value)))
    patterns = find_patterns(structures)
    assert [(p.class_name, p.name) for p in patterns] == [
        ("lowers the value", "node down"),
        ("raises the value", "node up"),
    ]
    assert str(patterns[1]).startswith("node up: in 100% of the graphs above the median, 0% of the others")


def test_one_structure_of_a_value_can_hold_what_raises_and_what_lowers_it() -> None:
    structures = []
    for n in range(12):
        for up, down, value in ((True, False, 1.0), (False, True, -1.0), (True, True, 0.0)):
            labels = ["up" if up else "x", "x", "down" if down else "x"]
            graph = replace(labelled([(0, 1), (1, 2)], labels, "", f"{labels} {n}"), target=value + 0.001 * n)
            chosen = [node for node, label in enumerate(labels) if label != "x"]
            sign = np.array([1.0, 0.0, -1.0])
            structures.append(replace(structure(graph, chosen, value, explained=None), node_importance=sign))
    found = {p.class_name: p for p in find_patterns(structures) if p.is_significant}
    assert {name: p.name for name, p in found.items()} == {
        "lowers the value": "node down",
        "raises the value": "node up",
    }
    assert {p.critical for p in found.values()} == {p.of_predicted for p in found.values()} == {24}


def test_empty_structures_add_their_graphs_and_no_pattern() -> None:
    structures = nitro_and_chains()
    none = np.zeros(0, np.int64)
    hollow = [
        replace(s, critical_nodes=none, critical_edges=none) if s.predicted == "harmless" else s for s in structures
    ]
    patterns = find_patterns(hollow)
    assert {p.class_name for p in patterns} == {"toxic"}
    assert (patterns[0].name, patterns[0].of_others) == ("nitro group", 12)
    assert find_patterns([replace(s, critical_nodes=none, critical_edges=none) for s in structures]) == []
    values = [replace(s, explained=None, predicted=float(n)) for n, s in enumerate(structures)]
    assert find_patterns([replace(s, critical_nodes=none, critical_edges=none) for s in values]) == []


def test_what_cannot_be_answered_is_refused_in_one_line() -> None:
    structures = nitro_and_chains()
    with pytest.raises(DataError, match="no critical structures are given"):
        find_patterns([])
    with pytest.raises(DataError, match="at least 1, not 0 and 20"):
        find_patterns(structures, min_support=0)
    with pytest.raises(DataError, match="some explain values"):
        find_patterns([structures[0], replace(structures[1], explained=None, predicted=1.0)])


def test_the_hydroxyl_group_is_what_makes_an_alcohol() -> None:
    generator = np.random.default_rng(0)
    structures = []
    for graph in egocnn.read("compounds:alcohols")[:200]:
        known = [] if graph.node_truth is None else np.flatnonzero(graph.node_truth).tolist()
        structures.append(structure(graph, known or some_nodes(graph, 5, generator), str(graph.target)))
    patterns = find_patterns(structures)
    first = of_class(patterns, "alcohol")[0]
    assert first.name == "OH group (hydroxyl)"
    assert first.graph.node_label == ("O", "H")  # the hydrogen is a node of these graphs
    assert (first.share_in_class, first.share_in_others) == (1.0, 0.0)
    assert not any(p.is_significant for p in of_class(patterns, "alkane"))


def test_nitro_and_amino_groups_come_first_among_mutagens(data_folder: Path) -> None:
    archive = data_folder / "tu" / "Mutagenicity.zip"
    truth = data_folder / "explain" / "Mutagenicity_edge_gt.txt"
    if not archive.is_file() or not truth.is_file():
        pytest.skip(f"{data_folder} has no Mutagenicity with known structures")
    graphs = egocnn.read(archive)
    with ZipFile(archive) as opened:
        ends = np.array(opened.read("Mutagenicity/Mutagenicity_A.txt").replace(b",", b" ").split(), np.int64)
    is_critical = np.zeros(graphs.n_nodes, bool)
    is_critical[ends.reshape(-1, 2)[np.array(truth.read_bytes().split(), np.int64) == 1].ravel() - 1] = True
    generator = np.random.default_rng(0)
    structures = []
    for number in range(0, len(graphs), 8):
        graph = graphs[number]
        known = np.flatnonzero(is_critical[graphs.node_ptr[number] : graphs.node_ptr[number + 1]])
        is_known = graph.target == "0" and len(known) > 0
        nodes = known if is_known else some_nodes(graph, int(generator.integers(3, 12)), generator)
        structures.append(structure(graph, nodes, str(graph.target)))
    patterns = of_class(find_patterns(structures), "0")
    assert patterns[0].name == "nitro group"
    assert patterns[0].is_significant
    assert "NH2 group (primary amine)" in [p.name for p in patterns[:5]]
