"""Graphs that a model is asked about -> the same graphs, and a line about what it has never seen of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import listed
from egocnn.encode.encoder import Encoder
from egocnn.encode.words import heads
from egocnn.errors import DataError

FAR = 10.0  # Standard deviations of the training graphs from which an attribute is said to be far from theirs.
log = logging.getLogger("egocnn")


def familiar(encoder: Encoder, collection: Collection, *, warn: bool = True) -> Iterator[Graphs]:
    """The portions of a collection, and in the end a warning about graphs that are unlike the training graphs.

    Refused where the model knows nothing of any of them: of a collection in memory, before anything is computed.
    """
    unseen = _Unseen(encoder)
    for graphs in collection.portions():
        unseen.add(graphs)
        if len(graphs) == len(collection):
            unseen.refuse()
        yield graphs
    unseen.refuse()
    for line in unseen.lines() if warn else ():
        log.warning("%s", line)


def check_familiar(encoder: Encoder, graphs: Graphs, *, warn: bool = True) -> Graphs:
    """The same for graphs in memory, which are given back."""
    list(familiar(encoder, graphs, warn=warn))
    return graphs


@dataclass(slots=True)
class _Unseen:
    """Counts over all portions; labels are compared by their first words."""

    encoder: Encoder
    graphs: int = 0
    known: int = 0  # nodes and adjacency entries with a label of the training graphs
    far: int = 0  # graphs with an attribute far from those of the training graphs
    having: dict[str, int] = field(default_factory=lambda: {"node": 0, "edge": 0})  # graphs with an unknown label
    names: dict[str, dict[str, None]] = field(default_factory=lambda: {"node": {}, "edge": {}})

    def add(self, graphs: Graphs) -> None:
        words, read = self.encoder.words(graphs), self.encoder.described(graphs)
        self.graphs += len(graphs)
        owner = {"node": read.graph_of, "edge": read.graph_of[read.entry_node]}
        for kind, columns in (("node", words.nodes), ("edge", words.edges)):
            if not columns or (kind == "node" and self.encoder.by_degree):  # how far degrees are is told below
                continue
            unknown, names = columns[0] < 0, getattr(read, f"{kind}_label_names")
            self.known += int((~unknown).sum())
            self.having[kind] += len(np.unique(owner[kind][unknown]))
            codes = np.unique(getattr(read, f"{kind}_label")[unknown])
            self.names[kind].update(dict.fromkeys(heads([names[code] for code in codes if code >= 0])))
        beyond = np.abs(self.encoder.standardised(read)).max(axis=1, initial=0) > FAR
        self.far += len(np.unique(owner["node"][beyond]))

    def refuse(self) -> None:
        """Refuse graphs of which no label is known, where a model reads nothing but labels."""
        if self.graphs and not self.known and self.having["node"] and not len(self.encoder.attr_mean):
            ours, theirs = listed(self.encoder.node_label_names, 5), listed(self.names["node"], 5)
            rest = f"their nodes are labelled {theirs}, those that it was trained on {ours}"
            raise DataError(f"the model knows no label of these {self.graphs} graphs: {rest}")

    def lines(self) -> Iterator[str]:
        """One about labels and one about attributes, where there is something to say."""
        for kind, n in self.having.items():
            if n:
                these = f" ({listed(self.names[kind], 5)})" if self.names[kind] else ""
                yield f"{n} of {self.graphs} graphs have {kind} labels that the model was not trained on{these}"
        if self.far:
            how_far = f"attributes more than {FAR:g} standard deviations from those of the training graphs"
            yield f"{self.far} of {self.graphs} graphs have {how_far}"
