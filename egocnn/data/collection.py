"""What is asked of graphs, in memory or on disk, and how they are split in two, cut and joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Bools, Floats, Ints, pointers, ranges
from egocnn.data.schema import GRAPH_COLUMNS, INNER_COLUMNS, NAME_LISTS, PARTS, Graph, checked, take_columns
from egocnn.data.sources.text import optional
from egocnn.errors import rule

if TYPE_CHECKING:
    from egocnn.data.graphs import Graphs
    from egocnn.data.schema import Names


class Collection(Protocol):
    """G graphs: :class:`~egocnn.data.graphs.Graphs` in memory, :class:`~egocnn.data.store.Stored` on disk."""

    @property
    def outline(self) -> Graphs: ...  # without their nodes: targets, groups and parts, all that decides a split
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
    def portions(self, first: int = 0, last: int | None = None) -> Iterator[Graphs]: ...  # as much as memory holds
    def whole(self) -> Graphs: ...  # all of them in memory


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


def split_off(outline: Graphs, share: float, seed: int) -> tuple[Ints, Ints]:
    """Numbers of the graphs without a share of them, and of the share: classes in equal parts, groups never torn"""
    classes = outline.target if outline.class_names else None
    return split_in_two(len(outline), share, classes=classes, groups=outline.group, seed=seed)


def split_by_scaffold(collection: Collection, share: float) -> tuple[Ints, Ints]:
    """The same of molecules: those with one scaffold stay together, and the largest such groups are in the first."""
    rule(isinstance(share, Real) and 0 < share < 1, f"the share to split off must be between 0 and 1, got {share}")
    part = fill_parts(scaffold_groups(collection), 1 - share)
    return np.flatnonzero(part == 0), np.flatnonzero(part == 1)


def split_in_two(
    n_graphs: int, share: float, *, classes: NDArray[Any] | None, groups: Ints | None, seed: int
) -> tuple[Ints, Ints]:
    """Put about ``share`` of the graphs on the second side, both in ascending order. Whole groups are drawn, so no
    group stands on both sides; classes get equal shares as far as the groups allow (the class of a group is that of its
    first graph). Each side gets at least one group."""
    rule(isinstance(share, Real) and 0 < share < 1, f"the share to split off must be between 0 and 1, got {share}")
    rule(isinstance(seed, Integral) and seed >= 0, f"a seed is a whole number of at least 0, got {seed}")
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


def single(graphs: Graphs, g: int) -> Graph:
    """One graph with its labels and class by name."""
    first, last = int(graphs.node_ptr[g]), int(graphs.node_ptr[g + 1])
    start, end = int(graphs.indptr[first]), int(graphs.indptr[last])
    node = np.repeat(np.arange(last - first), np.diff(graphs.indptr[first : last + 1]))
    neighbour = graphs.indices[start:end].astype(np.int64) - first
    once = np.flatnonzero(node <= neighbour)
    columns = take_columns(graphs, nodes=slice(first, last), entries=start + once)
    for name in ("node_label", "edge_label"):
        if (codes := columns[name]) is not None:
            names = (*getattr(graphs, f"{name}_names"), "?")  # the last, which -1 means, is a label not known
            columns[name] = tuple(names[code] for code in codes)
    names_of = columns["node_names"]
    return Graph(
        name=graphs.names[g],
        n_nodes=last - first,
        edges=np.stack([node[once], neighbour[once]], axis=1),
        target=None if graphs.targets else graphs.target_of(g),
        smiles=None if graphs.smiles is None else graphs.smiles[g],
        node_names=None if names_of is None else tuple(names_of),
        **{name: columns[name] for name in INNER_COLUMNS},
    )


def choose_graphs(graphs: Graphs, chosen: Ints) -> Graphs:
    """The graphs with these numbers, in their order."""
    if len(chosen) and (np.diff(chosen) == 1).all():
        return _slice(graphs, int(chosen[0]), int(chosen[-1]) + 1)
    nodes = ranges(graphs.node_ptr[chosen], graphs.node_ptr[chosen + 1])
    entries = ranges(graphs.indptr[nodes], graphs.indptr[nodes + 1])
    node_ptr, indptr = pointers(graphs.node_counts[chosen]), pointers(graphs.degree[nodes])
    # a graph keeps its inner order, so every entry moves by as much as its graph does
    shift = node_ptr[:-1] - graphs.node_ptr[chosen]
    entries_of = indptr[node_ptr[1:]] - indptr[node_ptr[:-1]]
    return replace(
        graphs,
        node_ptr=node_ptr,
        indptr=indptr,
        indices=(graphs.indices[entries] + np.repeat(shift, entries_of)).astype(graphs.indices.dtype),
        names=tuple(graphs.names[g] for g in chosen),
        smiles=None if graphs.smiles is None else tuple(graphs.smiles[g] for g in chosen),
        **take_columns(graphs, nodes=nodes, entries=entries, chosen=chosen),
    )


def _slice(graphs: Graphs, first: int, last: int) -> Graphs:
    """Consecutive graphs without a look at every node: columns are views, only pointers and ids are made anew."""
    node, after = int(graphs.node_ptr[first]), int(graphs.node_ptr[last])
    indptr = graphs.indptr[node : after + 1]
    entry, end = int(indptr[0]), int(indptr[-1])
    return replace(
        graphs,
        node_ptr=graphs.node_ptr[first : last + 1] - node,
        indptr=indptr - entry,
        indices=graphs.indices[entry:end] - graphs.indices.dtype.type(node),
        names=graphs.names[first:last],
        smiles=None if graphs.smiles is None else graphs.smiles[first:last],
        **take_columns(graphs, nodes=slice(node, after), entries=slice(entry, end), chosen=slice(first, last)),
    )


def join(collections: Sequence[Graphs]) -> Graphs:
    """Collections end to end, label and class names united."""
    rule(collections, "nothing to put together: no collection is given")
    rule(len({c.targets for c in collections}) == 1, "these collections have other targets, or other classes")
    kinds = {bool(c.class_names) for c in collections if c.target is not None}
    rule(len(kinds) <= 1, "some of these collections have classes and some have values to predict")
    every = ([getattr(c, names) for c in collections] for names in NAME_LISTS.values())
    lists = [tuple(dict.fromkeys(sum(names, ()))) for names in every]
    parts = [renamed(c, lists) for c in collections]
    first = pointers(np.array([c.n_nodes for c in parts]))
    groups = pointers(np.array([0 if c.group is None else int(c.group.max(initial=-1)) + 1 for c in parts]))

    def column(name: str) -> NDArray[Any] | None:
        values = [getattr(c, name) for c in parts]
        if (any if name == "node_names" else all)(v is None for v in values):
            return None
        rule(not any(v is None for v in values), f"some of these collections have {name} and some do not")
        widths = [v.shape[1] for v in values] if name == "node_attr" else [0]
        rule(len(set(widths)) == 1, f"these collections have {', '.join(map(str, widths))} node attributes")
        if name == "group":
            values = [v + before for v, before in zip(values, groups, strict=False)]
        return np.concatenate(values)

    columns: dict[str, Any] = {name: column(name) for name in (*INNER_COLUMNS, *GRAPH_COLUMNS, "node_names")}
    joined = replace(
        parts[0],
        node_ptr=pointers(np.concatenate([c.node_counts for c in parts])),
        indptr=pointers(np.concatenate([c.degree for c in parts])),
        indices=np.concatenate([c.indices + n for c, n in zip(parts, first, strict=False)]).astype(np.int32),
        names=sum((c.names for c in parts), ()),
        smiles=None if any(c.smiles is None for c in parts) else sum((c.smiles or () for c in parts), ()),
        **columns,
    )
    return checked(joined)


def renamed(graphs: Graphs, lists: Sequence[Names | None]) -> Graphs:
    """The same graphs with node labels, edge labels and classes counted by other name lists; None: as they are."""
    changes: dict[str, Any] = {}
    for (column, list_name), names in zip(NAME_LISTS.items(), lists, strict=True):
        values, old = getattr(graphs, column), getattr(graphs, list_name)
        is_number = column == "target" and values is not None and not graphs.class_names
        if names is None or names == old or is_number:
            continue
        if values is not None:
            changes[column] = recode(old, names)[values].astype(values.dtype)
        changes[list_name] = names
    return replace(graphs, **changes)


def recode(old: Names, new: Names) -> Ints:
    """For codes by the old names those by the new ones, -1 where a name is not among these."""
    position = {name: i for i, name in enumerate(new)}
    return np.array([*(position.get(name, -1) for name in old), -1])  # the last serves -1 itself


def keep_nodes(graphs: Graphs, stays: Bools) -> Graphs:
    """Every graph with the nodes (N) that stay and the edges among them; a graph may be left without nodes."""
    return _cut(graphs, stays, stays[graphs.entry_node] & stays[graphs.indices])


def without_each_node(graphs: Graphs, nodes: Ints) -> Graphs:
    """For each of these nodes, a copy of its graph without it."""
    owner = graphs.graph_of[nodes]
    copies = graphs[owner]
    stays = np.ones(copies.n_nodes, bool)
    stays[copies.node_ptr[:-1] + nodes - graphs.node_ptr[owner]] = False
    return keep_nodes(copies, stays)


def without_each_edge(graphs: Graphs, edges: Ints) -> Graphs:
    """For each of these edges (e, 2), a copy of its graph without it."""
    owner = graphs.graph_of[edges[:, 0]]
    copies = graphs[owner]
    ends = edges - graphs.node_ptr[owner][:, None] + copies.node_ptr[:-1][:, None]
    of = copies.graph_of[copies.entry_node]
    low, high = np.minimum(copies.entry_node, copies.indices), np.maximum(copies.entry_node, copies.indices)
    gone = (low == ends.min(axis=1)[of]) & (high == ends.max(axis=1)[of])
    return _cut(copies, np.ones(copies.n_nodes, bool), ~gone)


def surroundings(indptr: Ints, indices: Ints, first: Ints, weight: Floats, most: int) -> Ints:
    """These nodes and those around them, nearer ones before others and of equally near ones the heavier (N); ``most``
    in all, ascending. Where all that is joined to them has been found, it goes on from the heaviest node left."""
    found = np.zeros(len(weight), bool)
    left = iter(np.argsort(-weight, kind="stable"))
    near, missing = first, min(most, len(weight))
    while missing:
        if not len(near):
            near = np.array([next(node for node in left if not found[node])])
        new = near[np.argsort(-weight[near], kind="stable")][:missing]
        found[new] = True
        missing -= len(new)
        near = np.unique(indices[ranges(indptr[new], indptr[new + 1])])
        near = near[~found[near]]
    return np.flatnonzero(found)


def _cut(graphs: Graphs, stays: Bools, entries: Bools) -> Graphs:
    number = np.cumsum(stays) - 1
    counts = np.bincount(graphs.graph_of[stays], minlength=len(graphs))
    degree = np.bincount(graphs.entry_node[entries], minlength=graphs.n_nodes)[stays]
    return replace(
        graphs,
        node_ptr=pointers(counts),
        indptr=pointers(degree),
        indices=number[graphs.indices[entries]].astype(graphs.indices.dtype),
        smiles=None,  # it says what the whole molecule was
        **take_columns(graphs, nodes=stays, entries=entries),
    )
