"""Molecules -> the pairs of them that differ by one group, and what any two of them have in common."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.molecules import to_molecule
from egocnn.data.schema import SEPARATOR, rule
from egocnn.data.sources.text import optional

LARGEST_GROUP = 13  # Heavy atoms of a group that may be exchanged for another.
MOST_CUTS = 100  # Bonds of a molecule that are cut in turn; molecules with more, polymers say, are left out.
MOST_PAIRS = 1000  # Of one constant part: phenyl alone would give as many as all others.
SECONDS = 5  # To look for the largest part that two molecules share.
END = "[*:1]"  # Where group and constant part were joined.
HYDROGEN, NOTHING = f"[H]{END}", "[H]*"

Groups = dict[str, tuple[int, Ints]]  # group -> number of the molecule, and its atoms that are the constant part
Constants = dict[str, Groups]


@dataclass(frozen=True, slots=True, eq=False)
class MatchedPair:
    """Two molecules and which of their atoms are the same; all others are what changed."""

    first: int
    """number of the molecule"""
    second: int
    """number of the other"""
    transformation: str
    """the group of the first >> that of the second, as SMILES"""
    common: Ints
    """(n, 2) heavy atoms of the first and the same ones of the second"""
    is_cut_short: bool = False
    """whether the search for what is common was given up, so that there may be more of it"""


def find_pairs(
    graphs: Graphs, *, say: Callable[[str], None] = lambda _: None, report: Callable[[int], None] | None = None
) -> list[MatchedPair]:
    """All pairs of molecules that one cut at a single bond outside of rings makes equal but for a group. The constant
    part is at least half of either molecule, a group has at most 13 heavy atoms or is a hydrogen. Of a pair that can be
    cut in several ways the smallest groups count, and of copies of a molecule the first. Hydrogen comes before
    any group, short SMILES before long ones: a transformation has one direction. ``say`` hears what was left out."""
    constants: Constants = defaultdict(dict)
    whole: Groups = {}  # molecules by their own SMILES, for hydrogen in place of a group
    best: dict[frozenset[int], MatchedPair] = {}
    left_out = capped = 0
    for number, graph in enumerate(graphs):
        molecule, nodes = _heavy_atoms(graph)
        smiles, order = _canonical(molecule)
        whole.setdefault(smiles, (number, nodes[order]))
        cuts = [] if "." in smiles else list(_cuts(molecule))
        for constant, group, atoms in cuts:
            constants[constant].setdefault(group, (number, nodes[atoms]))
        left_out += not cuts and ("." in smiles or molecule.GetNumBonds() > MOST_CUTS)
        if report is not None:
            report(number + 1)
    _add_hydrogens(constants, whole)
    for groups in constants.values():
        capped += len(groups) * (len(groups) - 1) // 2 > MOST_PAIRS
        for two in islice(combinations(groups, 2), MOST_PAIRS):
            one, other = sorted(two, key=lambda group: (group != HYDROGEN, len(group), group))
            (first, own), (second, others) = groups[one], groups[other]
            key = frozenset((first, second))
            if len(key) == 2 and (key not in best or len(best[key].common) < len(own)):
                best[key] = MatchedPair(first, second, f"{one}>>{other}", np.stack([own, others], axis=1))
    if left_out:
        say(f"{left_out} molecules are of several pieces or have more than {MOST_CUTS} bonds to cut: not in pairs")
    if capped:
        say(f"{capped} constant parts have more than {MOST_PAIRS:,} pairs; of each the first {MOST_PAIRS:,} count")
    return sorted(best.values(), key=lambda pair: (pair.first, pair.second))


def _cuts(molecule: Any) -> Iterator[tuple[str, str, list[int]]]:
    """Constant part, group, and the atoms of the constant part in canonical order, for every bond that may be cut."""
    from rdkit import Chem
    from rdkit.Chem import rdMMPA

    size = molecule.GetNumAtoms()
    for _, cut in rdMMPA.FragmentMol(molecule, maxCuts=1, maxCutBonds=MOST_CUTS, resultsAsMols=True):
        origin: Any = []
        sides: Any = Chem.GetMolFrags(cut, asMols=True, sanitizeFrags=False, fragsMolAtomMapping=origin)
        for constant, group in ((0, 1), (1, 0)) if len(sides) == 2 else ():
            n_group = len(origin[group]) - 1  # one of its atoms is the end
            if n_group <= LARGEST_GROUP and 2 * n_group <= size:
                smiles, order = _canonical(sides[constant])
                # atoms keep their numbers when they are cut apart, ends come after them
                atoms = [origin[constant][atom] for atom in order if origin[constant][atom] < size]
                yield smiles, _canonical(sides[group])[0], atoms


def _add_hydrogens(constants: Constants, whole: Groups) -> None:
    """Where a constant part with a hydrogen at its end is a molecule of the data, that is one more group."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        for constant, groups in constants.items():
            molecule = Chem.MolFromSmiles(constant.replace(END, "[H]"))
            if molecule is None:
                continue
            smiles, order = _canonical(molecule)
            if smiles in whole:
                number, atoms = whole[smiles]
                # both in canonical order -> in that in which the constant part is written
                groups.setdefault(HYDROGEN, (number, atoms[np.argsort(order)]))


