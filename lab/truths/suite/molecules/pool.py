"""All molecules at hand, each once: CSV files of the data folder -> SMILES and molecules as RDKit holds them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from egocnn.data.sources.smiles import parse_smiles
from egocnn.errors import DataError
from lab.truths.suite.molecules.groups import GROUPS, Match, matches

FOLDERS = ("explain", "molecules")
FEWEST_ATOMS = 6
MOST_ATOMS = 45  # heavy atoms; larger ones are rare, and cost most of the time


@dataclass(frozen=True, slots=True, eq=False)
class PooledMolecule:
    """One molecule with where every group stands in it."""

    name: str
    smiles: str
    molecule: Any  # as RDKit holds it, atoms in the order of the SMILES
    groups: dict[str, tuple[Match, ...]]  # those that it has

    def matches(self, group: str) -> tuple[Match, ...]:
        return self.groups.get(group, ())


@cache
def pooled_molecules(folder: Path) -> tuple[PooledMolecule, ...]:
    """Connected molecules of 6 to 45 heavy atoms in the order of the files; copies, stereo marks aside, stand once."""
    from rdkit import Chem

    seen: set[str] = set()
    found = []
    for name, smiles in _rows(folder):
        if "." in smiles:
            continue
        try:
            molecule = parse_smiles(smiles)
        except DataError:  # the sets hold a few SMILES that are none
            continue
        if not FEWEST_ATOMS <= molecule.GetNumAtoms() <= MOST_ATOMS:
            continue
        key = Chem.MolToSmiles(molecule, isomericSmiles=False)
        if key not in seen:
            seen.add(key)
            groups = {group: places for group in GROUPS if (places := matches(molecule, group))}
            found.append(PooledMolecule(name, smiles, molecule, groups))
    if not found:
        raise DataError(f"{folder}: no molecules in {' or '.join(FOLDERS)}; EGOCNN_DATA names the folder of the data")
    return tuple(found)


def _rows(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and SMILES of every row of every file."""
    for path in sorted(file for each in FOLDERS for file in (folder / each).glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 1):
                yield f"{path.stem} {number}", row["smiles"].strip()
