"""A molecule of the pool -> an example: the graph that egocnn's own SMILES reader gives, with its target."""

from __future__ import annotations

from typing import Any

from egocnn.data.sources.smiles import atom_label, bond_label
from lab.truths.suite.molecules.pool import PooledMolecule
from lab.truths.suite.task import Example


def molecule_example(pooled: PooledMolecule, target: str | float, **known: Any) -> Example:
    """Atoms in the order of the SMILES, labels as the reader writes them; ``known`` is what is known of the truth."""
    bonds = [(*sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx())), bond_label(b)) for b in pooled.molecule.GetBonds()]
    bonds.sort()
    return Example(
        name=pooled.name,
        n_nodes=pooled.molecule.GetNumAtoms(),
        edges=tuple((u, v) for u, v, _ in bonds),
        target=target,
        node_label=tuple(atom_label(atom) for atom in pooled.molecule.GetAtoms()),
        edge_label=tuple(label for _, _, label in bonds),
        smiles=pooled.smiles,
        **known,
    )
