"""Carbon chains with methyl groups: arm length or chain length -> symmetric and asymmetric molecules.

Carbons of an arm are counted from the centre: position 0 is the centre itself, position a the end of an arm of
length a. A set of positions is held as the bits of one integer, position 1 the lowest. A methyl at position a - 1 is
the twin of the end of its arm: no model can tell the two apart, and the critical structure names the methyl alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from egocnn.compounds.molecules import Molecule


def isomers(arm: int, count: int, random: np.random.Generator) -> tuple[list[Molecule], list[Molecule]]:
    """Symmetric and asymmetric molecules on a chain of 2 arm + 1 carbons, ``count`` of each or all there are.

    Both classes hold equally many molecules with k methyls an arm for every k, and no arm is bare or full, as such an
    arm leaves nothing to move: neither counting atoms nor looking at one arm tells the classes apart.
    """
    places = arm - 1  # the end of an arm stays free: a methyl there would lengthen the chain
    n_decorations = 2**places - 2
    drawn = random.choice(n_decorations, size=min(count, n_decorations), replace=False) + 1
    by_methyls: dict[int, list[int]] = {k: [] for k in range(1, places)}
    for decoration in sorted(drawn.tolist()):
        by_methyls[decoration.bit_count()].append(decoration)
    symmetric, asymmetric = [], []
    for k, decorations in by_methyls.items():
        # fewer ways to differ than to agree happens once only: one methyl on arms of length 3
        n_each = min(len(decorations), comb(places, k) * k * (places - k) // 2)
        symmetric += [_isomer(arm, decoration, decoration) for decoration in decorations[:n_each]]
        asymmetric += [_isomer(arm, *pair) for pair in _moved_pairs(places, k, n_each, random)]
    return symmetric, asymmetric


def _moved_pairs(places: int, k: int, count: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Distinct pairs of arms with k methyls each, of which one stands elsewhere on the other arm."""
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < count:
        bits = [1 << place for place in random.permutation(places).tolist()]
        one, other = sum(bits[:k]), sum(bits[1 : k + 1])
        pairs[min(one, other), max(one, other)] = None  # the same molecule whichever arm comes first
    return list(pairs)


def _isomer(arm: int, left: int, right: int) -> Molecule:
    on_left, on_right = _positions(left), _positions(right)
    branches = [arm, *(arm - position for position in on_left), *(arm + position for position in on_right)]
    methyl_at = dict(zip(branches, range(2 * arm + 1, 2 * arm + 1 + len(branches)), strict=True))
    if left == right:
        critical = [arm, *methyl_at.values()]
    else:
        unmatched = [*(arm - p for p in _positions(left & ~right)), *(arm + p for p in _positions(right & ~left))]
        critical = [methyl_at[carbon] for carbon in unmatched]
    return _branched_chain(
        name=f"isomer a{arm} {_signed(on_left)} | {_signed(on_right)}",
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


def _positions(decoration: int) -> list[int]:
    return [place + 1 for place in range(decoration.bit_length()) if decoration >> place & 1]


def _signed(positions: Sequence[int]) -> str:
    return "".join(f"+{position}" for position in positions)
