"""CompoundsConfig -> Graphs: a family of molecules, split into training, validation and test, hydrogens if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from egocnn.data.arrays import Bools, Ints, pointers
from egocnn.data.generated.compounds_config import CompoundsConfig, Family, parse_config
from egocnn.data.generated.families import VALENCE, Molecule, alkanes_and_alcohols, isomers, methylalkanes
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS

ELEMENTS = ("C", "H", "O")
MAKERS = {"alcohols": alkanes_and_alcohols, "isomers": isomers, "methylalkanes": methylalkanes}
TRAIN, VALIDATION, TEST = range(len(PARTS))
PARTS_OF_TEN = np.array([TRAIN, TRAIN, TEST, TRAIN, VALIDATION, TRAIN, TRAIN, TEST, TRAIN, TRAIN])
"""Parts of ten consecutive molecules of one class, where molecules are held out."""


def read_compounds(source: str) -> Graphs:
    """Generate from text: ``compounds:alcohols``, ``compounds:isomers:sizes=3-8,hydrogens=yes,copies=5,seed=1``."""
    return generate(parse_config(source))


def generate(config: CompoundsConfig) -> Graphs:
    """The compounds of a family, ascending in size and the classes alternating, with class, critical structure, part.

    Where sizes are held out, the test part has every fourth size of the training range and all beyond it.
    """
    settings = config.settings
    training = _training_sizes(settings)
    pattern = PARTS_OF_TEN
    if settings.hold_out != "molecules":
        pattern = np.where(PARTS_OF_TEN == TEST, TRAIN, PARTS_OF_TEN)
    molecules: list[Molecule] = []
    parts: list[int] = []
    counted = [0, 0]  # molecules of either class so far, in sizes that are trained on
    for size in settings.size_list:
        is_trained = size in training
        count = settings.per_size if is_trained else settings.per_test_size
        classes = MAKERS[config.family](size, count, np.random.default_rng([config.seed, size]))
        with_parts = []
        for which, members in enumerate(classes):
            # the same shuffle for both classes: an alcohol and the alkane of its skeleton share a part
            position = counted[which] + np.random.default_rng([config.seed, size, 1]).permutation(len(members))
            own = pattern[position % len(pattern)] if is_trained else np.full(len(members), TEST)
            counted[which] += len(members) if is_trained else 0
            with_parts.append(zip(members, own.tolist(), strict=True))
        for molecule, part in (one for pair in zip_longest(*with_parts) for one in pair if one is not None):
            molecules.append(molecule)
            parts.append(part)
    return _build(molecules, np.array(parts), config)


def _training_sizes(settings: Family) -> set[int]:
    sizes = settings.size_list
    if settings.hold_out == "molecules":
        return set(sizes)
    n_small = min(max(round(settings.training_share * len(sizes)), 1), len(sizes) - 1)
    return {size for i, size in enumerate(sizes[:n_small]) if i % 4 != 3}


@dataclass(frozen=True, slots=True)
class _Atoms:
    """The nodes and edges of one molecule, node ids counted from 0."""

    element: Ints
    edges: Ints
    node_truth: Bools
    edge_truth: Bools


def _atoms(molecule: Molecule, *, hydrogens: bool) -> _Atoms:
    n_atoms = len(molecule.elements)
    element = np.array([ELEMENTS.index(letter) for letter in molecule.elements])
    edges = np.array(molecule.bonds, np.int64).reshape(-1, 2)
    degree = np.bincount(edges.ravel(), minlength=n_atoms)
    critical = np.zeros(n_atoms, bool)
    critical[list(molecule.critical)] = True
    ending = critical & (degree == 1)
    if hydrogens:
        free = np.array([VALENCE[letter] for letter in molecule.elements]) - degree
        holder = np.repeat(np.arange(n_atoms), free)
        edges = np.concatenate([edges, np.stack([holder, n_atoms + np.arange(len(holder))], axis=1)])
        element = np.concatenate([element, np.full(len(holder), ELEMENTS.index("H"))])
        critical, ending = np.concatenate([critical, ending[holder]]), np.concatenate([ending, ending[holder]])
    return _Atoms(element, edges, critical, ending[edges].any(axis=1))


def _build(molecules: Sequence[Molecule], part: Ints, config: CompoundsConfig) -> Graphs:
    """Every molecule ``config.copies`` times as a graph, each time with its nodes in another random order."""
    settings, copies = config.settings, config.copies
    graphs = [_atoms(molecule, hydrogens=settings.hydrogens) for molecule in molecules for _ in range(copies)]
    molecule_of = np.repeat(np.arange(len(molecules)), copies)
    counts = np.array([len(one.element) for one in graphs])
    element = np.concatenate([one.element for one in graphs])
    edges = np.concatenate([one.edges + start for one, start in zip(graphs, pointers(counts), strict=False)])

    graph_of = np.repeat(np.arange(len(graphs)), counts)
    order = np.lexsort((np.random.default_rng(config.seed).random(len(element)), graph_of))  # shuffled in each graph
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    present, label = np.unique(element[order], return_inverse=True)
    names = [m.name if copy == 0 else f"{m.name}, copy {copy + 1}" for m in molecules for copy in range(copies)]
    return Graphs.from_edges(
        node_counts=counts,
        edges=place[edges],
        names=names,
        edge_label=np.zeros(len(edges), np.int32),
        edge_label_names=("single",),
        edge_truth=np.concatenate([one.edge_truth for one in graphs]),
        node_label=label.astype(np.int32),
        node_label_names=tuple(ELEMENTS[e] for e in present),
        node_truth=np.concatenate([one.node_truth for one in graphs])[order],
        target=np.array([settings.class_names.index(molecule.kind) for molecule in molecules])[molecule_of],
        class_names=settings.class_names,
        group=molecule_of,
        part=part[molecule_of],
        smiles=tuple(smiles for molecule in molecules for smiles in [molecule.smiles] * copies),
    )
