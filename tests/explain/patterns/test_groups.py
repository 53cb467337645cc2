"""Names of functional groups, and molecules made from graphs whose labels are numbers."""

from collections import Counter

import numpy as np
import pytest

from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule
from egocnn.explain.patterns.labelled import Labelled
from egocnn.explain.patterns.names import groups_of, name_atoms_of, queries, to_smarts, to_smiles

pytest.importorskip("rdkit")


def graph(labels: list[str], edges: list[tuple[int, int, str]], smiles: str | None = None) -> Graph:
    return Graph(
        name="made by hand",
        n_nodes=len(labels),
        edges=np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2),
        node_label=tuple(labels),
        edge_label=tuple(edge[2] for edge in edges),
        smiles=smiles,
        **dict.fromkeys(("edge_weight", "node_attr", "target", "node_truth", "edge_truth")),
    )


@pytest.mark.parametrize(
    ("smiles", "fragment", "name"),
    [
        ("CC[N+](=O)[O-]", "[N+](=O)[O-]", "nitro group"),
        ("c1ccccc1[N+](=O)[O-]", "c[N+](=O)[O-]", "nitro group on an aromatic ring"),
        ("c1ccccc1[N+](=O)[O-]", "c1ccccc1[N+](=O)[O-]", "nitro group on a benzene ring"),
        ("CCO", "[OH]", "OH group (hydroxyl)"),
        ("c1ccccc1CO", "cC[OH]", "OH group (hydroxyl) near an aromatic ring"),
        ("c1ccccc1N", "[NH2]", "NH2 group (primary amine)"),
        ("CC(=O)N", "[NH2]", "NH2 group"),
        ("CNC", "[NH]", "NH group (secondary amine)"),
        ("CN(C)C", "N(C)(C)C", "tertiary amine"),
        ("CCC(=O)O", "C(=O)[OH]", "carboxylic acid group"),
        ("CCC(=O)OC", "C(=O)O", "ester group"),
        ("CCC(=O)NC", "C(=O)N", "amide group"),
        ("CCC=O", "C=O", "aldehyde group"),
        ("CCC(=O)CC", "CC(=O)C", "ketone group"),
        ("CCOCC", "COC", "ether group"),
        ("CCSCC", "CSC", "thioether group"),
        ("CCS", "[SH]", "thiol group"),
        ("CCC#N", "C#N", "nitrile group"),
        ("CC1CO1", "C1CO1", "epoxide"),
        ("CS(=O)(=O)NC", "S(=O)(=O)N", "sulfonamide group"),
        ("CS(=O)(=O)C", "S(=O)=O", "sulfonyl group"),
        ("CN=[N+]=[N-]", "N=[N+]=[N-]", "azide group"),
        ("c1ccccc1N=Nc1ccccc1", "N=N", "azo group"),
        ("CN(C)N=O", "NN=O", "N-nitroso group"),
        ("c1ccccc1N=O", "N=O", "nitroso group"),
        ("COP(=O)(O)O", "P(=O)(O)(O)O", "phosphate group"),
        ("Clc1ccccc1Cl", "c(Cl)c(Cl)", "two chlorines on an aromatic ring"),
        ("CCCC", "CCC", "chain of three carbons"),
        ("CC(C)C", "CC(C)C", "branched chain of four carbons"),
        ("c1ccccc1", "ccc", "three aromatic carbons"),
        ("c1ccc2ccccc2c1", "cc(c)c", "four aromatic carbons of fused rings"),
        ("c1ccccc1-c1ccccc1", "cc-c", "three aromatic carbons of joined rings"),
        ("Cc1ccccc1", "Cc1ccccc1", "methyl group on a benzene ring"),
    ],
)
def test_groups_go_by_the_names_chemists_use(smiles: str, fragment: str, name: str) -> None:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)
    atoms = molecule.GetSubstructMatch(Chem.MolFromSmarts(fragment))
    assert atoms
    assert name_atoms_of(molecule, atoms) == name


@pytest.mark.parametrize("bonds", [("double", "double"), ("double", "single"), ("single", "double")])
def test_a_nitro_group_is_one_however_its_bonds_were_written(bonds: tuple[str, str]) -> None:
    from rdkit import Chem

    edges = [(0, 1, "single"), (1, 2, bonds[0]), (1, 3, bonds[1]), *((0, n, "single") for n in (4, 5, 6))]
    molecule = to_molecule(graph(["C", "N", "O", "O", "H", "H", "H"], edges))
    assert Chem.MolToSmiles(Chem.RemoveHs(molecule)) == "C[N+](=O)[O-]"
    assert name_atoms_of(molecule, [1, 2, 3]) == "nitro group"


def test_numbers_are_no_atoms_and_an_ether_is_no_hydroxyl() -> None:
    assert to_molecule(graph(["0", "2"], [(0, 1, "0")])) is None
    # the generated compounds number their nodes at random
    ethanol = graph(["O", "C", "C"], [(0, 1, "single"), (1, 2, "single")], smiles="CCO")
    molecule = to_molecule(ethanol)
    assert molecule is not None
    assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == ["O", "C", "C"]
    assert to_smiles(Labelled.from_edges(["C", "O"], [(0, 1, "single")])) == "C[O]"
    assert to_smiles(Labelled.from_edges(["OH", "C"], [(0, 1, "single")])) == "CO"
    tables = {table: queries(table) for table in ("ring", "group", "plain")}
    assert {table: len(rows) for table, rows in tables.items()} == {"ring": 18, "group": 59, "plain": 14}
    assert all(query is not None for rows in tables.values() for _, query in rows)


def test_the_smarts_of_a_fragment_matches_where_the_fragment_is_and_nowhere_else() -> None:
    from rdkit import Chem

    hydroxyl = Chem.MolFromSmarts(to_smarts(Labelled.from_edges(["c", "OH"], [(0, 1, "single")])))
    assert Chem.MolFromSmiles("Oc1ccccc1").HasSubstructMatch(hydroxyl)
    assert not Chem.MolFromSmiles("COc1ccccc1").HasSubstructMatch(hydroxyl)
    assert not Chem.MolFromSmiles("OCc1ccccc1").HasSubstructMatch(hydroxyl)


@pytest.mark.parametrize(
    ("smiles", "groups"),
    [
        ("CC(=O)OC", {"ester group": 1}),  # whose carbonyl is no group of its own
        ("CC(=O)CC(=O)C", {"ketone group": 2}),  # they share a carbon
        ("C1OCc2ccccc2O1", {"benzene ring": 1, "ether group": 2}),
        ("c1ccc2ccccc2c1", {"naphthalene ring system": 1}),
        ("CCC", {}),
    ],
)
def test_the_groups_of_a_molecule_are_all_that_are_no_parts_of_others(smiles: str, groups: dict[str, int]) -> None:
    from rdkit import Chem

    assert Counter(name for name, _ in groups_of(Chem.MolFromSmiles(smiles)) if name != "methyl group") == groups
