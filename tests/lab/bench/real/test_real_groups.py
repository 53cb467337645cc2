"""Functional groups on real data: which atoms they are, what they contribute, and which sign is expected."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from egocnn.data.graphs import Graph
from egocnn.data.read import read
from egocnn.errors import DataError
from egocnn.explain.structure import CriticalStructure
from lab.bench.real.groups import (
    EXPECTED,
    Expectation,
    GroupContribution,
    expectations,
    group_contributions,
    matched_atoms,
    patterns_of,
)
from tests.lab.bench.real.hand_made import structure

pytest.importorskip("rdkit")


def molecule(smiles: str, folder: Path) -> Graph:
    table = folder / "one.csv"
    table.write_text(f"smiles,y\n{smiles},1\n{smiles},2\n", encoding="utf-8")
    return read(table)[0]


def explained(smiles: str, contributions: Sequence[float], folder: Path) -> CriticalStructure:
    return structure(contributions, graph=molecule(smiles, folder), explained=None)


def row(group: str, smarts: str = "", sign: int = 1) -> Expectation:
    return Expectation(towards=None, group=group, smarts=smarts, sign=sign)


def test_a_group_sums_over_its_atoms_and_averages_over_the_molecules_that_have_it(tmp_path: Path) -> None:
    found = [
        explained("CCO", [10.0, 20.0, 0.5], tmp_path),
        explained("OCCO", [1.0, 20.0, 30.0, 2.0], tmp_path),
        explained("CCC", [5.0, 5.0, 5.0], tmp_path),
    ]
    (hydroxyl,) = group_contributions(found, [row("OH group (hydroxyl)", sign=-1)])
    assert (hydroxyl.molecules, hydroxyl.mean) == (2, (0.5 + 3.0) / 2)
    assert hydroxyl.is_as_expected is False


def test_an_atom_in_several_matches_counts_once(tmp_path: Path) -> None:
    chain = next(each for each in expectations("lipo") if each.group == "alkyl chain")
    (found,) = group_contributions([explained("CCCCC", [1.0, 2.0, 4.0, 8.0, 16.0], tmp_path)], [chain])
    assert found.mean == 31.0


def test_a_group_that_no_molecule_has_is_neither_as_expected_nor_against_it(tmp_path: Path) -> None:
    (found,) = group_contributions([explained("CCC", [1.0, 1.0, 1.0], tmp_path)], [row("iodine")])
    assert (found.molecules, found.mean, found.is_as_expected) == (0, None, None)


@pytest.mark.parametrize(
    ("mean", "expected", "is_so"), [(0.1, 1, True), (-0.1, -1, True), (0.1, -1, False), (0, 1, False)]
)
def test_a_contribution_is_as_expected_if_it_has_the_sign(mean: float, expected: int, is_so: bool) -> None:
    assert GroupContribution(group="F", expected=expected, molecules=1, mean=mean).is_as_expected is is_so


@pytest.mark.parametrize(
    ("name", "group", "smiles", "atoms"),
    [
        ("lipo", "carboxylic acid", "CC(=O)O", [1, 2, 3]),
        ("lipo", "carboxylic acid", "CC(=O)[O-]", [1, 2, 3]),
        ("lipo", "carboxylic acid", "CC(=O)OC", []),
        ("lipo", "OH of an alcohol or phenol", "OCc1ccc(O)cc1C(=O)O", [0, 6]),
        ("lipo", "sulfonyl group", "CS(=O)(=O)N", [1, 2, 3]),
        ("lipo", "aliphatic primary amine", "NCCc1ccccc1N", [0]),
        ("lipo", "aliphatic primary amine", "CC(=O)N", []),
        ("lipo", "aliphatic tertiary amine", "CN(C)CC", [1]),
        ("lipo", "aliphatic tertiary amine", "CN(C)c1ccccc1", []),
        ("bbbp", "quaternary nitrogen", "C[N+](C)(C)C", [1]),
        ("bbbp", "quaternary nitrogen", "C[n+]1ccccc1", [1]),
        ("bbbp", "quaternary nitrogen", "C[N+](C)(C)[O-]", []),
        ("bbbp", "quaternary nitrogen", "C[NH+](C)C", []),
        ("bbbp", "nitro group", "C[N+](=O)[O-]", [1, 2, 3]),
        ("bbbp", "benzene ring", "Cc1ccccc1", [1, 2, 3, 4, 5, 6]),
        ("bbbp", "benzene ring", "C1CCCCC1", []),
        ("esol", "amine", "Nc1ccccc1", [0]),
        ("esol", "amine", "CNC(C)=O", []),
        ("esol", "alkyl chain", "CCCCO", [0, 1, 2]),
        ("esol", "alkyl chain", "C1CCCCC1", []),
        ("esol", "chlorine", "ClC(Cl)C", [0, 2]),
    ],
)
def test_the_patterns_mean_what_their_names_say(name: str, group: str, smiles: str, atoms: list[int]) -> None:
    from rdkit import Chem

    (expected,) = (each for each in expectations(name) if each.group == group)
    assert matched_atoms(Chem.MolFromSmiles(smiles), patterns_of(expected)) == atoms


def test_every_group_that_was_written_down_has_a_pattern_and_stands_once_in_its_set() -> None:
    with EXPECTED.open(encoding="utf-8", newline="") as file:
        names = {line["set"] for line in csv.DictReader(file)}
    assert names == {"lipo", "esol", "bbbp"}
    for name in names:
        rows = expectations(name)
        assert len({each.group for each in rows}) == len(rows)
        assert all(patterns_of(each) for each in rows)
        assert {each.sign for each in rows} == {1, -1}
        assert {each.towards for each in rows} == {"1" if name == "bbbp" else None}
    assert expectations("bace") == []


def test_a_group_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(DataError, match="'unobtainium' has no SMARTS that parses"):
        patterns_of(row("unobtainium"))
