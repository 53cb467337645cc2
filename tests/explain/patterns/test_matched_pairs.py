"""Pairs that differ by one group, what any two molecules share, and what many pairs say together."""

from dataclasses import replace

import numpy as np
import pytest

from egocnn.data.graphs import Graph
from egocnn.data.read import read
from egocnn.data.sources.smiles import from_smiles
from egocnn.errors import DataError
from egocnn.explain.patterns import compare as comparing
from egocnn.explain.patterns.compare import (
    Comparison,
    MatchedPair,
    changed_atoms,
    cliffs,
    common_part,
    compare,
    find_pairs,
    summary_of,
    transformations_of,
)
from egocnn.explain.structure import CriticalStructure
from tests.explain.patterns.made_up_structures import structure

pytest.importorskip("rdkit")
CHLORIDE, ETHER, BARE = "Clc1ccc(CCN)cc1", "NCCc1ccc(OC)cc1", "c1ccc(CCN)cc1"


def pair_of(*smiles: str, hydrogens: bool = False) -> tuple[MatchedPair, list[Graph]]:
    graphs = list(read(list(smiles), hydrogens=hydrogens))
    (found,) = find_pairs(read(list(smiles), hydrogens=hydrogens))
    return found, [graphs[found.first], graphs[found.second]]


def test_a_pair_differs_by_the_smallest_group_whatever_the_order_of_its_atoms() -> None:
    pair, graphs = pair_of(ETHER, CHLORIDE)
    assert pair.transformation == "CO[*:1]>>Cl[*:1]"
    changed = [changed_atoms(graph, atoms).tolist() for graph, atoms in zip(graphs, pair.common.T, strict=True)]
    assert changed == [[7, 8], [0]]
    for one, other in pair.common.tolist():  # what is called the same is the same
        assert (graphs[0].node_label or ())[one] == (graphs[1].node_label or ())[other]


def test_hydrogen_is_a_group_of_no_atoms_and_the_first_of_every_transformation() -> None:
    pair, graphs = pair_of(CHLORIDE, BARE)
    assert pair.transformation == "[H][*:1]>>Cl[*:1]"
    assert [graph.smiles for graph in graphs] == [BARE, CHLORIDE]
    assert changed_atoms(graphs[0], pair.common[:, 0]).tolist() == []
    assert changed_atoms(graphs[1], pair.common[:, 1]).tolist() == [0]


def test_where_hydrogens_are_atoms_they_change_with_those_that_hold_them() -> None:
    pair, graphs = pair_of("c1ccccc1CCl", "c1ccccc1CN", hydrogens=True)
    labels = graphs[0].node_label or ()
    changed = [labels[node].partition("|")[0] for node in changed_atoms(graphs[0], pair.common[:, 0])]
    assert sorted(changed) == (["H", "H", "N"] if pair.transformation.startswith("N") else ["Cl"])


def test_copies_large_groups_and_salts_make_no_pairs_and_what_is_left_out_is_said() -> None:
    said: list[str] = []
    smiles = [CHLORIDE, CHLORIDE, "Clc1ccc(CCNCCCCCCCCCCCCCCCC)cc1", "Brc1ccc(CCN)cc1.Cl"]
    assert find_pairs(read(smiles), say=said.append) == []
    assert said == ["1 molecules are of several pieces or have more than 100 bonds to cut: not in pairs"]


def test_a_constant_part_with_many_groups_is_capped_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MOST_PAIRS", 3)
    said: list[str] = []
    found = find_pairs(read([f"c1ccccc1{group}" for group in ("F", "Cl", "Br", "O", "N")]), say=said.append)
    assert len(found) == 3
    assert said == ["1 constant parts have more than 3 pairs; of each the first 3 count"]


def test_any_two_molecules_have_a_largest_common_part_and_the_rest_is_what_changed() -> None:
    first, second = read(["OC(=O)c1ccc(Cl)cc1", "OC(=O)c1ccc(C2CC2)c(F)c1"])
    pair = common_part(first, second)
    assert pair.transformation == "*Cl>>*C1CC1.*F"
    assert len(pair.common) == 9
    assert common_part(first, first).transformation == ""
    with pytest.raises(DataError, match="only molecules are compared"):
        common_part(first, replace(first, smiles=None))


def made(smiles: str, value: float, contributions: dict[int, float]) -> CriticalStructure:
    (graph,) = from_smiles([smiles], targets=[value])
    found = replace(structure(graph, [], value, None), output=value - 0.5)
    importance = np.full(graph.n_nodes, 0.1)
    importance[list(contributions)] = list(contributions.values())
    return replace(found, node_importance=importance)


def test_a_comparison_says_what_changed_what_was_predicted_and_how_the_changed_atoms_rank() -> None:
    found = compare(made(CHLORIDE, 3.0, {0: -2.0}), made(ETHER, 1.0, {7: 1.0, 8: 0.0}))
    assert found.transformation == "*Cl>>*OC"
    assert (found.predicted, found.true_change, found.contributions) == ((2.5, 0.5), -2.0, (-2.0, 1.0))
    of_class = replace(found, first=replace(found.first, explained="1"))
    assert "predicted: probability of class 1 2.5 to 0.5" in str(of_class)
    assert found.ranks == (1.0, 0.5)  # by size whatever the sign; one of two methoxy atoms first, the other last
    assert "predicted: 2.5 to 0.5 (-2)" in str(found)
    assert "they exceed 100% and 50% of the other atoms" in str(found)
    assert found._repr_html_().count("<svg") == 2
    assert [one.critical_nodes.tolist() for one in found.outlined] == [[0], [7, 8]]
    assert all(one.draw(size=(400, 300)) in found._repr_html_() for one in found.outlined)
    assert found.to_plain()["contribution_change"] == 3.0


def several() -> list[Comparison]:
    pairs = [(CHLORIDE, ETHER, change) for change in (0.0, 0.1, -0.1, 0.1, -0.1, 5.0)]
    return [compare(made(a, 1.0, {0: 1.0}), made(b, 1.0 + change, {})) for a, b, change in pairs]


def test_cliffs_are_changes_beyond_twice_the_spread_or_another_class() -> None:
    found = several()
    assert [one.true_change for one in cliffs(found)] == [5.0]
    summary = summary_of(found)
    assert (summary["pairs"], summary["cliffs"]) == (6, 1)
    assert summary["correlation"] == pytest.approx(1.0)
    (row,) = transformations_of(found)
    assert (row["transformation"], row["pairs"]) == ("*Cl>>*OC", 6)
    assert row["mean_true_change"] == pytest.approx(5 / 6)
    a, b = (structure(graph, [0], str(graph.target), "yes") for graph in from_smiles([CHLORIDE, ETHER], ["yes", "no"]))
    other = compare(a, b)
    assert (cliffs([other]), other.true_change) == ([other], -1.0)
    assert cliffs([compare(a, a)]) == []
    assert summary_of([])["rank_in_cliffs"] is None
