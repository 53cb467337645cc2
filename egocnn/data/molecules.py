"""Graphs whose labels say atoms and bonds -> molecules as RDKit holds them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from egocnn.data.graphs import Graph
from egocnn.data.schema import SEPARATOR
from egocnn.errors import DataError

WORDS = ("single", "double", "triple", "aromatic")
ATOM = re.compile(r"([A-Z][a-z]?|[bcnops]|se|as|te)([+-]\d*)?")


def is_molecule(graph: Graph) -> bool:
    """Whether its labels read as atoms and bonds, so that a chemist's words and drawing suit it."""
    graph = by_first_words(graph)
    if graph.node_label is None:
        return False
    bonds = graph.edge_label if graph.smiles is None else ("single",)
    return all(map(ATOM.fullmatch, graph.node_label)) and bool(bonds) and set(WORDS).issuperset(bonds or ())


def by_first_words(graph: Graph) -> Graph:
    """The same graph with labels that say element and kind of bond alone."""
    both = (graph.node_label, graph.edge_label)
    nodes, edges = (labels and tuple(label.partition(SEPARATOR)[0] for label in labels) for labels in both)
    return replace(graph, node_label=nodes, edge_label=edges)


def shown_labels(graph: Graph) -> Graph:
    """As a person is shown it: of a molecule elements and kinds of bonds, which chemists read the rest from."""
    return graph if graph.smiles is None else by_first_words(graph)


