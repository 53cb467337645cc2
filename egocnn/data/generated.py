"""Alkanes and alcohols whose critical structure is known, generated from a seed: AlcoholsConfig or text -> Graphs,
split into training, validation and test. Molecules are trees of single bonds; isomorphic ones have one text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from egocnn.data.arrays import Bools, Ints, pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS, rule
from egocnn.errors import ConfigError, DataError

Tree: TypeAlias = list[list[int]]  # the neighbours of every node
Bonds: TypeAlias = tuple[tuple[int, int], ...]
VALENCE = {"C": 4, "O": 2}
ELEMENTS = ("C", "H", "O")
LIMITS = (1, 500)  # carbons
IN_THE_LAB = ("isomers", "methylalkanes")  # families of the paper's experiments
SMALL = 0.35  # the share of the sizes, from the smallest up, that training sizes are among
PER_TEST_SIZE = 2  # molecules of either class, of a size that is held out
PATIENCE = 1000  # known skeletons met in a row before a size is held to have no others
TRAIN, VALIDATION, TEST = range(len(PARTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Molecule:
    """Carbons and oxygens in a tree of single bonds; hydrogens fill what their valence leaves free."""

    name: str
    kind: str  # its class by name
    elements: str  # one letter per heavy atom
    bonds: Bonds
    critical: tuple[int, ...]  # heavy atoms that decide the class; a terminal one with its hydrogens and all its bonds

    @property
    def smiles(self) -> str:
        """The molecule as text, which runs along a longest chain."""
        tree = build_tree(len(self.elements), self.bonds)
        root = longest_chain(tree)[0]
        return subtree_texts(self.elements, tree, root)[root]


def build_tree(n_nodes: int, bonds: Iterable[tuple[int, int]]) -> Tree:
    """Bonds -> the neighbours of every node."""
    tree: Tree = [[] for _ in range(n_nodes)]
    for u, v in bonds:
        tree[u].append(v)
        tree[v].append(u)
    return tree


def walk(tree: Tree, root: int) -> tuple[list[int], list[int]]:
    """Nodes reached from the root, nearest first, and the parent of every node (-1: the root, or not reached)."""
    parent = [-1] * len(tree)
    order = [root]
    for node in order:
        for neighbour in tree[node]:
            if neighbour != parent[node]:
                parent[neighbour] = node
                order.append(neighbour)
    return order, parent


def longest_chain(tree: Tree) -> list[int]:
    """The nodes of one, from end to end: one end is farthest from node 0, and the other farthest from that."""
    end = walk(tree, 0)[0][-1]
    order, parent = walk(tree, end)
    chain = [order[-1]]
    while chain[-1] != end:
        chain.append(parent[chain[-1]])
    return chain


def centres(tree: Tree) -> list[int]:
    """The one node or the two in the middle of every longest chain."""
    chain = longest_chain(tree)
    return chain[(len(chain) - 1) // 2 : len(chain) // 2 + 1]


def subtree_texts(labels: Sequence[str], tree: Tree, root: int) -> list[str]:
    """For every node the SMILES of what hangs on it, seen from the root. Branches stand in one fixed order, the longest
    last and without brackets: equal texts mean isomorphic subtrees and the reverse (Aho, Hopcroft and Ullman)."""
    order, parent = walk(tree, root)
    branches: list[list[str]] = [[] for _ in tree]
    texts = [""] * len(tree)
    for node in reversed(order):
        *side, main = sorted(branches[node], key=lambda text: (len(text), text)) or [""]
        texts[node] = labels[node] + "".join(f"({text})" for text in side) + main
        if node != root:
            branches[parent[node]].append(texts[node])
    return texts


def canonical_text(labels: Sequence[str], tree: Tree) -> str:
    """Equal for two free trees if and only if they are isomorphic, labels included."""
    return min(subtree_texts(labels, tree, centre)[centre] for centre in centres(tree))


def _atoms(molecule: Molecule, *, hydrogens: bool) -> tuple[Ints, Ints, Bools, Bools]:
    """Element of every node, edges, and which of either are critical; node ids count from 0."""
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
    return element, edges, critical, ending[edges].any(axis=1)


def to_graphs(
    molecules: Sequence[Molecule], part: Sequence[int], class_names: tuple[str, str], *, hydrogens: bool, seed: int
) -> Graphs:
    """Every molecule as a graph, its nodes in a random order; ``hydrogens``: they are nodes, too."""
    graphs = [_atoms(molecule, hydrogens=hydrogens) for molecule in molecules]
    elements, bonds, node_truth, edge_truth = zip(*graphs, strict=True)
    counts, element = np.array([len(one) for one in elements]), np.concatenate(elements)
    edges = np.concatenate([one + start for one, start in zip(bonds, pointers(counts), strict=False)])
    graph_of = np.repeat(np.arange(len(graphs)), counts)
    order = np.lexsort((np.random.default_rng(seed).random(len(element)), graph_of))  # shuffled in each graph
    present, label = np.unique(element[order], return_inverse=True)
    columns: dict[str, Any] = {"node_label": label.astype(np.int32), "node_truth": np.concatenate(node_truth)[order]}
    columns |= {"edge_label": np.zeros(len(edges), np.int32), "edge_truth": np.concatenate(edge_truth)}
    columns |= {"node_label_names": [ELEMENTS[e] for e in present], "edge_label_names": ["single"]}
    columns |= {"names": [one.name for one in molecules], "smiles": [one.smiles for one in molecules]}
    columns |= {"target": [class_names.index(one.kind) for one in molecules], "class_names": class_names}
    columns |= {"group": np.arange(len(molecules)), "part": np.array(part)}  # no two are the same molecule
    return Graphs.from_edges(node_counts=counts, edges=np.argsort(order)[edges], **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlcoholsConfig:
    """Which alkanes and alcohols to generate."""

    sizes: tuple[int, int] = (3, 82)  # carbons, fewest and most
    per_size: int = 16  # distinct molecules per class and trained size at most; small sizes have fewer
    seed: int = 0  # every random choice follows from it

    def __post_init__(self) -> None:
        for name, most in (("per_size", 10_000), ("seed", 2**63 - 1)):
            least, number = int(name == "per_size"), getattr(self, name)
            rule(least <= number <= most, f"{name} must lie between {least} and {most}, got {number}", ConfigError)
        (first, last), (least, most) = self.sizes, LIMITS
        if not least <= first <= last <= most:
            raise ConfigError(f"sizes (carbons) must lie between {least} and {most}, got {first}-{last}")
        rule(first != last, f"sizes {first}-{last} leave none to hold out; give more", ConfigError)


def read_compounds(source: str) -> Graphs:
    """Generate from text: ``compounds:alcohols``, ``compounds:alcohols:sizes=3-8,per_size=4,seed=1``."""
    family, colon, options = source.partition(":")[2].partition(":")
    elsewhere = f"{source}: {family} belong to the paper's experiments and live in the lab: lab.families, in a clone"
    rule(family not in IN_THE_LAB, elsewhere)
    rule(family == "alcohols", f"{source}: no family is called {family!r}; there are alcohols")
    try:
        config = AlcoholsConfig(**parse_options(source, options if colon else None))
    except ConfigError as error:
        raise DataError(f"{source}: {error}") from None
    return generate(config)


def parse_options(source: str, options: str | None) -> dict[str, Any]:
    """``sizes=3-8,seed=1`` -> the fields of the settings that it names; errors begin with ``source``."""
    given: dict[str, Any] = {}
    known = [field.name for field in fields(AlcoholsConfig)]
    for option in [] if options is None else options.split(","):
        name, equals, text = (piece.strip() for piece in option.partition("="))
        name = name.replace("-", "_")
        wanted = f"write NAME=VALUE, with NAME one of {', '.join(known)}"
        rule(equals and name in known, f"{source}: {option!r} is no option; {wanted}")
        rule(name not in given, f"{source}: {name} is given twice")
        numbers = text.split("-") if name == "sizes" else [text]
        are_whole = all(n.isascii() and n.isdecimal() and len(n) < 20 for n in numbers)
        wanted = "two whole numbers such as 3-8" if name == "sizes" else "a whole number"
        rule(len(numbers) <= 2 and are_whole, f"{source}: {name} must be {wanted}, got {text!r}")
        given[name] = (int(numbers[0]), int(numbers[-1])) if name == "sizes" else int(text)
    return given


def generate(config: AlcoholsConfig) -> Graphs:
    """Alkanes and alcohols in turn, ascending in size, with class, critical structure and part. The test part has every
    fourth size of the training range and all beyond it; of ten molecules of a class in training sizes one validates."""
    first, last = config.sizes
    n_small = min(max(round(SMALL * (last + 1 - first)), 1), last - first)
    molecules: list[Molecule] = []
    parts: list[int] = []
    counted = 0  # molecules of either class so far, in sizes that are trained on
    for number, size in enumerate(range(first, last + 1)):
        is_trained = number < n_small and number % 4 != 3
        count = config.per_size if is_trained else PER_TEST_SIZE
        pairs = alkanes_and_alcohols(size, count, np.random.default_rng([config.seed, size]))
        own = np.full(len(pairs), TEST)
        if is_trained:
            position = counted + np.random.default_rng([config.seed, size, 1]).permutation(len(pairs))
            own = np.where(position % 10 == 4, VALIDATION, TRAIN)
            counted += len(pairs)
        molecules += [molecule for pair in pairs for molecule in pair]
        parts += np.repeat(own, 2).tolist()  # an alcohol and the alkane of its skeleton share a part
    return to_graphs(molecules, parts, ("alkane", "alcohol"), hydrogens=True, seed=config.seed)


def alkanes_and_alcohols(n_carbons: int, count: int, random: np.random.Generator) -> list[tuple[Molecule, Molecule]]:
    """One alkane and one alcohol on each of ``count`` skeletons or all there are; first the chain, OH at its end."""
    pairs: list[tuple[Molecule, Molecule]] = []
    carbons, formula = "C" * n_carbons, f"C{n_carbons}" if n_carbons > 1 else "C"
    for number, bonds in enumerate(_skeletons(n_carbons, count, random), start=1):
        tree = build_tree(n_carbons, bonds)
        free = [carbon for carbon, neighbours in enumerate(tree) if len(neighbours) < VALENCE["C"]]
        holders = [n_carbons - 1] if number == 1 else free
        holder = holders[random.integers(len(holders))]
        name = f"{formula}H{2 * n_carbons + 2} #{number}"
        alkane = Molecule(name=name, kind="alkane", elements=carbons, bonds=bonds, critical=())
        name = f"{formula}H{2 * n_carbons + 1}OH #{number}"
        bonds = (*bonds, (holder, n_carbons))
        alcohol = Molecule(name=name, kind="alcohol", elements=carbons + "O", bonds=bonds, critical=(n_carbons,))
        pairs.append((alkane, alcohol))
    return pairs


def _skeletons(n_carbons: int, count: int, random: np.random.Generator) -> list[Bonds]:
    """The straight chain, then random branched ones, no two isomorphic."""
    chain: Bonds = tuple((carbon - 1, carbon) for carbon in range(1, n_carbons))
    found, known_in_a_row = {canonical_text("C" * n_carbons, build_tree(n_carbons, chain)): chain}, 0
    while len(found) < count and n_carbons > 3 and known_in_a_row < PATIENCE:
        skeleton = _grow(n_carbons, random)
        key = canonical_text("C" * n_carbons, build_tree(n_carbons, skeleton))
        known_in_a_row = 0 if found.setdefault(key, skeleton) is skeleton else known_in_a_row + 1
    return list(found.values())


def _grow(n_carbons: int, random: np.random.Generator) -> Bonds:
    """Add carbon after carbon: mostly to the last one for a long molecule, mostly anywhere for a bushy one."""
    bushiness, *draws = random.random(2 * n_carbons + 1).tolist()
    bonds: list[tuple[int, int]] = []
    free, degree = [0], [0] * n_carbons
    for carbon in range(1, n_carbons):
        anywhere, where = draws[2 * carbon : 2 * carbon + 2]
        holder = free[int(where * len(free))] if anywhere < bushiness else carbon - 1
        bonds.append((holder, carbon))
        degree[holder] += 1
        degree[carbon] = 1
        if degree[holder] == VALENCE["C"]:
            free.remove(holder)
        free.append(carbon)
    return tuple(bonds)
