"""Critical structures: which nodes and edges of a graph made a prediction, as one plain record."""

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from egocnn.data.arrays import Floats, Ints, build_adjacency
from egocnn.data.collection import surroundings
from egocnn.data.graphs import Graph
from egocnn.data.molecules import is_molecule
from egocnn.data.schema import EDGE_COLUMNS, NODE_COLUMNS
from egocnn.data.sources.text import one_line, optional
from egocnn.errors import DataError
from egocnn.explain.structure import wording
from egocnn.explain.structure.plain import fields_of
from egocnn.files import finite_json, regular, replacing

if TYPE_CHECKING:
    import networkx
    from torch_geometric.explain import Explanation

SHOWN = 12  # Nodes that the text of a structure names; of larger structures the most important.
LARGEST_DRAWN, MOST_EDGES_DRAWN, DRAWN = 500, 100_000, 300
"""Nodes and edges of a graph that is drawn whole; of a larger one the structure and what is around it, so many nodes"""
PICTURES = 12  # Structures that a notebook shows.


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The probability of the explained class, or the predicted value, where parts of the graph are not present."""

    removed: float  #: when the critical nodes are taken out, and their edges with them
    kept: float  #: when nothing but the critical nodes and the edges among them is left
    evidence_lost: float | None = None
    """the share of output less base that goes with the critical nodes; None where both are the same"""
    evidence_kept: float | None = None  #: the share that the critical nodes hold alone


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Where the evidence stood on its way down: importance after the deepest layer first, at the input last."""

    nodes: Floats  #: (L + 2, N)
    edges: Floats
    """(L + 2, E) what has crossed each edge up to there, nothing at the top; at the input, its importance"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CriticalStructure:
    """The answer to "which part of this graph made you say so?".

    ``print(structure)`` shows it as text, a notebook shows the picture.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-6,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=2, epochs=5).fit(graphs)
        >>> [structure] = model.explain(graphs[:1])
        >>> structure.name, structure.node_importance.shape
        ('C3H8 #1', (11,))
        >>> structure.draw("propane.svg")[:4]
        '<svg'"""

    graph: Graph  #: the graph that was predicted
    predicted: str | float
    """the likeliest class, or the predicted value; a class by name, or of an estimator as its ``classes_`` are"""
    probability: float | None  #: of the predicted class, calibrated; None for a value
    explained: str | float | None
    """the class whose evidence was traced; None: what raised and what lowered the predicted value"""
    technique: str  #: how importance was found
    base: float  #: the output with no node present
    output: float  #: what is explained: the log-odds of the explained class against the rest, or the value in its unit
    node_importance: Floats
    """(N) positive: speaks for the explained class, or raised the value; negative: speaks against it, lowered it.
    By contributions, the default technique, base + their sum is the output."""
    edge_importance: Floats  #: (E) in the order of ``graph.edges``
    critical_nodes: Ints  #: node ids, ascending
    critical_edges: Ints  #: positions in ``graph.edges``, ascending
    spread: float | None = None  #: the doubt of a model of several networks, in probability or in the unit of the value
    fidelity: "Fidelity | None" = None
    """what is predicted without the structure, and with nothing else; None where that was not computed"""
    trace: "Trace | None" = None
    """how the evidence travelled down the layers; None with techniques that do not go layer by layer"""
    whole: tuple[int, float, float] | None = None
    """of a part that :meth:`drawn` took: the nodes of the whole graph, what spoke for and what against in it"""

    @property
    def name(self) -> str:
        """of the graph"""
        return self.graph.name

    @property
    def contributions(self) -> Floats:
        """(N) the importance of every node"""
        return self.node_importance

    @property
    def nodes(self) -> Ints:
        """the critical nodes"""
        return self.critical_nodes

    @property
    def critical_pairs(self) -> Ints:
        """(n, 2) the critical edges by their ends"""
        return self.graph.edges[self.critical_edges]

    @property
    def speaks_for(self) -> float:
        """the sum of the positive contributions"""
        return float(np.maximum(self.node_importance, 0).sum()) if self.whole is None else self.whole[1]

    @property
    def speaks_against(self) -> float:
        """the sum of the negative contributions"""
        return float(np.minimum(self.node_importance, 0).sum()) if self.whole is None else self.whole[2]

    def __repr__(self) -> str:
        return f"CriticalStructure({self.caption!r})"  # a list of many is read in a terminal, too

    def __str__(self) -> str:
        certainty = wording.doubt(self)
        if self.probability is not None:
            certainty = f" ({self.probability:.1%}{certainty})"
        is_other = self.explained not in (None, self.predicted)
        other = f", explained for {wording.called(self.explained)}" if is_other else ""
        critical = f"critical: {self._named_nodes()}" if len(self.critical_nodes) else self.nothing
        lines = (self._headline + certainty + other, critical, wording.balance(self), wording.evidence(self))
        return "\n  ".join(filter(None, (*lines, self.drawn_part)))

    def _named_nodes(self) -> str:
        """The critical nodes, the most important first; of a value, what raised it and what lowered it apart"""
        if self.explained is not None:
            return self._texts_of(self.critical_nodes)
        raises = self.node_importance[self.critical_nodes] > 0
        sides = {"raised by": self.critical_nodes[raises], "lowered by": self.critical_nodes[~raises]}
        return "; ".join(f"{word} {self._texts_of(nodes)}" for word, nodes in sides.items() if len(nodes))

    def _texts_of(self, nodes: Ints) -> str:
        importance = self.node_importance[nodes]
        ordered = nodes[np.argsort(-importance if self.explained is not None else -abs(importance), kind="stable")]
        labels, names = self.graph.node_label or ("",) * self.graph.n_nodes, self.graph.node_names
        texts = [f"{labels[n]}:{n}" if labels[n][-1:].isdigit() else f"{labels[n]}{n}" for n in ordered[:SHOWN]]
        texts = texts if names is None else [one_line(names[n], 40) for n in ordered[:SHOWN]]
        more = len(nodes) - SHOWN
        return ", ".join(texts) + (f" and {more} more" if more > 0 else "")

    @property
    def nothing(self) -> str:
        """What to say where no part of the graph is critical."""
        what = "molecule" if is_molecule(self.graph) else "graph"
        if self.explained is None:
            return f"no part of this {what} stands out: its value is near that of an empty one, or rests on all of it"
        return (
            f"no part of this {what} stands out for {wording.called(self.explained)}: what speaks for it is "
            "spread over all of it, or what would have spoken against it is absent"
        )

    def draw(self, path: str | Path | None = None, **settings: Any) -> str:
        """Draw the graph with its critical structure.

        Arguments:
            path: Also write the picture there, as .svg or .png.
            settings: Those of :func:`egocnn.show.drawing.draw`, ``size=(640, 480)`` say.

        Returns:
            The picture as SVG text."""
        from egocnn.show.drawing import draw

        settings.setdefault("caption", "" if path is None else self.caption)
        settings.setdefault("words", ("for", "against") if self.explained is not None else ("raised", "lowered"))
        part = self.drawn()
        settings |= {"critical_nodes": part.critical_nodes, "critical_edges": part.critical_edges}
        return draw(part.graph, part.node_importance, part.edge_importance, path=path, **settings)

    @property
    def drawn_part(self) -> str:
        """What pictures show of a graph that is too large to be drawn whole."""
        nodes = self.graph.n_nodes if self.whole is None else self.whole[0]
        if self.whole is None and nodes <= LARGEST_DRAWN and len(self.graph.edges) <= MOST_EDGES_DRAWN:
            return ""
        is_part = 0 < len(self.critical_nodes) < DRAWN
        what = "the critical structure and its surroundings" if is_part else "what counts most"
        return f"drawn: {what}, {min(DRAWN, nodes)} of {nodes:,} nodes"

    def drawn(self) -> "CriticalStructure":
        """What pictures and pages show: of a large graph the critical structure and the nodes around it.

        Returns:
            The structure itself where the graph is drawn whole; else that of a part, whose nodes are counted anew."""
        if self.whole is not None or not self.drawn_part:
            return self
        indptr, indices, _ = build_adjacency(self.graph.edges, self.graph.n_nodes)
        nodes = surroundings(indptr, indices, self.critical_nodes, np.abs(self.node_importance), DRAWN)
        graph, edges = part_of(self.graph, nodes)
        names = graph.node_names or tuple(map(str, nodes.tolist()))
        return replace(
            self,
            graph=replace(graph, smiles=None, node_names=names),
            node_importance=self.node_importance[nodes],
            edge_importance=self.edge_importance[edges],
            critical_nodes=np.flatnonzero(np.isin(nodes, self.critical_nodes)),
            critical_edges=np.flatnonzero(np.isin(edges, self.critical_edges)),
            trace=self.trace and Trace(self.trace.nodes[:, nodes], self.trace.edges[:, edges]),
            whole=(self.graph.n_nodes, self.speaks_for, self.speaks_against),
        )

    def _repr_html_(self) -> str:
        """The picture inline in a notebook, and the text beneath."""
        text = html.escape(str(self)).replace("\n", "<br/>").encode("utf-8", "replace").decode()
        return f'<figure style="margin: 1em 0">{self.draw()}<figcaption>{text}</figcaption></figure>'

    @property
    def _headline(self) -> str:
        is_value = self.explained is None and isinstance(self.predicted, float)
        return f"{one_line(self.name)}: " + (f"{self.predicted:.4g}" if is_value else wording.called(self.predicted))

    @property
    def caption(self) -> str:
        """Name, prediction and probability in one line, and whether nothing stands out."""
        sure = f", {self.probability:.0%}" if self.probability is not None else ""
        # all atoms together may speak for the class nevertheless
        empty = "" if len(self.critical_nodes) else "; no part stands out"
        empty += f" for {wording.called(self.explained)}" if empty and self.explained is not None else ""
        return "; ".join(filter(None, (self._headline + sure + empty, self.drawn_part)))

    def named(self) -> "CriticalStructure":
        """The same with its classes by name, as files and pages have them.

        Returns:
            The structure itself where they are names already, or where a value was predicted."""
        if self.explained is None or isinstance(self.explained, str):
            return self
        graph = self.graph if self.graph.target is None else replace(self.graph, target=str(self.graph.target))
        return replace(self, graph=graph, predicted=str(self.predicted), explained=str(self.explained))

    def to_plain(self, *, trace: bool = False) -> dict[str, Any]:
        """What stands in one line of ``structures.jsonl``; :meth:`from_plain` reads it back.

        Arguments:
            trace: Also how the evidence travelled down the layers.

        Returns:
            Texts, numbers, lists and dictionaries, ready for JSON."""
        named = self.named()
        graph = named.graph
        plain: dict[str, Any] = {
            **{"name": graph.name, "predicted": named.predicted, "probability": self.probability, "true": graph.target},
            **{"class": named.explained, "technique": self.technique, "base": self.base, "for": self.speaks_for},
            **{"against": self.speaks_against, "output": self.output, "spread": self.spread},
            "node_importance": self.node_importance.tolist(),
            "edge_importance": [
                [u, v, x] for (u, v), x in zip(graph.edges.tolist(), self.edge_importance.tolist(), strict=True)
            ],
            "critical_nodes": self.critical_nodes.tolist(),
            "critical_edges": self.critical_pairs.tolist(),
            "fidelity": None if self.fidelity is None else asdict(self.fidelity),
        }
        for key in ("smiles", "node_label", "edge_label", "node_names"):
            if (value := getattr(graph, key)) is not None:
                plain[key] = value
        if trace and self.trace is not None:
            plain["trace"] = {"nodes": self.trace.nodes.tolist(), "edges": self.trace.edges.tolist()}
        return plain

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> "CriticalStructure":
        """The record of :meth:`to_plain` again; attributes, weights and truths of the graph are not in it.

        Arguments:
            plain: What :meth:`to_plain` gave.

        Returns:
            The structure.

        Raises:
            DataError: something is missing or does not fit."""
        try:
            fields = fields_of(plain)
        except KeyError as error:
            raise DataError(f"not a critical structure: it has no {error}") from None
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"not a critical structure: {' '.join(str(error).split())[:200]}") from None
        fidelity, trace = fields.pop("fidelity"), fields.pop("trace")
        return CriticalStructure(fidelity=fidelity and Fidelity(**fidelity), trace=trace and Trace(**trace), **fields)

    def to_networkx(self) -> "networkx.Graph":
        """The graph for networkx.

        Returns:
            Nodes, by their names where they have any, and edges with their ``importance``, ``label``, and whether they
            are ``critical``."""
        whole: Graph = self.graph
        graph: networkx.Graph = optional("networkx", "networks").Graph(name=self.name)
        critical, chosen = set(self.critical_nodes.tolist()), set(self.critical_edges.tolist())
        names: Sequence[Any] = whole.node_names or range(whole.n_nodes)
        for n, importance in enumerate(self.node_importance.tolist()):
            label = {} if whole.node_label is None else {"label": whole.node_label[n]}
            graph.add_node(names[n], importance=importance, critical=n in critical, **label)
        for n, ((u, v), importance) in enumerate(zip(whole.edges.tolist(), self.edge_importance.tolist(), strict=True)):
            label = {} if whole.edge_label is None else {"label": whole.edge_label[n]}
            graph.add_edge(names[u], names[v], importance=importance, critical=n in chosen, **label)
        return graph

    def to_pyg(self) -> "Explanation":
        """The record that PyTorch Geometric has for explanations.

        Returns:
            ``edge_index`` in both directions, ``node_mask`` (N, 1) and ``edge_mask`` as importances."""
        import torch

        made: type[Explanation] = optional("torch_geometric.explain", "pyg").Explanation
        edges = torch.from_numpy(self.graph.edges)
        again = edges[:, 0] != edges[:, 1]  # a loop stands once
        importance = torch.from_numpy(self.edge_importance).float()
        return made(
            num_nodes=self.graph.n_nodes,
            edge_index=torch.cat([edges, edges[again].flip(1)]).t().contiguous(),
            node_mask=torch.from_numpy(self.node_importance).float()[:, None],
            edge_mask=torch.cat([importance, importance[again]]),
        )


def part_of(graph: Graph, nodes: Ints) -> tuple[Graph, Ints]:
    """These nodes, counted anew in their order, with the edges among them; and which edges these are."""
    number = np.full(graph.n_nodes, -1)
    number[nodes] = np.arange(len(nodes))
    edges = np.flatnonzero((number[graph.edges] >= 0).all(axis=1))
    changes: dict[str, Any] = {"n_nodes": len(nodes), "edges": number[graph.edges[edges]]}
    for names, which in (((*NODE_COLUMNS, "node_names"), nodes), (EDGE_COLUMNS, edges)):
        for name in names:
            if isinstance(values := getattr(graph, name), tuple):
                changes[name] = tuple(values[n] for n in which)
            elif values is not None:
                changes[name] = values[which]
    return replace(graph, **changes), edges


def write_structures(structures: "Iterable[CriticalStructure]", path: Path) -> None:
    """One JSON object per line, in order."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for structure in structures:
            file.write(finite_json(structure.to_plain()) + "\n")


