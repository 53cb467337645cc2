"""The functional groups of organic chemistry by name, found among some atoms of a molecule."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

GROUPS = (
    ("nitrate group", "[OX2][N+](=O)[O-]"),
    ("nitro group", "[$([N+](=O)[O-])](=O)[O-]"),
    ("azide group", "[#7-]=[N+]=[N-,N]"),
    ("azide group", "[NX2]=[N+]=[N-]"),
    ("diazonium group", "[N+]#N"),
    ("diazo group", "C=[N+]=[N-]"),
    ("N-nitroso group", "[NX3][NX2]=O"),
    ("nitroso group", "[NX2;!$(N[O,N])]=O"),
    ("isocyanate group", "N=C=O"),
    ("isothiocyanate group", "N=C=S"),
    ("sulfonamide group", "[SX4](=O)(=O)[NX3]"),
    ("sulfonic acid group", "[SX4](=O)(=O)[OX2H,O-]"),
    ("sulfonate ester group", "[SX4](=O)(=O)[OX2;H0]"),
    ("sulfonyl group", "[SX4](=O)=O"),
    ("sulfoxide group", "[SX3]=O"),
    ("phosphate group", "P(=O)([OX2,O-])([OX2,O-])[OX2,O-]"),
    ("phosphonate group", "P(=O)([OX2,O-])[OX2,O-]"),
    ("phosphoryl group", "P=O"),
    ("carboxylic acid group", "[CX3](=O)[OX2H]"),
    ("carboxylate group", "[CX3](=O)[O-]"),
    ("carbamate group", "[NX3][CX3](=O)[OX2;H0]"),
    ("urea group", "[NX3][CX3](=O)[NX3]"),
    ("ester group", "[CX3](=O)[OX2;H0]"),
    ("amide group", "[CX3](=O)[NX3]"),
    ("acyl halide group", "[CX3](=O)[F,Cl,Br,I]"),
    ("nitrile group", "[CX2]#[NX1]"),
    ("epoxide", "C1OC1"),
    ("aziridine ring", "C1NC1"),
    ("azo group", "[NX2]=[NX2]"),
    ("oxime group", "[CX3]=[NX2][OX2]"),
    ("hydrazone group", "[CX3]=[NX2][NX3]"),
    ("hydroxylamine group", "[NX3][OX2H]"),
    ("hydrazine group", "[NX3][NX3]"),
    ("imine group", "[CX3]=[NX2]"),
    ("aldehyde group", "[CX3H1,CX3H2]=O"),
    ("ketone group", "[#6][CX3](=O)[#6]"),
    ("carbonyl group", "[CX3]=O"),
    ("thiocarbonyl group", "[CX3]=S"),
    ("peroxide group", "[OX2][OX2]"),
    ("disulfide group", "[SX2][SX2]"),
    ("OH group (hydroxyl)", "[OX2H]"),
    ("thiol group", "[SX2H]"),
    ("ether group", "[#6;!$(C=O)][OX2;H0][#6;!$(C=O)]"),
    ("thioether group", "[#6][SX2;H0][#6]"),
    ("NH2 group (primary amine)", "[NX3;H2;!$(N[C,S]=[O,S,N])]"),
    ("NH2 group", "[NX3;H2]"),
    ("NH group (secondary amine)", "[NX3;H1;!$(N[C,S]=[O,S,N]);!$(N~[N,O])]"),
    ("tertiary amine", "[NX3;H0;+0;!$(N[C,S]=[O,S,N]);!$(N~[N,O])]([#6])([#6])[#6]"),
    ("ammonium group", "[N+;!$(N=*);!$(N#*);!$(N[O-])]"),
    ("NH group", "[NX3,n;H1]"),
    ("trifluoromethyl group", "C(F)(F)F"),
    ("trichloromethyl group", "C(Cl)(Cl)Cl"),
    ("fluorine", "F"),
    ("chlorine", "Cl"),
    ("bromine", "Br"),
    ("iodine", "I"),
    ("C≡C triple bond", "C#C"),
    ("C=C double bond", "C=C"),
    ("methyl group", "[CH3;!$([CH3][#6;A])]"),
)
"""Special ones first: an atom belongs to the first group that fits."""

PLAIN = (
    ("nitro group", "[N+](=O)[O-]"),
    ("carbonyl group", "[#6]=O"),
    ("OH group (hydroxyl)", "[OX2H]"),
    ("thiol group", "[SX2H]"),
    ("NH2 group", "[NH2]"),
    ("NH group", "[#7;H1]"),
    ("fluorine", "F"),
    ("chlorine", "Cl"),
    ("bromine", "Br"),
    ("iodine", "I"),
    ("oxygen atom", "O"),
    ("nitrogen atom", "N"),
    ("sulfur atom", "S"),
    ("phosphorus atom", "P"),
)
"""What the atoms of a fragment say by themselves, wherever it lies."""

RINGS = (
    ("naphthalene ring system", "c1ccc2ccccc2c1"),
    ("benzene ring", "c1ccccc1"),
    ("pyridine ring", "n1ccccc1"),
    ("pyrimidine ring", "c1cncnc1"),
    ("furan ring", "o1cccc1"),
    ("thiophene ring", "s1cccc1"),
    ("pyrrole ring", "n1cccc1"),
    ("imidazole ring", "n1cncc1"),
    ("pyrazole ring", "n1nccc1"),
    ("thiazole ring", "s1cncc1"),
    ("cyclohexane ring", "C1CCCCC1"),
    ("cyclopentane ring", "C1CCCC1"),
    ("cyclobutane ring", "C1CCC1"),
    ("cyclopropane ring", "C1CC1"),
    ("piperidine ring", "N1CCCCC1"),
    ("piperazine ring", "N1CCNCC1"),
    ("morpholine ring", "O1CCNCC1"),
    ("pyrrolidine ring", "N1CCCC1"),
)
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def name_atoms_of(molecule: Any, atoms: Collection[int], *, plain: bool = False) -> str:
    """Heavy atoms of a molecule -> "nitro group on an aromatic ring", "benzene ring", ...; empty: no name for them.

    ``plain``: without groups that are told by atoms beyond these, an ether from an ester say.
    """
    left = set(atoms)
    rings = _take(molecule, left, RINGS)
    groups = _take(molecule, left, PLAIN if plain else GROUPS)
    aromatic = {atom for atom in left if molecule.GetAtomWithIdx(atom).GetIsAromatic()}
    chain = {atom for atom in left - aromatic if molecule.GetAtomWithIdx(atom).GetAtomicNum() == 6}
    if left != aromatic | chain:
        return ""
    host, ring_atoms = _host(molecule, rings, aromatic, alone=not groups and not chain)
    if not groups:
        return _carbons(molecule, chain, host)
    text = _listed([name for name, _ in groups])
    if host:
        held = {atom for _, match in groups for atom in match}
        touches = any(near in ring_atoms for atom in held for near in _near(molecule, atom))
        return f"{text} {'on' if touches else 'near'} {_with_article(host)}"
    return f"{text} on {_with_article(_carbons(molecule, chain, ''))}" if chain else text


def _host(
    molecule: Any, rings: list[tuple[str, tuple[int, ...]]], aromatic: set[int], *, alone: bool
) -> tuple[str, set[int]]:
    """What the rings, and the aromatic atoms outside whole ones, are called, and all their atoms."""
    whole = {atom for _, match in rings for atom in match}
    if not rings:
        text = "aromatic ring" if aromatic and not alone else _aromatic(molecule, aromatic) if aromatic else ""
        return text, aromatic
    text = _listed([name for name, _ in rings])
    if aromatic:
        bonds = [molecule.GetBondBetweenAtoms(a, b) for a in aromatic for b in _near(molecule, a) if b in whole]
        is_fused = any(bond.GetIsAromatic() for bond in bonds)
        text += " fused to another aromatic ring" if is_fused else " joined to another aromatic ring"
    return text, whole | aromatic


def _aromatic(molecule: Any, atoms: set[int]) -> str:
    """three aromatic carbons; five aromatic atoms with N, of fused rings"""
    symbols = [molecule.GetAtomWithIdx(atom).GetSymbol() for atom in atoms]
    others = " and ".join(sorted({symbol for symbol in symbols if symbol != "C"}))
    if len(atoms) == 1:
        return f"aromatic {others or 'carbon'}"
    text = f"{_number(len(atoms))} aromatic " + (f"atoms with {others}" if others else "carbons")
    kinds = [
        [molecule.GetBondBetweenAtoms(atom, near).GetIsAromatic() for near in _near(molecule, atom) if near in atoms]
        for atom in atoms
    ]
    if any(False in bonds for bonds in kinds):
        return f"{text} of joined rings"
    return f"{text} of fused rings" if any(sum(bonds) > 2 for bonds in kinds) else text


def _carbons(molecule: Any, chain: set[int], host: str) -> str:
    if not chain:
        return host
    is_branched = any(len(chain.intersection(_near(molecule, atom))) > 2 for atom in chain)
    kind = "branched chain" if is_branched else "chain"
    text = "carbon" if len(chain) == 1 else f"{kind} of {_number(len(chain))} carbons"
    return f"{text} on {_with_article(host)}" if host else text


def _take(molecule: Any, left: set[int], table: tuple[tuple[str, str], ...]) -> list[tuple[str, tuple[int, ...]]]:
    """The groups of the table that lie among the atoms left, which they use up."""
    taken = []
    for name, query in zip((name for name, _ in table), _queries(table), strict=True):
        for match in molecule.GetSubstructMatches(query, maxMatches=1000):
            if left.issuperset(match):
                taken.append((name, match))
                left.difference_update(match)
    return taken


@cache
def _queries(table: tuple[tuple[str, str], ...]) -> list[Any]:
    from rdkit import Chem

    return [Chem.MolFromSmarts(smarts) for _, smarts in table]


def _near(molecule: Any, atom: int) -> list[int]:
    return [near.GetIdx() for near in molecule.GetAtomWithIdx(atom).GetNeighbors()]


def _listed(names: list[str]) -> str:
    """nitro group; two nitro groups; nitro group and chlorine"""
    counted = {name: names.count(name) for name in names}
    texts = [name if count == 1 else _plural(name, count) for name, count in counted.items()]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _plural(name: str, count: int) -> str:
    """two OH groups (hydroxyl)"""
    head, opening, rest = name.partition(" (")
    return f"{_number(count)} {head}s{opening}{rest}"


def _with_article(text: str) -> str:
    if text.split()[0] in WORDS or text[0].isdigit():
        return text
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def _number(count: int) -> str:
    return WORDS[count] if count < len(WORDS) else str(count)
