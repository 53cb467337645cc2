"""Random graphs to convolve: sizes and a seed -> a neighbour table, and the same graph as an edge list."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Density = Literal["full", "molecules"]

REACH = 40  # Neighbours stand within this many positions, as the nodes of one small graph do in a batch.
MEAN_DEGREE, LARGEST_DEGREE = 2.2, 4  # What atoms have, hydrogens left out.


def neighbour_table(nodes: int, k: int, density: Density, generator: torch.Generator) -> Tensor:
    """(N, K) of int32: all neighbours present, or as few as in molecules and -1 behind them."""
    device = generator.device
    step = torch.randint(1, REACH + 1, (nodes, k), device=device, generator=generator, dtype=torch.int32)
    forward = torch.randint(0, 2, (nodes, k), device=device, generator=generator, dtype=torch.int32)
    table = (torch.arange(nodes, device=device, dtype=torch.int32)[:, None] + step * (2 * forward - 1)) % nodes
    if density == "molecules":
        mean = torch.full((nodes,), MEAN_DEGREE, device=device)
        degree = torch.poisson(mean, generator=generator).clamp(1, min(LARGEST_DEGREE, k))
        table[torch.arange(k, device=device) >= degree[:, None]] = -1
    return table


def edge_list(table: Tensor) -> Tensor:
    """(2, M) of int64, from every neighbour to the node that reads it, in the order of the readers"""
    node, rank = torch.nonzero(table >= 0, as_tuple=True)
    return torch.stack([table[node, rank].long(), node])


def with_loops(edges: Tensor, nodes: int) -> Tensor:
    """An edge from every node to itself besides."""
    loops = torch.arange(nodes, device=edges.device)
    return torch.cat([edges, torch.stack([loops, loops])], dim=1)


def degree_histogram(edges: Tensor, nodes: int) -> Tensor:
    """How many nodes have 0, 1, 2, … edges that lead to them."""
    return torch.bincount(torch.bincount(edges[1], minlength=nodes))
