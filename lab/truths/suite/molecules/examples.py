"""A molecule of the pool -> an example: the graph that egocnn's own SMILES reader gives, with its target."""

from __future__ import annotations

from typing import Any

from egocnn.data.sources.smiles import atom_words, bond_words
from lab.truths.suite.molecules.pool import PooledMolecule
from lab.truths.suite.task import Example


def molecule_example(pooled: PooledMolecule, target: str | float, **known: Any) -> Example:
    """Atoms in the order of the SMILES, labels as the reader writes them; ``known`` is what is known of the truth."""
    molecule = pooled.molecule
    ends = (sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in molecule.GetBonds())
    bonds = sorted((*pair, label) for pair, label in zip(ends, bond_words(molecule), strict=True))
    return Example(
        name=pooled.name,
        n_nodes=molecule.GetNumAtoms(),
        edges=tuple((u, v) for u, v, _ in bonds),
        target=target,
        node_label=tuple(atom_words(atom) for atom in molecule.GetAtoms()),
        edge_label=tuple(label for _, _, label in bonds),
        smiles=pooled.smiles,
        **known,
    )
