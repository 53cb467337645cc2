"""The columns of a collection and the rules they obey: Graphs -> nothing, or a DataError."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from egocnn.errors import DataError

if TYPE_CHECKING:
    from egocnn.graphs import Graphs

PARTS = ("train", "validation", "test")
NODE_COLUMNS = ("node_label", "node_attr", "node_truth")
EDGE_COLUMNS = ("edge_label", "edge_weight", "edge_truth")
GRAPH_COLUMNS = ("target", "group", "part")


def check_rules(graphs: Graphs) -> None:
    """Check lengths, ranges and symmetry; the rules are those of the field descriptions above."""

    def rule(holds: bool | np.bool_, message: str) -> None:
        if not holds:
            raise DataError(message)

    node_ptr, indptr, indices = graphs.node_ptr, graphs.indptr, graphs.indices
    for name, pointer in (("node_ptr", node_ptr), ("indptr", indptr)):
        rule(pointer.ndim == 1 and len(pointer) >= 1 and pointer[0] == 0, f"{name} must start with 0")
        rule(bool((np.diff(pointer) >= 0).all()), f"{name} must not decrease")
    sizes = {"graphs": len(graphs), "nodes": graphs.n_nodes, "adjacency entries": len(indices)}
    rule(len(indptr) == sizes["nodes"] + 1, f"indptr has {len(indptr)} entries for {sizes['nodes']} nodes")
    rule(indptr[-1] == len(indices), f"indptr ends at {indptr[-1]} but there are {len(indices)} adjacency entries")
    rule(indices.size == 0 or (indices.min() >= 0 and indices.max() < sizes["nodes"]), "indices out of range")
    for columns, unit in ((NODE_COLUMNS, "nodes"), (EDGE_COLUMNS, "adjacency entries"), (GRAPH_COLUMNS, "graphs")):
        for name in columns:
            values = getattr(graphs, name)
            if values is not None:
                rule(len(values) == sizes[unit], f"{name} has {len(values)} entries for {sizes[unit]} {unit}")
    rule(len(graphs.names) == len(graphs), f"{len(graphs.names)} names for {len(graphs)} graphs")
    rule(graphs.smiles is None or len(graphs.smiles) == len(graphs), "smiles must name every graph")
    for name, names in (("node_label", graphs.node_label_names), ("edge_label", graphs.edge_label_names)):
        codes = getattr(graphs, name)
        rule(
            codes is None or codes.size == 0 or (codes.min() >= -1 and codes.max() < len(names)), f"{name} out of range"
        )
    if graphs.target is not None and graphs.is_classification:
        known = (graphs.target >= -1) & (graphs.target < len(graphs.class_names))
        rule(bool(known.all()), "target names a class that does not exist")
    if graphs.node_attr is not None:
        rule(graphs.node_attr.ndim == 2, "node_attr must be a table, one row per node")
        rule(bool(np.isfinite(graphs.node_attr).all()), "node_attr must be finite")
    if graphs.edge_weight is not None:
        rule(bool(np.isfinite(graphs.edge_weight).all()), "edge_weight must be finite")
    if len(indices):
        node = graphs.entry_node
        owner = graphs.graph_of
        rule(bool((owner[node] == owner[indices]).all()), "an edge must stay inside one graph")
