"""What training, testing and cross-validation ask of graphs, in memory or on disk, and how they are split in two."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.schema import PARTS, rule
from egocnn.data.sources.text import optional

if TYPE_CHECKING:
    from egocnn.data.graphs import Graphs


class Collection(Protocol):
    """G graphs: :class:`~egocnn.data.graphs.Graphs` in memory, :class:`~egocnn.data.store.Stored` on disk."""

    @property
    def outline(self) -> "Graphs": ...  # without their nodes: targets, groups and parts, all that decides a split
    @property
    def node_counts(self) -> Ints: ...  # (G)
    @property
    def digest(self) -> str: ...  # changes with the graphs, their order, and the parts they are in
    @property
    def bytes_on_disk(self) -> int: ...  # to be read to have all of them in memory; 0 where they are there
    def __len__(self) -> int: ...
    def choose(self, which: Ints) -> Self: ...  # those with these numbers, ascending
    def with_parts(self, part: Ints | None, group: Ints | None = None) -> Self: ...
    # with another split, (G) positions in PARTS, or with none; and with other groups where they are given
    def portions(self, first: int = 0, last: int | None = None) -> "Iterator[Graphs]": ...  # as much as memory holds
    def whole(self) -> "Graphs": ...  # all of them in memory


Chosen = TypeVar("Chosen", bound=Collection)


def choose_part(collection: Chosen, where: object, part: str = "", limit: int | None = None) -> Chosen:
    """The graphs of one part of the data's own split ('' for all), and of these the first ``limit``."""
    if part:
        collection = collection.choose(graphs_of_part(collection.outline.part, part))
    rule(len(collection), f"{where}: no graph is in the part {part!r}")
    return collection if limit is None else collection.choose(np.arange(min(limit, len(collection))))


def graphs_of_part(column: Ints | None, part: str) -> Ints:
    """The numbers of the graphs in one part of the split that the data brings; ``column``: (G) the part of each."""
    rule(column is not None, "these graphs bring no split of their own")
    rule(part in PARTS, f"no part is called {part!r}; there are {', '.join(PARTS)}")
    return np.flatnonzero(column == PARTS.index(part))


def draw_parts(collection: Chosen, by: str, seed: int) -> Chosen:
    """Marked as 80, 10 and 10 per cent: at random, classes in equal shares, or by scaffolds, which become the groups"""
    if by == "scaffold":
        groups = scaffold_groups(collection)
        return collection.with_parts(fill_parts(groups, 0.8, 0.1), groups)
    part = np.full(len(collection), PARTS.index("train"), np.int8)
    _, held_out = split_off(collection.outline, 0.2, seed)
    for name, numbers in zip(PARTS[1:], split_off(collection.outline[held_out], 0.5, seed), strict=True):
        part[held_out[numbers]] = PARTS.index(name)
    return collection.with_parts(part)


def scaffold_groups(collection: Collection) -> Ints:
    """(G) numbers of the Bemis-Murcko scaffolds: rings and what links them; molecules without a ring share one"""
    chem = optional("rdkit.Chem", "molecules")
    scaffold = optional("rdkit.Chem.Scaffolds.MurckoScaffold", "molecules").MurckoScaffoldSmiles
    molecules = (chem.MolFromSmiles(text) for graphs in collection.portions() for text in graphs.smiles or ())
    with optional("rdkit.rdBase", "molecules").BlockLogs():  # what it remarks was left out when they were read, too
        scaffolds = [scaffold(mol=molecule) for molecule in molecules if molecule is not None]
    rule(len(scaffolds) == len(collection), "a split by scaffold needs molecules, and not all graphs have SMILES")
    return np.unique(scaffolds, return_inverse=True)[1]


def fill_parts(groups: Ints, *shares: float) -> Ints:
    """(G) parts of whole groups: the largest first, each into the first part where it fits; the last takes the rest.
    ``shares``: of the graphs, how many each part but the last may hold"""
    _, first, group, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    part, done = np.zeros(len(sizes), np.int8), np.zeros(len(shares) + 1)
    room = len(groups) * np.array(shares) + 1e-9
    for number in np.lexsort((first, -sizes)):
        after = done[:-1] + sizes[number]
        fits = (after <= room) & (done.cumsum()[:-1] + sizes[number] <= room.cumsum())  # so the last is never empty
        part[number] = [*np.flatnonzero(fits), len(shares)][0] if done.any() else 0
        done[part[number]] += sizes[number]
    rule(done[-1], f"all {len(groups)} graphs are of one group or scaffold: none is left for the test")
    return part[group]


def split_off(outline: "Graphs", share: float, seed: int) -> tuple[Ints, Ints]:
    """Numbers of the graphs without a share of them, and of the share: classes in equal parts, groups never torn"""
    classes = outline.target if outline.class_names else None
    return split_in_two(len(outline), share, classes=classes, groups=outline.group, seed=seed)


def split_in_two(
    n_graphs: int, share: float, *, classes: NDArray[Any] | None, groups: Ints | None, seed: int
) -> tuple[Ints, Ints]:
    """Put about ``share`` of the graphs on the second side, both in ascending order. Whole groups are drawn, so no
    group stands on both sides; classes get equal shares as far as the groups allow (the class of a group is that of its
    first graph). Each side gets at least one group."""
    rule(0 < share < 1, f"the share to split off must be between 0 and 1, got {share}")
    rule(seed >= 0, f"a seed is a whole number of at least 0, got {seed}")
    groups = np.arange(n_graphs) if groups is None else groups
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    of_one = "of one and the same group, copies of one molecule say"
    rule(len(first) >= 2, f"{n_graphs} graphs {of_one}, cannot be split in two")
    random = np.random.default_rng(seed)
    order = random.permutation(len(first))
    if classes is not None:
        of_group, place = classes[first][order], np.empty(len(first))
        for value in np.unique(of_group):  # one draw per class: spread evenly over [0, 1), then cut at the share
            members = np.flatnonzero(of_group == value)
            place[members] = (np.arange(len(members)) + random.random()) / len(members)
        order = order[np.argsort(place, kind="stable")]
    second = np.zeros(len(first), bool)
    second[order[: min(max(round(share * len(first)), 1), len(first) - 1)]] = True
    return np.flatnonzero(~second[group]), np.flatnonzero(second[group])
