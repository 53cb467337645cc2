"""Explained molecules -> what functional groups contribute on average, beside the sign that chemistry expects.

``expected_signs.csv`` was written from textbooks before any network was asked. A group is a SMARTS pattern, by default
the one that ``egocnn patterns`` has under that name.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule
from egocnn.errors import DataError
from egocnn.explain.patterns.names import queries
from egocnn.explain.structure import CriticalStructure

EXPECTED = Path(__file__).with_name("expected_signs.csv")
SIGNS = {"+": 1, "-": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A row of the table."""

    towards: str | None  # the class that the sign is about; None for a value
    group: str
    smarts: str  # empty: the pattern that goes by the name of the group
    sign: int  # 1 or -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupContribution:
    """What one group contributes in the molecules that have it."""

    group: str
    expected: int  # 1 or -1
    molecules: int  # that have the group
    mean: float | None  # of the sum over its atoms; None where no molecule has it

    @property
    def is_as_expected(self) -> bool | None:
        return None if self.mean is None else self.mean * self.expected > 0


def expectations(name: str, path: Path = EXPECTED) -> list[Expectation]:
    """What chemistry expects of the groups in a set; empty where nothing was written down for it."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Expectation(towards=row["towards"] or None, group=row["group"], smarts=row["smarts"], sign=SIGNS[row["sign"]])
        for row in rows
        if row["set"] == name
    ]


def group_contributions(found: Sequence[CriticalStructure], expected: Sequence[Expectation]) -> list[GroupContribution]:
    """Structures that all explain the class that the signs are about, or the value -> one record a group."""
    sums: list[list[float]] = [[] for _ in expected]
    patterns = [patterns_of(row) for row in expected]
    for structure in found:
        molecule = _molecule(structure.graph)
        for own, several in zip(sums, patterns, strict=True):
            atoms = matched_atoms(molecule, several)
            if atoms:
                own.append(float(structure.node_importance[atoms].sum()))
    return [
        GroupContribution(
            group=row.group, expected=row.sign, molecules=len(own), mean=float(np.mean(own)) if own else None
        )
        for row, own in zip(expected, sums, strict=True)
    ]


def patterns_of(row: Expectation) -> list[Any]:
    """The queries of RDKit behind a group."""
    from rdkit import Chem

    named = [query for table in ("ring", "group") for name, query in queries(table) if name == row.group]
    found = [Chem.MolFromSmarts(row.smarts)] if row.smarts else named
    if not found or None in found:
        raise DataError(f"{EXPECTED.name}: {row.group!r} has no SMARTS that parses, and no pattern goes by that name")
    return found


def matched_atoms(molecule: Any, patterns: Sequence[Any]) -> list[int]:
    """All atoms of a molecule that any occurrence of the group holds, each once, ascending."""
    matches = (match for pattern in patterns for match in molecule.GetSubstructMatches(pattern))
    return sorted({atom for match in matches for atom in match})


def _molecule(graph: Graph) -> Any:
    molecule = to_molecule(graph)
    if molecule is None:
        raise DataError(
            f"graph {graph.name!r} is no molecule that RDKit reads; functional groups cannot be found in it"
        )
    return molecule
