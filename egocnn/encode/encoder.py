"""Graphs -> flat tensors ready for the network; what is fitted for that is fitted on training graphs alone.

Everything that does not depend on the weights is worked out once, here: ranked neighbours, Patchy-San's table
rows, standardised attributes and targets. Training graphs may come in portions: what is fitted on them is the same, bit
by bit, however they are cut, as counts are whole numbers, and means are added up in blocks that do not follow them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.config import ModelConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.colours import COUNTED_ROUNDS
from egocnn.encode.degrees import describe_by_degree, levels, name_of
from egocnn.encode.patches import find_patches
from egocnn.encode.ranking import Ranking
from egocnn.encode.words import Words, columns, first_words, further_words, heads, told_apart
from egocnn.errors import DataError, rule
from egocnn.nn.embed import PatchShape

FAR = "too far from those that were trained on to be computed with"
NUMBERS_AT_ONCE = 1 << 18  # in a block of rows; to change it changes the rounding, and so the last bits of every scale


@dataclass(frozen=True, slots=True)
class TargetScale:
    """One of several targets: the columns of the output that are its classes, or one for a value, come in this order"""

    name: str
    class_names: tuple[str, ...]
    target_mean: float
    target_scale: float
    temperature: float = 1.0  # these three as a model has them
    noise: float = 0.0
    spread_scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoder:
    """Names, colour counts and scales of the training graphs: saved with the model, applied to every graph."""

    ranking: Ranking
    by_degree: bool  # whether nodes are described by degrees, having no labels of their own
    node_label_names: tuple[str, ...]  # first words; see :mod:`egocnn.encode.words`
    edge_label_names: tuple[str, ...]
    node_words: tuple[str, ...] = ()  # further words
    edge_words: tuple[str, ...] = ()
    class_names: tuple[str, ...]  # empty where the model predicts a value
    attr_mean: Floats
    attr_scale: Floats
    target_mean: float
    target_scale: float
    targets_of: tuple[TargetScale, ...] = ()  # where there are several, and then class_names is empty

    @staticmethod
    def fit(graphs: Graphs, config: ModelConfig) -> "Encoder":
        """Fitted on these graphs, as :meth:`fit_portions` does it."""
        check_nodes(len(graphs), graphs.n_nodes)
        by_degree = config.degrees and graphs.node_label is None
        graphs = describe_by_degree(graphs) if by_degree else graphs
        return Encoder.fit_portions([graphs], target=graphs.target, by_degree=by_degree)

    @staticmethod
    def fit_portions(portions: Iterable[Graphs], *, target: NDArray[Any] | None, by_degree: bool) -> "Encoder":
        """The same from portions, one or more, that count labels by the same names; ``target``: of all graphs.

        ``by_degree``: their nodes have been described by degrees"""
        colours, moments = ColourCounts(), None
        for graphs in portions:
            colours.add(Ranking.fit(first_words(graphs)))
            moments = moments or Moments(0 if graphs.node_attr is None else graphs.node_attr.shape[1])
            if graphs.node_attr is not None:
                moments.add(graphs.node_attr)
        assert moments is not None, "no portion at all"
        attr_mean, deviation = moments.result()
        mean, scale = _target_scale(target if not graphs.class_names and not graphs.targets else None)
        columns = zip(graphs.targets, target.T, strict=True) if graphs.targets and target is not None else ()
        several = [(*one, *_target_scale(None if one[1] else values)) for one, values in columns]
        return Encoder(
            ranking=colours.ranking(), by_degree=by_degree, node_label_names=heads(graphs.node_label_names),
            edge_label_names=heads(graphs.edge_label_names), node_words=further_words(graphs.node_label_names),
            edge_words=further_words(graphs.edge_label_names), class_names=graphs.class_names, attr_mean=attr_mean,
            attr_scale=_scale(deviation, attr_mean), target_mean=mean, target_scale=scale,
            targets_of=tuple(TargetScale(*each) for each in several)
        )  # fmt: skip

    def of_target(self, one: TargetScale) -> "Encoder":
        """The encoder of a model that predicts this one of several targets alone."""
        own: dict[str, Any] = {key: getattr(one, key) for key in ("class_names", "target_mean", "target_scale")}
        return replace(self, targets_of=(), **own)

    def shape(self, config: ModelConfig) -> PatchShape:
        """How large Patchy-San's table is."""
        node_words, edge_words = len(self.node_words), len(self.edge_words)
        return PatchShape(
            slots=config.slots, node_labels=len(self.node_label_names) + node_words,
            edge_labels=len(self.edge_label_names) + edge_words, node_words=node_words, edge_words=edge_words
        )  # fmt: skip

    def words(self, graphs: Graphs) -> Words:
        """What the labels of the graphs say, word by word."""
        graphs = self.described(graphs)
        nodes = columns(graphs.node_label, graphs.node_label_names, self.node_label_names, self.node_words)
        edges = columns(graphs.edge_label, graphs.edge_label_names, self.edge_label_names, self.edge_words)
        return Words(nodes, edges)

    def apply(self, graphs: Graphs, config: ModelConfig) -> EncodedGraphs:
        """Rank, find patches, standardise; labels are counted by the names of the training graphs."""
        words, graphs = self.words(graphs), self.renamed(graphs)
        order = self.ranking.order(graphs)
        table = self.ranking.neighbours(graphs, max(config.k, config.slots - 1), order=order)
        patches = find_patches(graphs, table, self.shape(config), words)
        label = np.full(graphs.n_nodes, -1, np.int32) if graphs.node_label is None else graphs.node_label
        arrays: dict[str, Any] = {"node_ptr": graphs.node_ptr.astype(np.int64), "node_label": label.astype(np.int32)}
        arrays |= {"bag_ptr": patches.ptr, "bag_rows": patches.rows, "bag_weight": patches.weight}
        arrays |= {"attributes": self.standardised(graphs), "place": order.within(graphs), "steps": table}
        # differences of ids, 0 where absent; in place, as the table of a large collection takes gigabytes
        absent = table < 0
        table -= np.arange(len(table), dtype=table.dtype)[:, None]
        table[absent] = 0
        tensors: dict[str, Any] = {name: None if a is None else torch.from_numpy(a) for name, a in arrays.items()}
        return EncodedGraphs(**tensors, target=self.targets(graphs))

    def to_value(self, standardised: Tensor) -> Tensor:
        """A regressor's output in the unit of the target."""
        return standardised * self.target_scale + self.target_mean

    def described(self, graphs: Graphs) -> Graphs:
        """With what the model reads of nodes and edges; a kind of label that it does not know is left out."""
        graphs = describe_by_degree(graphs) if self.by_degree else graphs
        nodes, edges = self.node_label_names, self.edge_label_names
        for kind, ours, theirs in (("node", nodes, graphs.node_label), ("edge", edges, graphs.edge_label)):
            if ours and theirs is None:
                some = ", ".join(ours[:4]) + (", …" if len(ours) > 4 else "")
                raise DataError(f"the model reads {kind} labels ({some}), but these graphs have none")
        node_label, edge_label = graphs.node_label if nodes else None, graphs.edge_label if edges else None
        return replace(graphs, node_label=node_label, edge_label=edge_label)  # nothing to check again

    def renamed(self, graphs: Graphs) -> Graphs:
        """Labels, by their first words, and classes by the training graphs' names: what ranks and counts."""
        return first_words(self.described(graphs)).with_names(
            nodes=self.node_label_names, edges=self.edge_label_names, classes=self.class_names or None
        )

    def told_apart(self, graphs: Graphs) -> Graphs:
        """The same with a label for every combination of words that the model knows."""
        words = self.words(graphs)
        return replace(self.renamed(graphs), node_label=told_apart(words.nodes), edge_label=told_apart(words.edges))

    def standardised(self, graphs: Graphs) -> NDArray[np.float32]:
        """(N, A) node attributes by the scales of the training graphs"""
        attr = np.zeros((graphs.n_nodes, 0)) if graphs.node_attr is None else graphs.node_attr
        if attr.shape[1] != len(self.attr_mean):
            raise DataError(f"the model reads {len(self.attr_mean)} node attributes, these graphs have {attr.shape[1]}")
        with np.errstate(over="ignore"):
            standard = ((attr - self.attr_mean) / self.attr_scale).astype(np.float32)
        if not np.isfinite(standard).all():
            node, column = np.argwhere(~np.isfinite(standard))[0]
            name, value = graphs.names[int(graphs.graph_of[node])], attr[node, column]
            raise DataError(f"graph {name!r}: node attribute {column + 1} is {value:g}, {FAR}")
        return standard

    def targets(self, graphs: Graphs) -> Tensor | None:
        """(G) class numbers or standardised values; None where these graphs have none of the kind.

        Of several targets (G, T), both as numbers, NaN where they are not known."""
        if self.targets_of:
            columns = [self._column(graphs, each) for each in self.targets_of]
            return torch.stack(columns, dim=1) if graphs.targets else None
        if graphs.target is None or graphs.targets or graphs.is_classification != bool(self.class_names):
            return None
        if self.class_names:
            return torch.from_numpy(graphs.target.astype(np.int64))
        with np.errstate(over="ignore"):
            standard = ((graphs.target - self.target_mean) / self.target_scale).astype(np.float32)
        beyond = np.flatnonzero(np.isinf(standard))
        if len(beyond):
            name, value = graphs.names[int(beyond[0])], graphs.target[beyond[0]]
            raise DataError(f"graph {name!r}: target {value:g} is {FAR}")
        return torch.from_numpy(standard)

    def _column(self, graphs: Graphs, target: TargetScale) -> Tensor:
        own = graphs.of_target(target.name).with_names(classes=target.class_names or None)
        found = self.of_target(target).targets(own)
        column = torch.full((len(graphs),), torch.nan) if found is None else found.float()
        return torch.where(column < 0, torch.nan, column) if target.class_names else column

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved as arrays."""
        scales = {"attr_mean": self.attr_mean, "attr_scale": self.attr_scale}
        return {**scales, **{f"ranking.{name}": values for name, values in self.ranking.state().items()}}

    def texts(self) -> dict[str, Any]:
        """What is saved as JSON."""
        names = ("node_label_names", "edge_label_names", "node_words", "edge_words", "class_names")
        texts = {name: getattr(self, name) for name in (*names, "by_degree", "target_mean", "target_scale")}
        return texts | ({"targets_of": [asdict(each) for each in self.targets_of]} if self.targets_of else {})

    @staticmethod
    def restore(arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, Any]) -> "Encoder":
        """The encoder of which these are :meth:`arrays` and :meth:`texts`."""
        prefix = "ranking."
        ranking = {name.removeprefix(prefix): v for name, v in arrays.items() if name.startswith(prefix)}
        plain: dict[str, Any] = {"by_degree": False}  # as in models that were saved before there was a choice
        plain |= {name: tuple(v) if isinstance(v, list) else v for name, v in texts.items()}
        plain |= {name: arrays[name] for name in ("attr_mean", "attr_scale")}
        several = ({**each, "class_names": tuple(each["class_names"])} for each in plain.get("targets_of", ()))
        plain["targets_of"] = tuple(TargetScale(**each) for each in several)
        return Encoder(ranking=Ranking.from_state(ranking), **plain)


def check_nodes(graphs: int, nodes: int) -> None:
    """Refuse graphs without any node."""
    rule(nodes, f"{graphs} training graphs have no nodes at all; there is nothing to learn from")


def _target_scale(target: NDArray[Any] | None) -> tuple[float, float]:
    """Mean and scale of the values that are known; of classes, or where none is known, 0 and 1"""
    known = np.zeros(1) if target is None else target[np.isfinite(target)]
    known = known if len(known) else np.zeros(1)
    return float(known.mean()), float(_scale(known.std(), known.mean()))


def _scale(deviation: Any, mean: Any) -> Any:
    """What to divide by: a column that never varies is left as it is."""
    return np.where(varies(deviation, mean), deviation, 1.0)


def varies(deviation: Any, mean: Any) -> Any:
    """Whether a column of numbers does so by more than rounding."""
    return deviation > 1e-12 * np.abs(mean)


class Survey:
    """What must be known of all training graphs before any of them can be counted: the labels in use, and degrees."""

    def __init__(self, portions: Iterable[Graphs]) -> None:
        self.nodes = 0
        self.degrees: Ints = np.zeros(0, np.int64)  # how many nodes have each degree, from 0
        self._used: dict[str, Bools] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._levels: set[int] = set()
        for graphs in portions:
            self._add(graphs)

    def _add(self, graphs: Graphs) -> None:
        self.nodes += graphs.n_nodes
        counted = np.bincount(graphs.degree, minlength=len(self.degrees))
        counted[: len(self.degrees)] += self.degrees
        self.degrees = counted
        self._names = {"node": graphs.node_label_names, "edge": graphs.edge_label_names}
        for kind, codes in (("node", graphs.node_label), ("edge", graphs.edge_label)):
            if codes is not None:
                used = self._used.setdefault(kind, np.zeros(len(self._names[kind]), bool))
                used[codes[codes >= 0]] = True
        if graphs.node_label is None:
            node = graphs.entry_node
            proper = np.bincount(node[node != graphs.indices], minlength=graphs.n_nodes)
            self._levels |= set(np.unique(levels(proper)).tolist())

    def names(self, kind: str) -> tuple[str, ...]:
        """Of the node or edge labels, those that are used; all where graphs have names and no labels."""
        used, names = self._used.get(kind), self._names.get(kind, ())
        return names if used is None else tuple(names[code] for code in np.flatnonzero(used))

    @property
    def has_node_labels(self) -> bool:
        """Whether nodes have labels of their own."""
        return "node" in self._used

    @property
    def degree_names(self) -> tuple[str, ...]:
        """Names of the labels that nodes have where they are described by their degrees."""
        return tuple(name_of(level) for level in sorted(self._levels))


class ColourCounts:
    """Counts of portions, put together."""

    def __init__(self) -> None:
        self._several: list[Ranking] = []

    def add(self, ranking: Ranking) -> None:
        """The counts of one more portion."""
        self._several.append(ranking)
        first, *others = (sum(map(len, each.colours)) for each in self._several)
        if sum(others) > first:  # not for every portion: to put many small ones together at once costs the same as one
            self._several = [self.ranking()]

    def ranking(self) -> Ranking:
        """The counts of all portions."""
        if len(self._several) == 1:
            return self._several[0]
        rounds = []
        for number in range(COUNTED_ROUNDS):
            several = np.concatenate([each.colours[number] for each in self._several])
            colours, place = np.unique(several, return_inverse=True)
            counts = np.zeros(len(colours), np.int64)
            np.add.at(counts, place, np.concatenate([each.counts[number] for each in self._several]))
            rounds.append((colours, counts))
        return Ranking(tuple(colours for colours, _ in rounds), tuple(counts for _, counts in rounds))


class Moments:
    """Mean and standard deviation of columns of numbers, row by row."""

    def __init__(self, columns: int) -> None:
        self._block = max(1, NUMBERS_AT_ONCE // max(columns, 1))
        self._held: list[Floats] = []  # rows that make no whole block yet
        self._rows = 0
        self._mean, self._squares = np.zeros((2, columns))  # squares of the distances from the mean, summed up

    def add(self, rows: NDArray[Any]) -> None:
        """Further rows (n, columns)."""
        while len(rows):
            held = sum(map(len, self._held))
            some, rows = np.split(rows, [self._block - held])
            self._held.append(np.array(some, np.float64, order="C"))
            if held + len(some) == self._block:
                self._take()

    def result(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation; nothing may be added afterwards."""
        if self._held:
            self._take()
        return self._mean, np.sqrt(self._squares / max(self._rows, 1))

    def _take(self) -> None:
        block = self._held[0] if len(self._held) == 1 else np.concatenate(self._held)
        self._held = []
        mean = block.mean(axis=0)
        squares = np.square(block - mean).sum(axis=0)
        rows = self._rows + len(block)
        away = mean - self._mean
        # Chan, Golub and LeVeque: two sums of squares, each around its own mean, as one around the mean of both
        self._squares = self._squares + squares + away**2 * (self._rows * len(block) / rows)
        self._mean = self._mean + away * (len(block) / rows)
        self._rows = rows
