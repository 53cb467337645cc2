"""Fragments -> their names in plain words (functional groups of molecules, shapes of the rest), SMILES and SMARTS."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from egocnn.data.molecules import to_molecule
from egocnn.explain.patterns.labelled import Labelled, Sample

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
LABEL = re.compile(r"(se|as|te|[A-Z][a-z]?|[bcnops])([+-]\d*)?(?:H(\d*))?")
LOOKED_AT = 20
AGREED = 0.8  # A name stands when it holds in this share of the occurrences looked at.
Match = tuple[str, tuple[int, ...]]  # the name of a group, and its atoms
BONDS = {"single": "–", "double": "=", "triple": "≡", "aromatic": ":", "": "–"}


def name_fragment(shape: Labelled, places: Sequence[tuple[Sample, tuple[int, ...]]]) -> str:
    """What to call a fragment, judged by the graphs where it occurs."""
    if not places[0][0].is_molecule:
        return _name_shape(shape)
    looked_at = [(to_molecule(sample.graph), [sample.nodes[n] for n in nodes]) for sample, nodes in places[:LOOKED_AT]]
    for plain in (False, True):
        votes = Counter(name_atoms_of(molecule, atoms, plain=plain) for molecule, atoms in looked_at)
        best, count = votes.most_common(1)[0]
        if best and count >= AGREED * len(looked_at):
            return best
    return f"{_along(shape, molecule=True) or to_smiles(shape)} fragment"


def _along(shape: Labelled, *, molecule: bool) -> str:
    """The labels along a chain, C–C=O; nothing where the fragment is no chain or has no labels."""
    degree = [len(row) for row in shape.neighbours]
    if max(degree) > 2 or len(shape.edges) != len(shape.labels) - 1 or not any(shape.labels):
        return ""
    ends = [n for n, d in enumerate(degree) if d < 2]

    def walk(node: int) -> str:
        text, last = shape.labels[node], -1
        while onward := [v for v in shape.neighbours[node] if v != last]:
            bond = shape.neighbours[node][onward[0]]
            text += (BONDS.get(bond, "–") if molecule or not bond else f" –[{bond}]– ") + shape.labels[onward[0]]
            last, node = node, onward[0]
        return text

    return min(map(walk, ends))


def _name_shape(shape: Labelled) -> str:
    """triangle, ring of 6 nodes, star with 4 arms (C, O × 4), ..."""
    N, E = len(shape.labels), len(shape.edges)
    degree = sorted(len(row) for row in shape.neighbours)
    if N == 1:
        return f"node {shape.labels[0]}" if shape.labels[0] else "single node"
    if chain := _along(shape, molecule=False):
        return chain
    if E == N * (N - 1) // 2:
        kind = {2: "edge", 3: "triangle"}.get(N, f"clique of {N} nodes")
    elif E == N - 1:
        star = f"star with {N - 1} arms" if degree[-1] == N - 1 else f"tree of {N} nodes"
        kind = f"path of {N} nodes" if degree[-1] == 2 else star
    else:
        kind = f"ring of {N} nodes" if E == N and degree[0] == 2 else f"{N} nodes, {E} edges"
    counts = Counter(label for label in shape.labels if label)
    texts = [label if count == 1 else f"{label} × {count}" for label, count in sorted(counts.items())]
    return f"{kind} ({', '.join(texts)})" if texts else kind


def parts_of(label: str) -> tuple[str, int, int]:
    """Element (lower case: aromatic), charge and hydrogens of a label: N+H3 -> N, 1, 3."""
    if (found := LABEL.fullmatch(label)) is None:
        return label, 0, 0
    sign, hydrogens = found[2] or "", found[3]
    return found[1], int(f"{sign}1" if len(sign) == 1 else sign or 0), 0 if hydrogens is None else int(hydrogens or 1)


def to_smiles(fragment: Labelled) -> str:
    """The same text for equal fragments; c and n are atoms of aromatic rings, whether the ring is whole or not."""
    from rdkit import Chem

    def atom(label: str) -> Any:
        symbol, charge, hydrogens = parts_of(label)
        made = Chem.Atom(symbol.capitalize())
        made.SetIsAromatic(symbol.islower())
        made.SetFormalCharge(charge)
        made.SetNumExplicitHs(hydrogens)
        made.SetNoImplicit(symbol not in "Cc")
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
        return Chem.AtomFromSmarts(f"[{symbol};{charge:+d}" + ("]" if symbol in "Cc" else f";H{hydrogens}]"))

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


def name_atoms_of(molecule: Any, atoms: Collection[int], *, plain: bool = False) -> str:
    """Heavy atoms of a molecule -> "nitro group on an aromatic ring", "benzene ring", ...; empty: no name for them.
    ``plain``: without groups that only atoms beyond these distinguish, an ether from an ester say."""
    left = set(atoms)
    rings = _take(molecule, left, "ring")
    groups = _take(molecule, left, "plain" if plain else "group")
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


def _host(molecule: Any, rings: list[Match], aromatic: set[int], *, alone: bool) -> tuple[str, set[int]]:
    """What the rings, and the aromatic atoms outside whole ones, are called, and all their atoms."""
    if not rings:
        text = "" if not aromatic else _aromatic(molecule, aromatic) if alone else "aromatic ring"
        return text, aromatic
    whole = {atom for _, match in rings for atom in match}
    text = _listed([name for name, _ in rings])
    if aromatic:
        bonds = [molecule.GetBondBetweenAtoms(a, b) for a in aromatic for b in _near(molecule, a) if b in whole]
        how = "fused" if any(bond.GetIsAromatic() for bond in bonds) else "joined"
        text += f" {how} to another aromatic ring"
    return text, whole | aromatic


def _aromatic(molecule: Any, atoms: set[int]) -> str:
    """three aromatic carbons; five aromatic atoms with N, of fused rings"""
    symbols = [molecule.GetAtomWithIdx(atom).GetSymbol() for atom in atoms]
    others = " and ".join(sorted({symbol for symbol in symbols if symbol != "C"}))
    if len(atoms) == 1:
        return f"aromatic {others or 'carbon'}"
    text = f"{_number(len(atoms))} aromatic " + (f"atoms with {others}" if others else "carbons")
    near = {atom: atoms.intersection(_near(molecule, atom)) for atom in atoms}
    kinds = [[molecule.GetBondBetweenAtoms(one, two).GetIsAromatic() for two in near[one]] for one in atoms]
    if any(False in bonds for bonds in kinds):
        return f"{text} of joined rings"
    return f"{text} of fused rings" if any(sum(bonds) > 2 for bonds in kinds) else text


def _carbons(molecule: Any, chain: set[int], host: str) -> str:
    if not chain:
        return host
    branched = any(len(chain.intersection(_near(molecule, atom))) > 2 for atom in chain)
    text = f"{'branched ' * branched}chain of {_number(len(chain))} carbons" if len(chain) > 1 else "carbon"
    return f"{text} on {_with_article(host)}" if host else text


def _take(molecule: Any, left: set[int], table: str) -> list[Match]:
    """The groups of the table that lie among the atoms left, which they use up."""
    taken = []
    found = ((name, m) for name, query in queries(table) for m in molecule.GetSubstructMatches(query, maxMatches=1000))
    for name, match in found:
        if left.issuperset(match):
            taken.append((name, match))
            left.difference_update(match)
    return taken


def groups_of(molecule: Any) -> list[Match]:
    """All rings and groups of a molecule, but for those that are parts of others: the carbonyl of an ester is none."""
    found: list[Match] = []
    for table in ("ring", "group"):
        held: set[int] = set()
        for name, query in queries(table):
            for match in molecule.GetSubstructMatches(query, maxMatches=1000):
                found += [] if held.issuperset(match) else [(name, match)]
                held.update(match)
    return found


@cache
def queries(table: str) -> list[tuple[str, Any]]:
    """Names and queries of a table of ``groups.csv``: ``ring``; ``group``, special ones first, for an atom belongs to
    the first that fits; ``plain``, what the atoms of a fragment say by themselves, wherever it lies."""
    from rdkit import Chem

    with Path(__file__).with_name("groups.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == table]
    return [(row["name"], Chem.MolFromSmarts(row["smarts"])) for row in rows]


def _near(molecule: Any, atom: int) -> list[int]:
    return [near.GetIdx() for near in molecule.GetAtomWithIdx(atom).GetNeighbors()]


def _listed(names: list[str]) -> str:
    """nitro group; two nitro groups; nitro group and chlorine; two OH groups (hydroxyl)"""
    texts = []
    for name, count in Counter(names).items():
        head, opening, rest = name.partition(" (")
        texts.append(name if count == 1 else f"{_number(count)} {head}s{opening}{rest}")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _with_article(text: str) -> str:
    if text.split()[0] in WORDS or text[0].isdigit():
        return text
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def _number(count: int) -> str:
    return WORDS[count] if count < len(WORDS) else str(count)
