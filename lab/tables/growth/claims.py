"""What Table 1 of the paper says of every system: properties and a complexity. Facts from Tzeng and Wu (ICML 2019).

The paper has one row for all message-passing networks; here each of the six that it cites stands for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLE_1 = "Tzeng and Wu, ICML 2019, Table 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row: N nodes, E edges, K neighbours at most, D numbers a node, L layers, M hops, C of the graph alone."""

    task_specific: bool
    precise: bool  # finds critical structures as they are, not only roughly where they are
    scale_efficient: bool  # what a layer more costs stays the same while it sees exponentially more nodes
    large_graphs: bool  # efficient on them
    complexity: str  # of the forward pass
    layers_power: int | None  # of L, or of the hops M, in the complexity; None where neither stands in it
    nodes_power: int  # of N in the complexity, with neighbours per node and C fixed
    source: str = TABLE_1


def _claim(ticks: str, complexity: str, layers_power: int | None, nodes_power: int, source: str = TABLE_1) -> Claim:
    """``ticks``: one sign for each property in the order of the paper's columns, x where it has a tick."""
    task_specific, precise, scale_efficient, large_graphs = (tick == "x" for tick in ticks)
    return Claim(
        task_specific=task_specific,
        precise=precise,
        scale_efficient=scale_efficient,
        large_graphs=large_graphs,
        complexity=complexity,
        layers_power=layers_power,
        nodes_power=nodes_power,
        source=source,
    )


SPECTRUM = _claim("x-xx", "O(D² L E)", 1, 1)
PASSING = _claim("x-xx", "O(K² D² L N)", 1, 1, f"{TABLE_1}, its row of message-passing networks")

CLAIMS: dict[str, Claim] = {
    "WL kernel": _claim("--xx", "O(L (K N + C))", 1, 1),
    "DGK": _claim("---x", "O(D C N)", None, 1),
    "Subgraph2vec": _claim("---x", "O(D C N)", None, 1),
    "MLG": _claim("--x-", "O(L N⁵)", 1, 5),
    "Structure2vec": _claim("x-xx", "O((K D + D²) L N)", 1, 1),
    "Spatial GCN": _claim("xx--", "O(D L N²)", 1, 2),
    "Spectrum GCN": SPECTRUM,
    "Spectrum GCN, Kipf's form": SPECTRUM,
    "DCNN": _claim("x---", "O(M D N²)", 1, 2),
    "Patchy-San": _claim("xx-x", "O(K² D N)", None, 1),
    "Neural fingerprints": PASSING,
    "GGNN": PASSING,
    "Column network": PASSING,
    "MPNN": PASSING,
    "1-head GAT": PASSING,
    "DiffPool": PASSING,
    "Ego-CNN": _claim("xxxx", "O(K D² L N)", 1, 1),
}
"""In the order of the paper."""
