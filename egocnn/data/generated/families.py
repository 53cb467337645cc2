"""A size -> the molecules of a family: alkanes and alcohols, isomers with methyl groups, chains with one methyl.
Carbons of an isomer's arm are counted from the centre: position 0 is the centre itself, position a the end of an arm of
length a. A decoration says how many methyls, 0 to 2, the positions 1 to a - 1 carry. A methyl at position a - 1 is the
twin of the end of its arm: no model can distinguish the two, and the critical structure names the methyl alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial, prod
from typing import TypeAlias

import numpy as np

Tree: TypeAlias = list[list[int]]  # the neighbours of every node
Bonds: TypeAlias = tuple[tuple[int, int], ...]
Decoration: TypeAlias = tuple[int, ...]
VALENCE = {"C": 4, "O": 2}
MOST_DECORATIONS = 3**10  # longer arms have more decorations than are worth listing: some of them are drawn
PATIENCE = 1000  # known skeletons met in a row before a size is held to have no others


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


def alkanes_and_alcohols(
    n_carbons: int, count: int, random: np.random.Generator
) -> tuple[list[Molecule], list[Molecule]]:
    """One alkane and one alcohol on each of ``count`` skeletons or all there are; first the chain, OH at its end."""
    alkanes, alcohols = [], []
    carbons, formula = "C" * n_carbons, f"C{n_carbons}" if n_carbons > 1 else "C"
    for number, bonds in enumerate(_skeletons(n_carbons, count, random), start=1):
        tree = build_tree(n_carbons, bonds)
        free = [carbon for carbon, neighbours in enumerate(tree) if len(neighbours) < VALENCE["C"]]
        holders = [n_carbons - 1] if number == 1 else free
        holder = holders[random.integers(len(holders))]
        name = f"{formula}H{2 * n_carbons + 2} #{number}"
        alkanes.append(Molecule(name=name, kind="alkane", elements=carbons, bonds=bonds, critical=()))
        name = f"{formula}H{2 * n_carbons + 1}OH #{number}"
        bonds = (*bonds, (holder, n_carbons))
        alcohols.append(Molecule(name=name, kind="alcohol", elements=carbons + "O", bonds=bonds, critical=(n_carbons,)))
    return alkanes, alcohols


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


def isomers(arm: int, count: int, random: np.random.Generator) -> tuple[list[Molecule], list[Molecule]]:
    """Symmetric and asymmetric molecules on a chain of 2 arm + 1 carbons, ``count`` of each or all there are. In an
    asymmetric one, a methyl alone on its carbon has moved to a bare carbon of the same arm. Both classes have equally
    many molecules with m single and d double methyls an arm: neither counts of atoms nor one arm tells them apart."""
    places = arm - 1  # the end of an arm stays free: a methyl there would lengthen the chain
    by_kind: dict[Decoration, list[Decoration]] = {}
    for decoration in _decorations(places, count, random):
        by_kind.setdefault(tuple(sorted(decoration)), []).append(decoration)
    symmetric, asymmetric = [], []
    for kind, decorations in by_kind.items():
        counts = Counter(kind)
        arrangements = factorial(len(kind)) // prod(map(factorial, counts.values()))
        # at most as many as pairs of such arms differ in the place of one single methyl, whichever arm comes first
        n_each = min(len(decorations), arrangements * counts[0] * counts[1] // 2)
        symmetric += [_isomer(arm, decoration, decoration) for decoration in decorations[:n_each]]
        asymmetric += [_isomer(arm, *pair) for pair in _moved_pairs(kind, n_each, random)]
    return symmetric, asymmetric


def _decorations(places: int, count: int, random: np.random.Generator) -> list[Decoration]:
    """Distinct decorations with a methyl to move and a bare carbon to move it to, in ascending order."""
    if 3**places <= MOST_DECORATIONS:
        movable = [d for d in product(range(3), repeat=places) if 0 in d and 1 in d]
        drawn = random.permutation(len(movable))[:count]
        return [movable[i] for i in sorted(drawn.tolist())]
    found: set[Decoration] = set()
    while len(found) < count:
        decoration = tuple(random.integers(0, 3, places).tolist())
        if 0 in decoration and 1 in decoration:
            found.add(decoration)
    return sorted(found)


def _moved_pairs(kind: Decoration, count: int, random: np.random.Generator) -> list[tuple[Decoration, Decoration]]:
    """Distinct pairs of arms of one kind, of which a single methyl stands elsewhere on the other arm."""
    pairs: dict[tuple[Decoration, Decoration], None] = {}
    while len(pairs) < count:
        one = random.permutation(kind)
        other = one.copy()
        bare, single = random.choice(np.flatnonzero(one == 0)), random.choice(np.flatnonzero(one == 1))
        other[bare], other[single] = 1, 0
        first, second = sorted((tuple(one.tolist()), tuple(other.tolist())))
        pairs[first, second] = None  # the same molecule whichever arm comes first
    return list(pairs)


def _isomer(arm: int, left: Decoration, right: Decoration) -> Molecule:
    branches, critical = [arm], [arm, 2 * arm + 1] if left == right else []
    for side, mine, others in ((-1, left, right), (1, right, left)):
        for position, (here, there) in enumerate(zip(mine, others, strict=True), 1):
            methyls = range(2 * arm + 1 + len(branches), 2 * arm + 1 + len(branches) + here)
            branches += [arm + side * position] * here
            if left == right or here > there:
                critical += methyls
    # methyls of an arm as a chemist counts them: +2+2+5 is two at position 2 and one at position 5
    signed = ("".join(f"+{place}" * methyls for place, methyls in enumerate(side, 1)) for side in (left, right))
    return _branched_chain(f"isomer a{arm} {' | '.join(signed)}", left == right, 2 * arm + 1, branches, critical)


def methylalkanes(length: int, count: int, random: np.random.Generator) -> tuple[list[Molecule], list[Molecule]]:
    """The chain with one methyl at its centre, and up to ``count`` with it elsewhere but at an end."""
    centre = (length + 1) // 2  # chemists count the carbons of a chain from 1
    elsewhere = random.permutation(np.arange(2, centre))[:count].tolist()

    def with_methyl_at(place: int) -> Molecule:
        name = f"C{length + 1}H{2 * length + 4} {place}-methyl"
        return _branched_chain(name, place == centre, length, [place - 1], [place - 1, length])

    return [with_methyl_at(centre)], [with_methyl_at(place) for place in elsewhere]


def _branched_chain(
    name: str, is_symmetric: bool, length: int, branches: Sequence[int], critical: Sequence[int]
) -> Molecule:
    """A chain of carbons 0 to length - 1, and a methyl on each of the branches, numbered on in their order."""
    bonds = [(carbon - 1, carbon) for carbon in range(1, length)]
    bonds += [(carbon, length + number) for number, carbon in enumerate(branches)]
    kind, elements = "symmetric" if is_symmetric else "asymmetric", "C" * (length + len(branches))
    return Molecule(name=name, kind=kind, elements=elements, bonds=tuple(bonds), critical=tuple(critical))


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
