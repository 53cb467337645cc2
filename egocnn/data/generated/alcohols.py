"""Alkanes and alcohols of one size: a number of carbons -> pairs of molecules that differ in one OH group alone."""

from __future__ import annotations

import numpy as np

from egocnn.data.generated.molecules import VALENCE, Molecule
from egocnn.data.generated.trees import Tree, build_tree, canonical_text

PATIENCE = 1000  # Known skeletons met in a row before a size is held to have no others.


def alkanes_and_alcohols(
    n_carbons: int, count: int, random: np.random.Generator
) -> tuple[list[Molecule], list[Molecule]]:
    """One alkane and one alcohol on each of ``count`` distinct skeletons, or on all that a small size has.

    The first pair is the straight chain, with the OH at its end; elsewhere it sits on any carbon with a bond to spare.
    """
    alkanes, alcohols = [], []
    for number, skeleton in enumerate(_skeletons(n_carbons, count, random), start=1):
        tree = build_tree(n_carbons, skeleton)
        holders = [n_carbons - 1] if number == 1 else _free_carbons(tree)
        holder = holders[random.integers(len(holders))]
        carbons = "C" * n_carbons
        formula = f"C{n_carbons}" if n_carbons > 1 else "C"
        alkanes.append(
            Molecule(
                name=f"{formula}H{2 * n_carbons + 2} #{number}",
                kind="alkane",
                elements=carbons,
                bonds=skeleton,
                critical=(),
            )
        )
        alcohols.append(
            Molecule(
                name=f"{formula}H{2 * n_carbons + 1}OH #{number}",
                kind="alcohol",
                elements=carbons + "O",
                bonds=(*skeleton, (holder, n_carbons)),
                critical=(n_carbons,),
            )
        )
    return alkanes, alcohols


def _skeletons(n_carbons: int, count: int, random: np.random.Generator) -> list[tuple[tuple[int, int], ...]]:
    """The straight chain, then random branched ones, no two isomorphic."""

    def key(skeleton: tuple[tuple[int, int], ...]) -> str:
        return canonical_text("C" * n_carbons, build_tree(n_carbons, skeleton))

    chain = tuple((carbon - 1, carbon) for carbon in range(1, n_carbons))
    found = {key(chain): chain}
    known_in_a_row = 0
    while len(found) < count and n_carbons > 3 and known_in_a_row < PATIENCE:
        skeleton = _grow(n_carbons, random)
        known_in_a_row = 0 if found.setdefault(key(skeleton), skeleton) is skeleton else known_in_a_row + 1
    return list(found.values())


def _grow(n_carbons: int, random: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Add carbon after carbon: mostly to the last one for a long molecule, mostly anywhere for a bushy one."""
    bushiness, *draws = random.random(2 * n_carbons + 1).tolist()
    bonds: list[tuple[int, int]] = []
    free = [0]
    degree = [0] * n_carbons
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


def _free_carbons(tree: Tree) -> list[int]:
    return [carbon for carbon, neighbours in enumerate(tree) if len(neighbours) < VALENCE["C"]]
