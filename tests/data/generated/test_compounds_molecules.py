"""Generated compounds are real molecules, really distinct, with the critical structures they were built around."""

from collections import Counter
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.generated import CompoundsConfig, generate, read_compounds
from egocnn.data.generated.compounds import FamilyName
from egocnn.data.generated.families import build_tree, canonical_text
from egocnn.data.graphs import Graph, Graphs
from egocnn.errors import DataError
from lab.truths.isomers import mirror
from tests.data.generated.molecules import (
    atoms,
    canonical,
    configs,
    incident,
    is_tree,
    neighbours,
    size_of,
    truth,
    without,
)

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
        free = [VALENCE[letter] - d for d, letter in zip(degree, atoms(graph), strict=True)]
        assert set(free) == {0} if hydrogens else min(free) >= 0
        assert count["H"] == (2 * count["C"] + 2 if hydrogens else 0)
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


def test_small_sizes_give_all_alkanes_and_the_first_alcohol_of_a_size_is_the_straight_chain() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=1-8,per_size=100,hold_out=molecules")
    alkanes = Counter(size_of(graph) for graph in graphs if graph.target == "alkane")
    assert [alkanes[n] for n in range(1, 9)] == [1, 1, 1, 2, 3, 5, 9, 18]
    graphs = read_compounds("compounds:alcohols:sizes=3-20")
    straight = [graph.smiles for graph in graphs if graph.name.endswith("OH #1")]
    assert straight == ["C" * n + "O" for n in range(3, 21)]


def test_an_alcohol_stands_on_the_skeleton_of_the_alkane_with_its_number() -> None:
    graphs = read_compounds("compounds:alcohols:hydrogens=no")
    assert graphs.part is not None
    assert (graphs.part[::2] == graphs.part[1::2]).all()
    for alkane, alcohol in zip(graphs[::2], graphs[1::2], strict=True):
        assert canonical(without(alcohol, truth(alcohol)[0])) == canonical(alkane)


@settings(deadline=None, max_examples=25)
@given(configs(("alcohols",)))
def test_an_alcohol_is_its_oh_group_and_an_alkane_has_no_critical_structure(config: CompoundsConfig) -> None:
    for graph in generate(config):
        nodes, edges = truth(graph)
        if graph.target == "alkane":
            assert not nodes
            assert not edges
            continue
        oxygen = atoms(graph).index("O")
        around = neighbours(graph)[oxygen]
        assert nodes == {oxygen, *(n for n in around if atoms(graph)[n] == "H")}
        assert edges == incident(graph, {oxygen})
        assert len(edges) == (2 if config.settings.hydrogens else 1)


def methyls(graph: Graph) -> set[int]:
    """Critical carbons that hang on one other carbon alone."""
    around = neighbours(graph)
    critical = {n for n in truth(graph)[0] if atoms(graph)[n] == "C"}
    return {n for n in critical if sum(atoms(graph)[m] == "C" for m in around[n]) == 1}


def hydrogens_of(graph: Graph, nodes: set[int]) -> set[int]:
    around = neighbours(graph)
    return {m for n in nodes for m in around[n] if atoms(graph)[m] == "H"}


def carbons_without(graph: Graph, nodes: set[int]) -> Graph:
    return without(graph, nodes | {n for n, letter in enumerate(atoms(graph)) if letter == "H"})


def bare_chain(graph: Graph) -> str:
    length = 2 * size_of(graph) + 1 if graph.name.startswith("isomer") else size_of(graph)
    return canonical_text("C" * length, build_tree(length, pairwise(range(length))))


@settings(deadline=None, max_examples=25)
@given(configs(("isomers",)))
def test_a_symmetric_isomer_is_its_centre_and_all_its_methyls(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "symmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            (centre,) = nodes - groups - hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            assert canonical(carbons_without(graph, groups)) == bare_chain(graph)
            assert len(neighbours(graph)[centre]) == (4 if config.settings.hydrogens else 3)
            assert mirror(graph)[centre] == centre
            assert set(mirror(graph)[list(nodes)].tolist()) == nodes


@settings(deadline=None, max_examples=8)
@given(configs(("isomers",)))
def test_an_asymmetric_isomer_is_the_two_methyls_without_which_it_would_be_symmetric(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "asymmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            assert len(groups) == 2
            assert nodes == groups | hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            mirror(carbons_without(graph, groups))
            for one in groups:
                with pytest.raises(DataError, match="two arms differ"):
                    mirror(carbons_without(graph, {one}))


@settings(deadline=None, max_examples=25)
@given(configs(("methylalkanes",)))
def test_a_methylalkane_is_its_methyl_and_the_carbon_that_holds_it(config: CompoundsConfig) -> None:
    for graph in generate(config):
        nodes, edges = truth(graph)
        (methyl,) = methyls(graph)
        (holder,) = (n for n in neighbours(graph)[methyl] if atoms(graph)[n] == "C")
        assert nodes == {methyl, holder} | hydrogens_of(graph, {methyl})
        assert edges == incident(graph, {methyl})
        assert canonical(carbons_without(graph, {methyl})) == bare_chain(graph)
        if graph.target == "symmetric":
            assert mirror(graph)[holder] == holder
        else:
            with pytest.raises(DataError, match="two arms differ"):
                mirror(graph)
