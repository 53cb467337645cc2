"""``compounds:isomers``, ``compounds:methylalkanes:sizes=5-31`` -> Graphs: the families of the paper's experiments.

Symmetric against asymmetric molecules: isomers with methyl groups on two arms, and chains with a single methyl. Sizes
of isomers count the carbons of an arm, those of methylalkanes the carbons of the chain. Carbons of an isomer's arm are
counted from the centre: position 0 is the centre itself, position a the end of an arm of length a. A decoration says
how many methyls, 0 to 2, the positions 1 to a - 1 carry. A methyl at position a - 1 is the twin of the end of its arm:
no model can distinguish the two, and the critical structure names the methyl alone.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from math import factorial, prod
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

import egocnn.data.read
from egocnn.config import ReadConfig
from egocnn.data.generated import TEST, TRAIN, VALIDATION, Molecule, parse_options, to_graphs
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError

FamilyName = Literal["isomers", "methylalkanes"]
Classes: TypeAlias = tuple[list[Molecule], list[Molecule]]
Decoration: TypeAlias = tuple[int, ...]
CLASS_NAMES = ("symmetric", "asymmetric")
MOST_DECORATIONS = 3**10  # longer arms have more decorations than are worth listing: some of them are drawn
PARTS_OF_TEN = np.array([TRAIN, TRAIN, TEST, TRAIN, VALIDATION, TRAIN, TRAIN, TEST, TRAIN, TRAIN])
"""Parts of ten consecutive molecules of one class, where molecules are held out."""
TRAINING_SHARE = 0.8  # of the sizes, from the smallest up: among them is training where sizes are held out


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family with its settings; ``replace`` gives another choice of them."""

    make: Callable[[int, int, np.random.Generator], Classes]  # size, molecules per class at most, chance
    limits: tuple[int, int]  # of the sizes
    step: int
    sizes: tuple[int, int]  # smallest and largest
    per_size: int  # distinct molecules per class and size at most
    hold_out: Literal["sizes", "molecules"]  # what the test part never shares with training
    hydrogens: bool = False  # make the hydrogen atoms nodes of the graph
    seed: int = 0  # every random choice follows from it

    @property
    def size_list(self) -> list[int]:
        """All sizes of the range, ascending."""
        first, last = self.sizes
        return list(range(first + (self.limits[0] - first) % self.step, last + 1, self.step))

    @property
    def training_sizes(self) -> set[int]:
        """Those in the training part: where sizes are held out, three of four of the smaller ones."""
        sizes = self.size_list
        if self.hold_out == "molecules":
            return set(sizes)
        n_small = min(max(round(TRAINING_SHARE * len(sizes)), 1), len(sizes) - 1)
        return {size for i, size in enumerate(sizes[:n_small]) if i % 4 != 3}


def read(source: str | Path, config: ReadConfig | None = None, **settings: Any) -> Graphs:
    """What :func:`egocnn.read` reads, and the families of the lab."""
    kind, _, rest = str(source).partition(":")
    name, colon, options = rest.partition(":")
    if kind != "compounds" or name not in get_args(FamilyName):
        return egocnn.data.read.read(source, config, **settings)
    family = replace(FAMILIES[name], **parse_options(str(source), options if colon else None))
    (first, last), (least, most) = family.sizes, family.limits
    if not least <= first <= last <= most or len(family.size_list) < (1 if family.hold_out == "molecules" else 2):
        raise DataError(f"{source}: sizes must lie between {least} and {most}, and be several, got {first}-{last}")
    return generate(family)


def generate(family: Family) -> Graphs:
    """Ascending in size and the classes alternating, with class, critical structure and part. Where sizes are held out,
    the test part has every fourth size of the training range and all beyond it."""
    pattern = PARTS_OF_TEN
    if family.hold_out != "molecules":
        pattern = np.where(PARTS_OF_TEN == TEST, TRAIN, PARTS_OF_TEN)
    chosen: list[tuple[Molecule, int]] = []  # each with its part
    counted = [0, 0]  # molecules of either class so far, in sizes that are trained on
    for size in family.size_list:
        is_trained = size in family.training_sizes
        classes = family.make(size, family.per_size, np.random.default_rng([family.seed, size]))
        with_parts = []
        for which, members in enumerate(classes):
            position = counted[which] + np.random.default_rng([family.seed, size, 1]).permutation(len(members))
            own = pattern[position % len(pattern)] if is_trained else np.full(len(members), TEST)
            counted[which] += len(members) if is_trained else 0
            with_parts.append(zip(members, own.tolist(), strict=True))
        chosen += [one for pair in zip_longest(*with_parts) for one in pair if one is not None]
    molecules, parts = zip(*chosen, strict=True)
    return to_graphs(molecules, parts, CLASS_NAMES, hydrogens=family.hydrogens, seed=family.seed)


def isomers(arm: int, count: int, random: np.random.Generator) -> Classes:
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


def methylalkanes(length: int, count: int, random: np.random.Generator) -> Classes:
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


FAMILIES: dict[str, Family] = {
    "isomers": Family(make=isomers, limits=(3, 50), step=1, sizes=(3, 8), per_size=2048, hold_out="molecules"),
    "methylalkanes": Family(make=methylalkanes, limits=(5, 501), step=2, sizes=(5, 61), per_size=1, hold_out="sizes"),
}
