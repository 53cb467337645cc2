"""Graphs that a model is asked about -> the same graphs, and a line about what it has never seen of them."""

import logging
from collections import Counter
from collections.abc import Iterator

import numpy as np

from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.data.sources.text import listed
from egocnn.encode.encoder import Encoder
from egocnn.encode.words import heads
from egocnn.errors import DataError

FAR = 10.0  # Standard deviations of the training graphs from which an attribute is said to be far from theirs.


class Familiarity:
    """Counts what a model has never seen of the graphs that it is asked about."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._count = Counter[str]()  # graphs, known labels, and graphs with unknown labels or attributes far away
        self._unit = "graphs"
        self._names: dict[str, dict[str, None]] = {"node": {}, "edge": {}}

    def add(self, graphs: Graphs, total: int = 0) -> None:
        """Refuses graphs of which the model knows nothing, once it has seen so many in all."""
        count, names, encoder = self._count, self._names, self._encoder
        words, read = encoder.words(graphs), encoder.described(graphs)
        owner = {"node": read.graph_of, "edge": read.graph_of[read.entry_node]}
        count["graphs"] += len(graphs)
        self._unit = graphs.unit
        for kind, columns in (("node", words.nodes), ("edge", words.edges)):
            if columns and not (kind == "node" and encoder.by_degree):  # how far degrees are is told below
                unknown, spelled = columns[0] < 0, (*getattr(read, f"{kind}_label_names"), "?")
                count["known"] += int((~unknown).sum())
                count[kind] += len(np.unique(owner[kind][unknown]))
                codes = np.unique(getattr(read, f"{kind}_label")[unknown])
                names[kind].update(dict.fromkeys(heads([spelled[code] for code in codes])))
        beyond = np.abs(encoder.standardised(read)).max(axis=1, initial=0) > FAR
        count["far"] += len(np.unique(owner["node"][beyond]))
        if count["graphs"] >= total and not count["known"] and count["node"] and not len(encoder.attr_mean):
            ours, theirs = listed(encoder.node_label_names, 5), listed(names["node"], 5)
            rest = f"their nodes are labelled {theirs}, those that it was trained on {ours}"
            raise DataError(f"the model knows no label of these {count['graphs']} graphs: {rest}")

    def warn(self) -> None:
        """A line for each kind of thing that was unknown."""
        names, count = self._names, self._count
        of_molecules = {"node": "atoms", "edge": "bonds"} if self._unit == "molecules" else {}
        kinds = {"node": "node labels", "edge": "edge labels"} | of_molecules
        what = {kind: f"{kinds[kind]} that the model was not trained on ({listed(names[kind], 5)})" for kind in names}
        far = "numbers of neighbours" if self._encoder.by_degree else "attributes"
        what["far"] = f"{far} more than {FAR:g} standard deviations from those of the training graphs"
        for kind, words in what.items():
            if count[kind]:
                some = f"{count[kind]} of {count['graphs']} {self._unit}"
                logging.getLogger("egocnn").warning("%s have %s", some, words)


def familiar(encoder: Encoder, collection: Collection, *, warn: bool = True) -> Iterator[Graphs]:
    """The portions of a collection, and in the end a warning about graphs that are unlike the training graphs. Refused
    where the model knows nothing of any of them: of a collection in memory, before anything is computed."""
    seen = Familiarity(encoder)
    for graphs in collection.portions():
        seen.add(graphs, len(collection))
        yield graphs
    if warn:
        seen.warn()


def check_familiar(encoder: Encoder, graphs: Graphs, *, warn: bool = True) -> Graphs:
    """The same for graphs in memory, which are given back."""
    list(familiar(encoder, graphs, warn=warn))
    return graphs