def to_molecule(graph: Graph) -> Any | None:
    """A molecule whose atoms are the graph's nodes in their order; None where the graph is none, or RDKit is missing.
    The SMILES counts where its atoms and bonds are the graph's own, in any order; otherwise the labels: elements with
    charges, lower case where aromatic, and words for bonds. Missing charges are filled in for nitrogen and oxygen, so
    that a nitro group is one however it was written; atoms with too many bonds are taken as they are."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return None
    with rdBase.BlockLogs():
        graph = by_first_words(graph)
        molecule: Any = _from_smiles(graph)
        if molecule is None and (made := _from_labels(graph)) is not None:
            _fill_charges(made)
            flags = Chem.SanitizeFlags
            if Chem.SanitizeMol(made, catchErrors=True) != flags.SANITIZE_NONE:
                made.UpdatePropertyCache(strict=False)
                without = flags.SANITIZE_PROPERTIES | flags.SANITIZE_KEKULIZE
                Chem.SanitizeMol(made, flags.SANITIZE_ALL ^ without, catchErrors=True)
                Chem.FastFindRings(made)
            molecule = made
        return None if molecule is None else Chem.Mol(molecule)


def _from_smiles(graph: Graph) -> Any | None:
    from rdkit import Chem

    from egocnn.data.sources.smiles import parse_smiles

    if graph.smiles is None or graph.node_label is None:
        return None
    try:
        molecule = parse_smiles(graph.smiles)
    except DataError:
        return None
    if molecule.GetNumAtoms() < graph.n_nodes:
        molecule = Chem.AddHs(molecule)
    if molecule.GetNumAtoms() != graph.n_nodes or molecule.GetNumBonds() != len(graph.edges):
        return None
    elements = _elements(graph.node_label)
    is_plain = all(map(ATOM.fullmatch, graph.node_label)) and (graph.edges[:, 0] != graph.edges[:, 1]).all()
    if not _in_order(graph, molecule) and is_plain:
        # generated compounds number their nodes at random: two equal molecules have equal canonical orders
        theirs = [atom.GetSymbol() for atom in molecule.GetAtoms()]
        bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
        orders = _canonical_order(elements, graph.edges.tolist()), _canonical_order(theirs, bonds)
        molecule = Chem.RenumberAtoms(molecule, [atom for _, atom in sorted(zip(*orders, strict=True))])
    return molecule if _in_order(graph, molecule) else None


def _elements(labels: Sequence[str]) -> list[str]:
    """Their elements; a label that is none, as * for any atom, as it is."""
    return [found[1].capitalize() if (found := ATOM.fullmatch(label)) else label for label in labels]


def _canonical_order(elements: Sequence[Any], bonds: Sequence[Sequence[int]]) -> list[int]:
    """The atoms in an order that depends on elements and bonds alone; charges and kinds of bonds do not count."""
    from rdkit import Chem

    skeleton: Any = Chem.RWMol()
    for element in elements:
        atom = Chem.Atom(element)
        atom.SetNoImplicit(True)
        skeleton.AddAtom(atom)
    for u, v in bonds:
        skeleton.AddBond(u, v, Chem.BondType.SINGLE)
    skeleton.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(skeleton)
    rank = list(Chem.CanonicalRankAtoms(skeleton, breakTies=True))
    return sorted(range(len(rank)), key=rank.__getitem__)


def _in_order(graph: Graph, molecule: Any) -> bool:
    """Whether its atoms and bonds are the nodes and edges of the graph; a bond may be aromatic in one of them only."""
    from egocnn.data.sources.smiles import bond_label

    if _elements(graph.node_label or ()) != [atom.GetSymbol() for atom in molecule.GetAtoms()]:
        return False
    bonds = {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))): bond_label(b) for b in molecule.GetBonds()}
    pairs = [(u, v) for u, v in graph.edges.tolist()]
    kinds = graph.edge_label or [bonds.get(pair) for pair in pairs]
    differ = [(label, bonds.get(pair)) for pair, label in zip(pairs, kinds, strict=True) if label != bonds.get(pair)]
    return set(bonds) == set(pairs) and not any(set(pair) <= set(WORDS[:3]) for pair in differ)


def _from_labels(graph: Graph) -> Any | None:
    from rdkit import Chem

    labels, bonds = graph.node_label, graph.edge_label
    if labels is None or (bonds is None and len(graph.edges)) or any(bond not in WORDS for bond in bonds or ()):
        return None
    table, molecule = Chem.GetPeriodicTable(), Chem.RWMol()
    has_hydrogens = "H" in labels
    for label in labels:
        found = ATOM.fullmatch(label)
        try:
            number = table.GetAtomicNumber(found[1].capitalize()) if found else 0
        except RuntimeError:  # RDKit's word for no such element
            number = 0
        if found is None or number == 0:
            return None
        atom = Chem.Atom(number)
        sign = found[2] or ""
        atom.SetFormalCharge(int(sign + "1" if len(sign) == 1 else sign or 0))
        atom.SetNoImplicit(has_hydrogens)
        molecule.AddAtom(atom)
    for (u, v), bond in zip(graph.edges.tolist(), bonds or (), strict=True):
        if u == v:
            return None
        molecule.AddBond(u, v, getattr(Chem.BondType, bond.upper()))
        if bond == "aromatic":
            molecule.GetBondBetweenAtoms(u, v).SetIsAromatic(True)
            for end in (u, v):
                molecule.GetAtomWithIdx(end).SetIsAromatic(True)
    return molecule


def _fill_charges(molecule: Any) -> None:
    """N(=O)=O and N(=O)O without charges -> [N+](=O)[O-]; four bonds at a nitrogen -> N+, three at an oxygen -> O+."""
    from rdkit import Chem

    def orders(atom: Any) -> float:
        return float(sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds()))

    neutral = [atom for atom in molecule.GetAtoms() if not atom.GetFormalCharge()]
    for nitrogen in (atom for atom in neutral if atom.GetSymbol() == "N"):
        if orders(nitrogen) == 5:
            double = [bond for bond in nitrogen.GetBonds() if bond.GetBondType() == Chem.BondType.DOUBLE]
            oxygens = [b for b in double if b.GetOtherAtom(nitrogen).GetSymbol() == "O"]
            if oxygens:
                oxygens[-1].SetBondType(Chem.BondType.SINGLE)
        if orders(nitrogen) == 4 and not nitrogen.GetIsAromatic():
            nitrogen.SetFormalCharge(1)
    for oxygen in (atom for atom in neutral if atom.GetSymbol() == "O"):
        if orders(oxygen) == 3 and not oxygen.GetIsAromatic():
            oxygen.SetFormalCharge(1)
        if oxygen.GetDegree() == 1:
            bond = oxygen.GetBonds()[0]
            if bond.GetBondType() == Chem.BondType.SINGLE and bond.GetOtherAtom(oxygen).GetFormalCharge() > 0:
                oxygen.SetFormalCharge(-1)
