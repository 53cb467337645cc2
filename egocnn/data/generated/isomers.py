"""Carbon chains with methyl groups: arm length or chain length -> symmetric and asymmetric molecules.

Carbons of an arm are counted from the centre: position 0 is the centre itself, position a the end of an arm of
length a. A decoration says how many methyls, 0 to 2, the positions 1 to a - 1 carry. A methyl at position a - 1 is the
twin of the end of its arm: no model can tell the two apart, and the critical structure names the methyl alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import factorial, prod
from typing import TypeAlias

import numpy as np

from egocnn.data.generated.molecules import Molecule

Decoration: TypeAlias = tuple[int, ...]

MOST_DECORATIONS = 3**10  # Longer arms have more decorations than are worth listing: some of them are drawn.


def isomers(arm: int, count: int, random: np.random.Generator) -> tuple[list[Molecule], list[Molecule]]:
    """Symmetric and asymmetric molecules on a chain of 2 arm + 1 carbons, ``count`` of each or all there are.

    In an asymmetric one, a methyl that stands alone on its carbon has moved to a bare carbon of the same arm. Both
    classes hold equally many molecules with m single and d double methyls an arm, for every m and d: neither counting
    atoms nor looking at one arm tells the classes apart.
    """
    places = arm - 1  # the end of an arm stays free: a methyl there would lengthen the chain
    by_kind: dict[Decoration, list[Decoration]] = {}
    for decoration in _decorations(places, count, random):
        by_kind.setdefault(tuple(sorted(decoration)), []).append(decoration)
    symmetric, asymmetric = [], []
    for kind, decorations in by_kind.items():
        n_each = min(len(decorations), _n_moved_pairs(kind))
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


def _n_moved_pairs(kind: Decoration) -> int:
    """How many pairs of arms of this kind differ in the place of one single methyl, whichever arm comes first."""
    counts = Counter(kind)
    arrangements = factorial(len(kind)) // prod(map(factorial, counts.values()))
    return arrangements * counts[0] * counts[1] // 2


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
    return _branched_chain(
        name=f"isomer a{arm} {_signed(left)} | {_signed(right)}",
        kind="symmetric" if left == right else "asymmetric",
        length=2 * arm + 1,
        branches=branches,
        critical=critical,
    )


def methylalkanes(length: int, count: int, random: np.random.Generator) -> tuple[list[Molecule], list[Molecule]]:
    """The chain with one methyl at its centre, and up to ``count`` with it elsewhere but at an end."""
    centre = (length + 1) // 2  # chemists count the carbons of a chain from 1
    elsewhere = random.permutation(np.arange(2, centre))[:count].tolist()

    def with_methyl_at(place: int) -> Molecule:
        return _branched_chain(
            name=f"C{length + 1}H{2 * length + 4} {place}-methyl",
            kind="symmetric" if place == centre else "asymmetric",
            length=length,
            branches=[place - 1],
            critical=[place - 1, length],
        )

    return [with_methyl_at(centre)], [with_methyl_at(place) for place in elsewhere]


def _branched_chain(*, name: str, kind: str, length: int, branches: Sequence[int], critical: Sequence[int]) -> Molecule:
    """A chain of carbons 0 to length - 1, and a methyl on each of the branches, numbered on in their order."""
    chain = [(carbon - 1, carbon) for carbon in range(1, length)]
    methyls = [(carbon, length + number) for number, carbon in enumerate(branches)]
    elements = "C" * (length + len(branches))
    return Molecule(name=name, kind=kind, elements=elements, bonds=(*chain, *methyls), critical=tuple(critical))


def _signed(decoration: Decoration) -> str:
    """Methyls of an arm as a chemist counts them: +2+2+5 is two at position 2 and one at position 5."""
    return "".join(f"+{position}" * methyls for position, methyls in enumerate(decoration, 1))
