"""The layers of PyTorch Geometric that ours is compared with, alone and as networks of equal depth and width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import ModelConfig
from lab.rivals.gine import Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    layer: Callable[[int, Tensor], nn.Module]
    """width, histogram of degrees -> a layer called with x (N, D) and edge_index (2, M)"""
    reads_itself: bool = True
    """a node's own embedding is part of the layer; where not, the edges must hold it as a self-loop"""


def _gin(width: int, _: Tensor) -> nn.Module:
    from torch_geometric.nn import GINConv

    layer: nn.Module = GINConv(nn.Linear(width, width))
    return layer


def _gin_two(width: int, _: Tensor) -> nn.Module:
    from torch_geometric.nn import GINConv

    layer: nn.Module = GINConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
    return layer


def _gat(width: int, _: Tensor) -> nn.Module:
    from torch_geometric.nn import GATConv

    # by default it looks for self-loops and adds them in every call; given beforehand, they cost it nothing
    layer: nn.Module = GATConv(width, width, heads=1, add_self_loops=False)
    return layer


def _pna(width: int, degrees: Tensor) -> nn.Module:
    from torch_geometric.nn import PNAConv

    layer: nn.Module = PNAConv(
        width,
        width,
        aggregators=["mean", "min", "max", "std"],
        scalers=["identity", "amplification", "attenuation"],
        deg=degrees,
    )
    return layer


GIN = Peer(name="PyG GINConv (one linear layer)", layer=_gin)
GIN_TWO = Peer(name="PyG GINConv (MLP of two layers)", layer=_gin_two)
GAT = Peer(name="PyG GATConv (1 head)", layer=_gat, reads_itself=False)
PNA = Peer(name="PyG PNAConv", layer=_pna)


class PeerNetwork(nn.Module):
    """An embedding of the node labels, L layers of one peer, maximum, dense head: what ours has, layer by layer."""

    def __init__(self, peer: Peer, config: ModelConfig, *, columns: int, degrees: Tensor, outputs: int) -> None:
        super().__init__()
        width = config.width
        self.embed = nn.Linear(columns, width)
        self.first_norm = nn.BatchNorm1d(width)
        self.convs = nn.ModuleList(peer.layer(width, degrees) for _ in range(config.depth))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(config.depth))
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(width, config.hidden)
        self.out = nn.Linear(config.hidden, outputs)

    def forward(self, inputs: Inputs) -> Tensor:
        from torch_geometric.nn import global_max_pool

        h = self.dropout(F.relu(self.first_norm(self.embed(inputs.x))))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = self.dropout(F.relu(norm(conv(h, inputs.edge_index))))
        graph = global_max_pool(h, inputs.graph_of, size=inputs.n_graphs)
        logits: Tensor = self.out(self.dropout(F.relu(self.hidden(graph))))
        return logits
