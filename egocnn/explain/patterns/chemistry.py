"""Fragments of molecules -> SMILES and SMARTS."""

from __future__ import annotations

import re
from typing import Any

from egocnn.explain.patterns.labelled import Labelled

LABEL = re.compile(r"(se|as|te|[A-Z][a-z]?|[bcnops])([+-]\d*)?(?:H(\d*))?")
BOND = {"single": "-", "double": "=", "triple": "#", "aromatic": ":"}


def parts_of(label: str) -> tuple[str, int, int]:
    """Element (lower case: aromatic), charge and hydrogens of a label: N+H3 -> N, 1, 3."""
    found = LABEL.fullmatch(label)
    if found is None:
        return label, 0, 0
    sign, hydrogens = found[2] or "", found[3]
    charge = int(f"{sign}1" if len(sign) == 1 else sign or 0)
    return found[1], charge, 0 if hydrogens is None else int(hydrogens or 1)


def to_smiles(fragment: Labelled) -> str:
    """The same text for equal fragments; c and n are atoms of aromatic rings, whether the ring is whole or not."""
    from rdkit import Chem

    def atom(label: str) -> Any:
        symbol, charge, hydrogens = parts_of(label)
        made = Chem.Atom(symbol.capitalize())
        made.SetIsAromatic(symbol.islower())
        made.SetFormalCharge(charge)
        made.SetNumExplicitHs(hydrogens)
        made.SetNoImplicit(symbol not in ("C", "c"))
        return made

    molecule = _assemble(fragment, atom)
    Chem.AssignRadicals(molecule)  # else an oxygen cut off from its second neighbour is written like a hydroxyl
    for one in molecule.GetAtoms():
        if one.GetIsAromatic():
            one.SetNumRadicalElectrons(0)
    return str(Chem.MolToSmiles(molecule))


def to_smarts(fragment: Labelled) -> str:
    """What matches exactly where the fragment is: elements, aromaticity, charges, and hydrogens except on carbon."""
    from rdkit import Chem

    def atom(label: str) -> Any:
        symbol, charge, hydrogens = parts_of(label)
        rules = f"[{symbol};{charge:+d}" + ("]" if symbol in ("C", "c") else f";H{hydrogens}]")
        return Chem.AtomFromSmarts(rules)

    return str(Chem.MolToSmarts(_assemble(fragment, atom)))


def _assemble(fragment: Labelled, atom: Any) -> Any:
    from rdkit import Chem

    molecule = Chem.RWMol()
    for label in fragment.labels:
        molecule.AddAtom(atom(label))
    for u, v, label in fragment.edges:
        kind: Any = getattr(Chem.BondType, label.upper(), Chem.BondType.UNSPECIFIED)
        molecule.AddBond(u, v, kind)
        molecule.GetBondBetweenAtoms(u, v).SetIsAromatic(label == "aromatic")
    molecule.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)
    return molecule
