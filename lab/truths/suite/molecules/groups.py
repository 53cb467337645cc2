"""Functional groups and rings by name, as SMARTS: a molecule -> the atoms of every match.

Each pattern can be told from what the graph shows: elements, charges, aromaticity and kinds of bonds, and with them
the hydrogens that fill an atom up. All atoms of a match belong to the truth.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

Match: TypeAlias = tuple[int, ...]  # atoms, ascending

_SATURATED = "[CX4,NX3,OX2,SX2]"

GROUPS: dict[str, str] = {
    "nitro": "[NX3+](=O)[O-]",
    "nitrile": "[CX2]#[NX1]",
    "sulfonamide": "[SX4](=[OX1])(=[OX1])[NX3]",
    "sulfone": "[#6][SX4](=[OX1])(=[OX1])[#6]",
    "thioether": "[#6]-[SX2]-[#6]",
    "amide": "[CX3;!$(C(=O)([#7,#8])[#7,#8])](=[OX1])[NX3]",
    "urea": "[NX3][CX3](=[OX1])[NX3]",
    "ester": "[CX3;!$(C([#7,#8])(=O)[#7,#8])](=[OX1])[OX2][#6]",
    "acid": "[CX3](=[OX1])[OX2H1]",
    "ketone": "[#6][CX3](=[OX1])[#6]",
    "carbonyl": "[CX3]=[OX1]",
    "phenol": "c[OX2H1]",
    "alcohol": "[CX4][OX2H1]",
    "aryl ether": "c[OX2][CX4]",
    "tertiary amine": "[NX3]([CX4])([CX4])[CX4]",
    "aniline": "c[NX3H2]",
    "fluorine": "[F]",
    "chlorine": "[Cl]",
    "bromine": "[Br]",
    "halogen": "[F,Cl,Br,I]",
    "trifluoromethyl": "[CX4](F)(F)F",
    "double bond": "[CX3]=[CX3]",
    "aromatic five-ring": "a1aaaa1",
    "pyridine": "n1ccccc1",
    "thiophene": "s1cccc1",
    "furan": "o1cccc1",
    "benzene": "c1ccccc1",
    "cyclopropane": "C1CC1",
    "saturated six-ring": f"{_SATURATED}1{_SATURATED * 4}{_SATURATED}1",
    "piperazine": "[NX3]1[CX4][CX4][NX3][CX4][CX4]1",
    "fused six-six": "a1aaa2aaaaa2a1",
    "fused five-six": "a1aa2aaaaa2a1",
}


@cache
def pattern(name: str) -> Any:
    """The group as RDKit searches for it."""
    from rdkit import Chem

    return Chem.MolFromSmarts(GROUPS[name])


def matches(molecule: Any, name: str) -> tuple[Match, ...]:
    """The atoms of every match of a group; matches of the same atoms count once."""
    found = molecule.GetSubstructMatches(pattern(name), uniquify=True, maxMatches=200)
    return tuple(sorted({tuple(sorted(atoms)) for atoms in found}))
