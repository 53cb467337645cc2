"""One line of ``structures.jsonl`` -> the fields of a critical structure, checked."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph

OWN = {"predicted": "text or number", "probability": "number?", "class": "text?", "base": "number", "output": "number"}
LATER = {"spread": "number?", "true": "text or number?", "smiles": "text?"}
FIDELITY = {"removed": "number", "kept": "number", "evidence_lost": "number?", "evidence_kept": "number?"}
MAY_LACK = (*LATER, "evidence_lost", "evidence_kept")


def fields_of(plain: Mapping[str, Any]) -> dict[str, Any]:
    """By their names, those of fidelity and trace in dictionaries; a KeyError or ValueError says what is wrong."""
    nodes, triples = _numbers(plain["node_importance"]), [(u, v, x) for u, v, x in plain["edge_importance"]]
    N, E, fidelity, trace = len(nodes), len(triples), plain.get("fidelity"), plain.get("trace")
    edges = _nodes([end for u, v, _ in triples for end in (u, v)], N).reshape(-1, 2)
    number = {(u, v): position for position, (u, v) in enumerate(edges.tolist())}
    if len(number) < E or (edges[:, 0] > edges[:, 1]).any():
        raise ValueError("an edge must stand once, its lower end first")
    for pair in (critical := [(u, v) for u, v in plain["critical_edges"]]):
        if pair not in number:
            raise ValueError(f"no edge {pair} among those with an importance")
    fields, columns = _some(plain, OWN | LATER), {"node_label": N, "edge_label": E, "node_names": N}
    known: dict[str, Any] = {name: _texts(plain.get(name), count) for name, count in columns.items()}
    known |= {"name": str(plain["name"]), "target": fields.pop("true"), "smiles": fields.pop("smiles")}
    known |= dict.fromkeys(("edge_weight", "node_attr", "node_truth", "edge_truth"))
    fields |= {"explained": fields.pop("class"), "technique": str(plain.get("technique", ""))}
    return fields | {
        "graph": Graph(n_nodes=N, edges=edges, **known),
        "node_importance": nodes,
        "edge_importance": _numbers([x for _, _, x in triples]),
        "critical_nodes": np.unique(_nodes(plain["critical_nodes"], N)),
        "critical_edges": np.unique(np.array([number[pair] for pair in critical], np.int64)),
        "fidelity": None if fidelity is None else _some(fidelity, FIDELITY),
        "trace": None if trace is None else _trace(trace, N, E),
    }


def _some(plain: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    return {name: _one(plain.get(name) if name in MAY_LACK else plain[name], kind) for name, kind in kinds.items()}


def _one(value: Any, kind: str) -> Any:
    """A text or a finite number, or None where the kind ends in ?"""
    if (value is None and kind.endswith("?")) or (isinstance(value, str) and "text" in kind):
        return value
    if "number" not in kind:
        raise ValueError(f"{str(value)[:50]!r} is not a text")
    return float(_numbers([value])[0])


def _numbers(values: Any) -> Floats:
    for value in values:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"{str(value)[:50]!r} is not a finite number")
    return np.array(values, np.float64)


def _nodes(values: Any, count: int) -> Ints:
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
            raise ValueError(f"{str(value)[:50]!r} is not one of {count} nodes")
    return np.array(values, np.int64)


def _texts(values: Any, count: int) -> tuple[str, ...] | None:
    if values is not None and len(values) != count:
        raise ValueError(f"{len(values)} labels for {count}")
    return None if values is None else tuple(map(str, values))


def _trace(plain: Any, *counts: int) -> dict[str, Floats]:
    nodes, edges = both = [[_numbers(row) for row in plain[kind]] for kind in ("nodes", "edges")]
    if len(nodes) != len(edges) or not nodes:
        raise ValueError(f"a trace of {len(nodes)} and {len(edges)} rows")
    if any(len(row) != count for rows, count in zip(both, counts, strict=True) for row in rows):
        raise ValueError("a trace of another graph")
    return {"nodes": np.stack(nodes), "edges": np.stack(edges)}
