"""Fragments -> their names in plain words: functional groups for molecules, shapes for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from egocnn.data.molecules import to_molecule
from egocnn.explain.patterns.chemistry import name_atoms_of, to_smiles
from egocnn.explain.patterns.labelled import Labelled
from egocnn.explain.patterns.samples import Sample

LOOKED_AT = 20
AGREED = 0.8
"""A name stands when it holds in this share of the occurrences looked at."""
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
    kinds = (
        (N == 2, "edge"),
        (N == 3 and E == 3, "triangle"),
        (E == N * (N - 1) // 2, f"clique of {N} nodes"),
        (E == N and degree[0] == 2, f"ring of {N} nodes"),
        (E == N - 1 and degree[-1] == 2, f"path of {N} nodes"),
        (E == N - 1 and degree[-1] == N - 1, f"star with {N - 1} arms"),
        (E == N - 1, f"tree of {N} nodes"),
        (True, f"{N} nodes, {E} edges"),
    )
    kind = next(name for fits, name in kinds if fits)
    counts = Counter(label for label in shape.labels if label)
    texts = [label if count == 1 else f"{label} × {count}" for label, count in sorted(counts.items())]
    return f"{kind} ({', '.join(texts)})" if texts else kind