def common_part(first: Graph, second: Graph) -> MatchedPair:
    """What two molecules share: their largest common connected part, rings whole; searched for five seconds at most."""
    molecules, nodes = zip(*map(_heavy_atoms, (first, second)), strict=True)
    from rdkit.Chem import rdFMCS

    rings: dict[str, Any] = {"ringMatchesRingOnly": True, "completeRingsOnly": True}
    found = rdFMCS.FindMCS(list(molecules), timeout=SECONDS, **rings)
    both = [list(each.GetSubstructMatch(found.queryMol)) if found.numAtoms else [] for each in molecules]
    texts = [_groups(molecule, set(atoms)) for molecule, atoms in zip(molecules, both, strict=True)]
    common = [own[np.array(atoms, np.int64)] for own, atoms in zip(nodes, both, strict=True)]
    text = "" if set(texts) == {NOTHING} else ">>".join(texts)
    return MatchedPair(0, 1, text, np.stack(common, axis=1), bool(found.canceled))


def _groups(molecule: Any, common: set[int]) -> str:
    """What is not common, as SMILES of its pieces with * where they hang; a hydrogen where that is nothing."""
    from rdkit import Chem

    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    cut = [number for number, (u, v) in enumerate(ends) if (u in common) != (v in common)]
    apart = Chem.FragmentOnBonds(molecule, cut, dummyLabels=[(0, 0)] * len(cut)) if cut else molecule
    origin: Any = []
    pieces: Any = Chem.GetMolFrags(apart, asMols=True, sanitizeFrags=False, fragsMolAtomMapping=origin)
    changed = [piece for piece, atoms in zip(pieces, origin, strict=True) if not common.intersection(atoms)]
    return ".".join(sorted(Chem.MolToSmiles(piece) for piece in changed)) or NOTHING


def changed_atoms(graph: Graph, common: Ints) -> Ints:
    """The nodes that are not common; a hydrogen goes with the atom that it hangs on."""
    same = np.zeros(graph.n_nodes, bool)
    same[common] = True
    is_hydrogen = np.array([label.partition(SEPARATOR)[0] == "H" for label in graph.node_label or ()], bool)
    for u, v in graph.edges[is_hydrogen[graph.edges].any(axis=1)].tolist() if is_hydrogen.any() else ():
        same[u if is_hydrogen[u] else v] = same[v if is_hydrogen[u] else u]
    return np.flatnonzero(~same)


def _heavy_atoms(graph: Graph) -> tuple[Any, Ints]:
    """The molecule without hydrogens, and the nodes that its atoms are."""
    chem, base = optional("rdkit.Chem", "molecules"), optional("rdkit.rdBase", "molecules")
    molecule: Any = None if graph.smiles is None else to_molecule(graph)
    rule(molecule is not None, f"graph {graph.name}: is no molecule with a SMILES; only molecules are compared")
    for atom in molecule.GetAtoms():
        atom.SetIntProp("node", atom.GetIdx())
    with base.BlockLogs():
        molecule = chem.RemoveHs(molecule)
    return molecule, np.array([atom.GetIntProp("node") for atom in molecule.GetAtoms()], np.int64)


def _canonical(molecule: Any) -> tuple[str, list[int]]:
    """SMILES, and the atoms in the order in which it names them."""
    from rdkit import Chem

    return Chem.MolToSmiles(molecule), list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