def read_structures(path: Path) -> "Iterator[CriticalStructure]":
    """What :func:`write_structures` wrote."""
    with regular(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                structure = CriticalStructure.from_plain(json.loads(line))
            except (ValueError, RecursionError, DataError) as error:
                raise DataError(f"{path.name}, line {number}: {error}") from None
            yield structure


class Structures(list[CriticalStructure]):
    """The critical structures of several graphs, in order: a list that a notebook shows as pictures."""

    def to_frame(self) -> Any:
        """The structures as a table.

        Returns:
            A pandas ``DataFrame`` with a row for each graph; ``critical_atoms`` counts them in the order of the input.
        """
        import pandas

        return pandas.DataFrame([_row(structure) for structure in self])

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - PICTURES} more</p>" if len(self) > PICTURES else ""
        return "".join(structure._repr_html_() for structure in self[:PICTURES]) + more


def _row(one: "CriticalStructure") -> dict[str, Any]:
    row = {"name": one.name, "smiles": one.graph.smiles, "predicted": one.predicted, "probability": one.probability}
    row |= {"true": one.graph.target, "explained": one.explained, "base": one.base, "output": one.output}
    row |= {"size": len(one.critical_nodes), "critical_atoms": one.critical_nodes.tolist()}
    shares = {name: getattr(one.fidelity, name, None) for name in ("evidence_kept", "evidence_lost")}
    return {**row, **shares, "spread": one.spread}
