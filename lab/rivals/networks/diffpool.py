"""DiffPool: Inputs -> graphs as dense matrices, clustered twice -> logits (B, C)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.errors import DataError
from lab.rivals.gine import Inputs
from lab.rivals.networks.encoding import Shape
from lab.rivals.networks.layers import Network, Norm, dense_head, pyg

COPIES = 8  # Matrices as large as the adjacency matrices of a batch that one step holds at a time, gradients included.

MEMORY = 4 << 30  # Bytes that those may take on a CPU; on a GPU, half of what it has.


class Stage(nn.Module):
    """Dense GraphSAGE layers, their outputs side by side: (B, n, F) -> (B, n, L D)."""

    def __init__(self, columns: int, width: int, layers: int) -> None:
        super().__init__()
        conv = pyg().DenseSAGEConv
        self.convs = nn.ModuleList(conv(width if layer else columns, width) for layer in range(layers))
        self.norms = nn.ModuleList(Norm(width) for _ in range(layers))

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor | None) -> Tensor:
        seen = []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.normalize(conv(x, adjacency), dim=-1)
            x = F.relu(norm(x.flatten(0, 1)).view_as(x))
            x = x if mask is None else x * mask[..., None]
            seen.append(x)
        return torch.cat(seen, dim=-1)


class DiffPool(Network):
    """Two rounds of learned clusters, each a quarter as many as there were nodes; after each, the maximum is read."""

    def __init__(self, shape: Shape, *, layers: int, width: int, share: float, dropout: float) -> None:
        super().__init__()
        self.pool = pyg().dense_diff_pool
        first = math.ceil(share * max(shape.most_nodes, 1))
        self.clusters = first, math.ceil(share * first)
        columns = shape.node_columns, layers * width, layers * width
        self.embed = nn.ModuleList(Stage(size, width, layers) for size in columns)
        self.assign = nn.ModuleList(Stage(size, width, layers) for size in columns[:2])
        self.choose = nn.ModuleList(nn.Linear(layers * width, size) for size in self.clusters)
        self.head = dense_head(3 * layers * width, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        return self.run(inputs)[0]

    def loss(self, batch: Inputs, target: Tensor) -> Tensor:
        logits, wishes = self.run(batch)
        return F.cross_entropy(logits, target) + wishes

    def run(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Logits, and how far the clusters are from joining neighbours and from being clear-cut"""
        x, adjacency, mask = densify(inputs)
        here: Tensor | None = mask
        wishes, read = x.new_zeros(()), []
        for embed, assign, choose in zip(self.embed, self.assign, self.choose, strict=False):
            h = embed(x, adjacency, here)
            read.append(h.amax(1))
            chosen = choose(assign(x, adjacency, here))
            x, adjacency, link, entropy = self.pool(h, adjacency, chosen, here)
            wishes, here = wishes + link + entropy, None
        read.append(self.embed[-1](x, adjacency, None).amax(1))
        return self.head(torch.cat(read, dim=1)), wishes

    def check_size(self, most_nodes: int, batch_size: int, device: torch.device) -> None:
        needed = 4 * COPIES * batch_size * most_nodes**2
        there = torch.cuda.get_device_properties(device).total_memory // 2 if device.type == "cuda" else MEMORY
        if needed > there:
            gibibytes = f"{needed / 2**30:.1f} GiB; {there / 2**30:.1f} GiB are set aside"
            raise DataError(f"DiffPool on graphs of {most_nodes} nodes needs dense matrices of about {gibibytes}")


def densify(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Node vectors (B, n, F), adjacency (B, n, n) and which nodes are there (B, n), n those of the largest graph"""
    counts = torch.bincount(inputs.graph_of, minlength=inputs.n_graphs)
    most = max(int(counts.max()), 1)
    place = torch.arange(len(inputs.x), device=counts.device) - (counts.cumsum(0) - counts)[inputs.graph_of]
    x = inputs.x.new_zeros(inputs.n_graphs, most, inputs.x.shape[1])
    x[inputs.graph_of, place] = inputs.x
    adjacency = x.new_zeros(inputs.n_graphs, most, most)
    node, neighbour = inputs.edge_index
    adjacency[inputs.graph_of[node], place[node], place[neighbour]] = 1
    mask = torch.arange(most, device=counts.device) < counts[:, None]
    return x, adjacency, mask.to(x.dtype)


def build_diffpool(shape: Shape, *, layers: int = 3) -> Network:
    return DiffPool(shape, layers=layers, width=64, share=0.25, dropout=0.3)
