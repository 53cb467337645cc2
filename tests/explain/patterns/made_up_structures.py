"""Critical structures made by hand, for tests that know what must be found in them."""

from collections.abc import Iterable, Sequence

import numpy as np

from egocnn.data.graphs import Graph, Graphs
from egocnn.data.sources.smiles import from_smiles
from egocnn.explain.structure import CriticalStructure


def structure(
    graph: Graph, nodes: Iterable[int], predicted: str | float, explained: str | None = ""
) -> CriticalStructure:
    """Nodes and the edges among them, critical for the predicted class unless another is named."""
    chosen = np.array(sorted(nodes), dtype=np.int64)
    marked = np.zeros(graph.n_nodes, bool)
    marked[chosen] = True
    edges = np.flatnonzero([bool(marked[u] and marked[v]) for u, v in graph.edges.tolist()])
    return CriticalStructure(
        graph=graph,
        predicted=predicted,
        probability=0.9 if isinstance(predicted, str) else None,
        explained=str(predicted) if explained == "" else explained,
        technique="by hand",
        base=0.0,
        output=float(len(chosen)),
        node_importance=marked.astype(np.float32),
        edge_importance=np.isin(np.arange(len(graph.edges)), edges).astype(np.float32),
        critical_nodes=chosen,
        critical_edges=edges,
    )


def molecules(smiles: Sequence[str], critical: str, predicted: str) -> list[CriticalStructure]:
    """Molecules of one class whose critical atoms are the first match of a SMARTS."""
    from rdkit import Chem

    query = Chem.MolFromSmarts(critical)
    made = []
    for graph in from_smiles(smiles, targets=[predicted] * len(smiles), names=[f"{predicted} {s}" for s in smiles]):
        molecule = Chem.MolFromSmiles(graph.smiles or "")
        made.append(structure(graph, molecule.GetSubstructMatch(query), predicted))
    return made


def some_nodes(graph: Graph, size: int, generator: np.random.Generator) -> set[int]:
    """A connected part of the graph, grown at random."""
    found = {int(generator.integers(graph.n_nodes))}
    while len(found) < size:
        edges = [(u, v) for u, v in graph.edges.tolist() if (u in found) != (v in found)]
        if not edges:
            break
        u, v = edges[int(generator.integers(len(edges)))]
        found |= {u, v}
    return found


def labelled(edges: Sequence[tuple[int, int]], labels: Sequence[str], target: str, name: str) -> Graph:
    names = tuple(sorted(set(labels)))
    graphs = Graphs.from_edges(
        node_counts=[len(labels)],
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
        names=[name],
        node_label=np.array([names.index(label) for label in labels], np.int32),
        node_label_names=names,
        target=np.array([0]),
        class_names=(target,),
    )
    return graphs[0]
