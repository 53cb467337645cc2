"""Where to draw the nodes of a graph: Graph -> (N, 2) positions, y upwards, edges about one unit long."""

from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule

ASPECT = 4 / 3  # Width to height of the picture that a layout is meant to fill.
MOST_FOR_STRESS = 500  # Nodes of a component whose distances are all looked at; the work grows with their square.
STRESS_STEPS = 200
PIVOTS = 24
GAP = 1.2  # Free space between components, in edge lengths.
MOST_ATOMS = 500  # Of a molecule without SMILES that RDKit lays out: larger ones take it minutes.
MOST_RINGS = 200  # Of any molecule that RDKit lays out: it takes minutes to place several hundreds beside each other.
LONGEST_STRIP = 7.0  # Length to width from which a molecule is folded like a measuring rule.


def positions(graph: Graph, *, seed: int = 0) -> Floats:
    """(N, 2) by graph and seed; molecules as chemists draw them, other graphs by distances, components side by side."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    N, molecule = graph.n_nodes, molecule_of(graph)
    if molecule is not None:
        return depiction(molecule)
    if N == 0:
        return np.zeros((0, 2))
    u, v = graph.edges[graph.edges[:, 0] != graph.edges[:, 1]].T
    adjacency = csr_array((np.ones(2 * len(u)), (np.append(u, v), np.append(v, u))), shape=(N, N))
    component = connected_components(adjacency, directed=False)[1]
    nodes_of = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    components: list[Ints] = sorted(nodes_of, key=lambda nodes: -len(nodes))
    generator = np.random.default_rng(seed)
    placed = np.zeros((N, 2))
    for nodes in components:
        if len(nodes) > 2:
            placed[nodes] = _place_component(adjacency[nodes][:, nodes], generator)
        elif len(nodes) == 2:
            placed[nodes] = [[-0.5, 0.0], [0.5, 0.0]]
    return _packed(placed, components)


def molecule_of(graph: Graph) -> Any | None:
    """The molecule that the graph is, atoms in the order of its nodes; None where it is none, and without RDKit."""
    rings = len(graph.edges) - graph.n_nodes + 1
    is_large = graph.smiles is None and graph.n_nodes > MOST_ATOMS
    return None if is_large or rings > MOST_RINGS else to_molecule(graph)


def depiction(molecule: Any) -> Floats:
    """(N, 2) where chemists put the atoms, bonds of length 1"""
    from rdkit.Chem import rdDepictor

    rdDepictor.Compute2DCoords(molecule, canonOrient=True, useRingTemplates=True)
    rdDepictor.StraightenDepiction(molecule)  # most bonds along multiples of 30 degrees
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    placed = np.array(molecule.GetConformer().GetPositions()[:, :2])
    return _folded(_unit_edges(placed, np.array(bonds, np.int64).reshape(-1, 2)))


def _folded(placed: Floats) -> Floats:
    """Lay a strip that is far longer than wide to and fro, so that its parts can be drawn several times as large."""
    length, width = np.ptp(placed, axis=0) + 1.0
    if length < LONGEST_STRIP * width:
        return placed
    radius = 1.1 * width + 0.5
    rows = max(2, round(np.sqrt(length / (2 * radius) / ASPECT)))
    bend = np.pi * radius
    straight = max((length - (rows - 1) * bend) / rows, 0.0)
    along = placed[:, 0] - placed[:, 0].min()
    across = placed[:, 1] - (placed[:, 1].min() + placed[:, 1].max()) / 2
    row = np.minimum(along // (straight + bend), rows - 1)
    along = along - row * (straight + bend)
    bent = (along > straight) & (row < rows - 1)
    angle = np.where(bent, np.maximum(along - straight, 0.0) / radius, 0.0)
    # every second row runs backwards, mirrored left to right; its upper side is then the strip's lower one
    back = row % 2 == 1
    across = np.where(back, -across, across)
    x = np.where(bent, straight + (radius + across) * np.sin(angle), along)
    y = np.where(bent, -radius + (radius + across) * np.cos(angle), across)
    return np.stack([np.where(back, straight - x, x), y - 2 * radius * row], axis=1)


def _place_component(adjacency: Any, generator: np.random.Generator) -> Floats:
    """Lay out a connected graph of three nodes or more."""
    from scipy.sparse.csgraph import dijkstra

    pairs = np.stack(adjacency.nonzero(), axis=1)
    if adjacency.shape[0] <= MOST_FOR_STRESS:
        distances = dijkstra(adjacency, unweighted=True)
        placed = _by_stress(distances, _project(distances, generator))
    else:
        # pivots, each as far as can be from those before it
        rows = [dijkstra(adjacency, unweighted=True, indices=int(np.bincount(pairs[:, 0]).argmax()))]
        while len(rows) < PIVOTS:
            rows.append(dijkstra(adjacency, unweighted=True, indices=int(np.min(rows, axis=0).argmax())))
        placed = _project(np.stack(rows), generator)
    return _upright(_unit_edges(placed, pairs))


def _project(distances: Floats, generator: np.random.Generator) -> Floats:
    """The plane in which squared distances from some nodes (P, N) vary most; noise parts what looks alike."""
    squared = distances**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    _, vectors = np.linalg.eigh(centred @ centred.T)
    plane: Floats = centred.T @ vectors[:, -2:]
    plane *= distances.mean() / max(float(plane.std()), 1e-9)
    plane += 0.05 * distances.mean() * generator.standard_normal(plane.shape)
    return plane


def _by_stress(distances: Floats, placed: Floats) -> Floats:
    """Bring distances on paper near distances in the graph, by majorisation: every step lowers the stress."""
    N = len(distances)
    weight = 1.0 / np.maximum(distances, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    solve = np.linalg.inv(laplacian + 1.0 / N) - 1.0 / N
    for _ in range(STRESS_STEPS):
        apart = np.sqrt((placed[:, None, 0] - placed[:, 0]) ** 2 + (placed[:, None, 1] - placed[:, 1]) ** 2)
        ratio = weight * distances / np.maximum(apart, 1e-9)
        moved = solve @ (ratio.sum(axis=1)[:, None] * placed - ratio @ placed)
        shift = float(np.abs(moved - placed).max())
        placed = moved
        if shift < 1e-3:
            break
    return placed


def _unit_edges(placed: Floats, edges: Ints) -> Floats:
    lengths = np.linalg.norm(placed[edges[:, 0]] - placed[edges[:, 1]], axis=1)
    mean = float(lengths.mean()) if len(lengths) else 1.0
    return placed / mean if mean > 1e-9 else placed


def _upright(placed: Floats) -> Floats:
    """Turn the longest axis to the horizontal, what lies farthest along each axis to its positive side."""
    centred = placed - placed.mean(axis=0)
    turned: Floats = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    farthest = turned[np.abs(turned).argmax(axis=0), [0, 1]]
    return turned * np.where(farthest < 0, -1, 1)


def _packed(placed: Floats, components: list[Ints]) -> Floats:
    """Components in rows, the largest first, in a page of about the right shape."""
    if len(components) <= 1:
        return placed
    corners = [placed[nodes].min(axis=0) for nodes in components]
    sizes = [np.ptp(placed[nodes], axis=0) + GAP for nodes in components]
    width = max(float(np.sqrt(ASPECT * sum(s[0] * s[1] for s in sizes))), max(float(s[0]) for s in sizes))
    x, y, height = 0.0, 0.0, 0.0
    packed = np.empty_like(placed)
    for i in sorted(range(len(components)), key=lambda i: (-float(sizes[i][1]), i)):
        if x > 0 and x + sizes[i][0] > width * 1.001:
            x, y, height = 0.0, y - height, 0.0
        packed[components[i]] = placed[components[i]] - corners[i] + [x, y - sizes[i][1]]
        x, height = x + float(sizes[i][0]), max(height, float(sizes[i][1]))
    return packed
