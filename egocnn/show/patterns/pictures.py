"""Patterns -> drawings as SVG: the fragment alone, and a graph with the fragment marked in it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule
from egocnn.data.sources.smiles import from_smiles
from egocnn.errors import DataError
from egocnn.explain.patterns.record import Occurrence, Pattern
from egocnn.show.drawing import draw
from egocnn.show.drawing.molecules import set_options

PATTERN_SIZE = (240, 180)


def draw_pattern(pattern: Pattern) -> str:
    """The fragment alone; bonds of an aromatic ring are dashed, whether all of the ring is there or not."""
    if pattern.smiles is None:
        return _draw_marked(pattern.graph, range(pattern.graph.n_nodes), PATTERN_SIZE)
    return _draw_fragment(pattern.smiles)


def draw_occurrence(occurrence: Occurrence) -> str:
    """The whole graph with the fragment marked; a molecule without its hydrogens."""
    return _draw_marked(*_as_drawn(occurrence), (320, 240))


def _draw_marked(graph: Graph, nodes: Any, size: tuple[int, int]) -> str:
    marked = np.zeros(graph.n_nodes, bool)
    marked[list(nodes)] = True
    u, v = graph.edges.T
    edges = marked[u] & marked[v]
    critical: dict[str, Any] = {"critical_nodes": np.flatnonzero(marked), "critical_edges": np.flatnonzero(edges)}
    importances = marked.astype(np.float64), edges.astype(np.float64)
    return draw(graph, *importances, size=size, words=("the pattern", ""), **critical)


def _draw_fragment(smiles: str) -> str:
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDepictor
    from rdkit.Chem.Draw import rdMolDraw2D

    with rdBase.BlockLogs():
        molecule: Any = Chem.MolFromSmiles(smiles, sanitize=False)
        molecule.UpdatePropertyCache(strict=False)
        for atom in molecule.GetAtoms():
            _label(atom)
        molecule.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(molecule)
        rdDepictor.Compute2DCoords(molecule)
        drawer: Any = rdMolDraw2D.MolDraw2DSVG(*PATTERN_SIZE)
        set_options(drawer, fixedBondLength=42, minFontSize=18, maxFontSize=18)
        drawer.DrawMolecule(rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False, addChiralHs=False))
        drawer.FinishDrawing()
    text = re.sub(r"<\?xml.*?\?>\s*|<!--.*?-->\s*", "", drawer.GetDrawingText(), flags=re.DOTALL)
    return str(text)


def _label(atom: Any) -> None:
    """What to write: hydrogens except on carbon, Ar for an aromatic atom whose ring is not part of the fragment."""
    is_carbon = atom.GetSymbol() == "C"
    written = atom.GetNumExplicitHs() if atom.GetIsAromatic() else atom.GetTotalNumHs()
    atom.SetNumExplicitHs(0 if is_carbon else written)
    atom.SetNoImplicit(True)
    if not is_carbon or atom.GetDegree() > 1:
        return
    if not any(bond.GetIsAromatic() for bond in atom.GetBonds()):
        atom.SetProp("_displayLabel", "Ar" if atom.GetIsAromatic() else "C")


def _as_drawn(occurrence: Occurrence) -> tuple[Graph, list[int]]:
    """The graph as it is, or a molecule's heavy atoms in the order of a SMILES, with where the fragment lies."""
    graph, nodes = occurrence.graph, occurrence.nodes
    molecule = to_molecule(graph)
    if molecule is None:
        return graph, list(nodes)
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        for atom in molecule.GetAtoms():
            atom.SetIntProp("node", atom.GetIdx())
        molecule = Chem.RemoveHs(molecule, sanitize=False)
        smiles = Chem.MolToSmiles(molecule, doRandom=False)
    order = molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
    place = {molecule.GetAtomWithIdx(atom).GetIntProp("node"): i for i, atom in enumerate(order)}
    try:
        heavy = from_smiles([smiles], names=[graph.name])[0]
    except DataError:  # a molecule that RDKit took as it was, with more bonds than it should have
        return graph, list(nodes)
    return heavy, [place[node] for node in nodes if node in place]
