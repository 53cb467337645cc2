"""Generated compounds are real molecules, and really distinct."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.generated import CompoundsConfig, generate, read_compounds
from egocnn.data.generated.compounds_config import FamilyName
from egocnn.data.generated.trees import build_tree, canonical_text
from egocnn.data.graphs import Graph, Graphs
from tests.data.generated.molecules import atoms, canonical, configs, is_tree, neighbours, size_of, truth, without

VALENCE = {"C": 4, "O": 2, "H": 1}


@pytest.fixture(scope="module", params=get_args(FamilyName))
def default_family(request: pytest.FixtureRequest) -> Graphs:
    return read_compounds(f"compounds:{request.param}")


def rdkit_smiles(graph: Graph) -> str:
    from rdkit import Chem

    molecule = Chem.RWMol()
    for letter in atoms(graph):
        molecule.AddAtom(Chem.Atom(letter))
    for u, v in graph.edges:
        molecule.AddBond(int(u), int(v), Chem.BondType.SINGLE)
    Chem.SanitizeMol(molecule)
    return str(Chem.MolToSmiles(Chem.RemoveHs(molecule)))


@settings(deadline=None, max_examples=40)
@given(configs())
def test_every_graph_is_a_tree_of_atoms_with_the_right_valence_and_formula(config: CompoundsConfig) -> None:
    hydrogens = config.settings.hydrogens
    for graph in generate(config):
        assert is_tree(graph)
        assert set(graph.edge_label or ()) <= {"single"}
        degree = [len(around) for around in neighbours(graph)]
        count = Counter(atoms(graph))
        if hydrogens:
            assert all(d == VALENCE[letter] for d, letter in zip(degree, atoms(graph), strict=True))
            assert count["H"] == 2 * count["C"] + 2
        else:
            assert all(d <= VALENCE[letter] for d, letter in zip(degree, atoms(graph), strict=True))
            assert count["H"] == 0
        assert count["O"] == (1 if graph.target == "alcohol" else 0)
        if config.family == "alcohols":
            n = count["C"]
            formula = f"C{n if n > 1 else ''}H" + (f"{2 * n + 1}OH" if count["O"] else f"{2 * n + 2}")
            assert graph.name.split(" ")[0] == formula


@settings(deadline=None, max_examples=15)
@given(configs())
def test_rdkit_reads_the_smiles_as_the_molecule_of_the_graph(config: CompoundsConfig) -> None:
    chem = pytest.importorskip("rdkit.Chem", exc_type=ImportError)
    for graph in generate(config):
        assert chem.CanonSmiles(graph.smiles) == rdkit_smiles(graph)


def test_rdkit_finds_all_molecules_of_a_family_valid_and_distinct(default_family: Graphs) -> None:
    chem = pytest.importorskip("rdkit.Chem", exc_type=ImportError)
    assert default_family.smiles is not None
    assert len({chem.CanonSmiles(smiles) for smiles in default_family.smiles}) == len(default_family)
    for graph in default_family[::20]:
        assert chem.CanonSmiles(graph.smiles) == rdkit_smiles(graph)


def test_no_two_molecules_of_a_family_are_isomorphic_and_no_two_names_alike(default_family: Graphs) -> None:
    assert len({canonical(graph) for graph in default_family}) == len(default_family)
    assert len(set(default_family.names)) == len(default_family)


@given(st.data(), st.integers(1, 25))
@settings(deadline=None, max_examples=50)
def test_the_canonical_text_of_a_tree_does_not_depend_on_its_numbering(data: st.DataObject, n: int) -> None:
    bonds = [(data.draw(st.integers(0, node - 1)), node) for node in range(1, n)]
    labels = data.draw(st.text("CO", min_size=n, max_size=n))
    place = data.draw(st.permutations(range(n)))
    moved_labels = "".join(labels[place.index(node)] for node in range(n))
    moved = build_tree(n, [(place[v], place[u]) for u, v in reversed(bonds)])
    assert canonical_text(labels, build_tree(n, bonds)) == canonical_text(moved_labels, moved)


def test_small_sizes_give_all_the_alkanes_that_exist() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=1-8,per_size=100,hold_out=molecules")
    alkanes = Counter(size_of(graph) for graph in graphs if graph.target == "alkane")
    assert [alkanes[n] for n in range(1, 9)] == [1, 1, 1, 2, 3, 5, 9, 18]


def test_the_first_alcohol_of_a_size_is_the_straight_chain_with_the_group_at_its_end() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=3-20")
    straight = [graph.smiles for graph in graphs if graph.name.endswith("OH #1")]
    assert straight == ["C" * n + "O" for n in range(3, 21)]


def test_an_alcohol_stands_on_the_skeleton_of_the_alkane_with_its_number() -> None:
    graphs = read_compounds("compounds:alcohols:hydrogens=no")
    assert graphs.part is not None
    for (alkane, alcohol), (one, other) in zip(
        list(pairwise(graphs))[::2], list(pairwise(graphs.part))[::2], strict=True
    ):
        assert canonical(without(alcohol, truth(alcohol)[0])) == canonical(alkane)
        assert one == other
