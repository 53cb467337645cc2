"""Networks that stack graph convolutions: Inputs -> logits (B, C)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.rivals.gine import Inputs
from lab.rivals.networks.encoding import Shape
from lab.rivals.networks.layers import Network, Norm, degrees, dense_head, pool, pyg, sum_neighbours


class Stack(Network):
    r"""Convolutions one after the other, then the mean over the nodes and two dense layers.

    .. math:: H^{(l+1)} = \mathrm{dropout}(\mathrm{ReLU}(\mathrm{norm}(\mathrm{conv}_l(H^{(l)}, E))))

    ``conv``: columns in, columns out -> a layer of PyTorch Geometric that takes node vectors and edges.
    """

    def __init__(
        self, shape: Shape, conv: Callable[[int, int], nn.Module], *, layers: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(conv(width if layer else shape.node_columns, width) for layer in range(layers))
        self.norms = nn.ModuleList(Norm(width) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.head = dense_head(width, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        h = inputs.x
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = self.dropout(F.relu(norm(conv(h, inputs.edge_index))))
        logits: Tensor = self.head(pool(h, inputs, "mean"))
        return logits


def build_gcn(shape: Shape, *, layers: int = 3) -> Network:
    return Stack(shape, pyg().GCNConv, layers=layers, width=64, dropout=0.3)


class Polynomial(nn.Module):
    """A Chebyshev polynomial of the normalised Laplacian, none of whose eigenvalues is above 2.

    Left to itself the library looks for the bound in the batch, and finds none where there is no node.
    """

    def __init__(self, columns: int, width: int, *, terms: int = 3) -> None:
        super().__init__()
        self.conv = pyg().ChebConv(columns, width, K=terms)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index, lambda_max=x.new_tensor(2.0))
        return h


def build_chebyshev(shape: Shape, *, layers: int = 3) -> Network:
    return Stack(shape, Polynomial, layers=layers, width=64, dropout=0.3)


def build_gat(shape: Shape, *, layers: int = 3) -> Network:
    conv = pyg().GATConv

    def one_head(columns: int, width: int) -> Any:
        return conv(columns, width, heads=1)

    return Stack(shape, one_head, layers=layers, width=64, dropout=0.3)


class Diffusion(Network):
    r"""Diffusion-convolution of whole graphs.

    .. math:: Z_{h} = \tanh\Big(w_h \odot \frac{1}{N} \mathbf{1}^\top P^h X\Big), \quad P = D^{-1} A,
              \quad h = 0, \dots, H

    followed by one dense layer over all Z. Linear in X up to the tanh: which labels lie next to each other, it can
    tell only by the degrees around them.
    """

    def __init__(self, shape: Shape, *, hops: int) -> None:
        super().__init__()
        self.hops = hops
        self.weight = nn.Parameter(torch.randn(hops + 1, shape.node_columns))
        self.out = nn.Linear((hops + 1) * shape.node_columns, shape.classes)

    def forward(self, inputs: Inputs) -> Tensor:
        logits: Tensor = self.out(torch.tanh(self.diffuse(inputs) * self.weight).flatten(1))
        return logits

    def diffuse(self, inputs: Inputs) -> Tensor:
        """(B, H + 1, F) the mean over the nodes of what they see after 0 to H steps"""
        h, degree = inputs.x, degrees(inputs)
        seen = [pool(h, inputs, "mean")]
        for _ in range(self.hops):
            h = sum_neighbours(h, inputs) / degree
            seen.append(pool(h, inputs, "mean"))
        return torch.stack(seen, dim=1)


def build_diffusion(shape: Shape, *, layers: int = 5) -> Network:
    return Diffusion(shape, hops=layers)


class Fingerprints(Network):
    r"""Neural fingerprints: every layer writes each node's softmax into the fingerprint of the graph.

    .. math:: f = \sum_{l=0}^{L} \sum_n \mathrm{softmax}(W_l h_n^{(l)})
    """

    def __init__(self, shape: Shape, *, layers: int, width: int, length: int, dropout: float) -> None:
        super().__init__()
        conv = pyg().MFConv
        self.convs = nn.ModuleList(
            conv(width if layer else shape.node_columns, width, max_degree=MOST_DEGREE) for layer in range(layers)
        )
        self.norms = nn.ModuleList(Norm(width) for _ in range(layers))
        self.write = nn.ModuleList(
            nn.Linear(width if layer else shape.node_columns, length) for layer in range(layers + 1)
        )
        self.head = dense_head(length, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        fingerprint = sum(
            pool(write(h).softmax(1), inputs, "sum")
            for write, h in zip(self.write, self.embeddings(inputs), strict=True)
        )
        logits: Tensor = self.head(fingerprint)
        return logits

    def embeddings(self, inputs: Inputs) -> Iterator[Tensor]:
        h = inputs.x
        yield h
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = F.relu(norm(conv(h, inputs.edge_index)))
            yield h


MOST_DEGREE = 10  # Fingerprints have a matrix for each number of neighbours up to this one.


def build_fingerprints(shape: Shape, *, layers: int = 3) -> Network:
    return Fingerprints(shape, layers=layers, width=64, length=128, dropout=0.3)


class GIN(Network):
    r"""A graph isomorphism network: each layer, the input included, votes with the sum over its nodes.

    .. math:: h'_n = \mathrm{ReLU}\Big(\mathrm{norm}\big(\mathrm{MLP}((1 + \epsilon) h_n
              + \sum_{m \in N(n)} h_m)\big)\Big), \quad y = \sum_l W_l \sum_n h_n^{(l)}
    """

    def __init__(self, shape: Shape, *, layers: int, width: int, dropout: float) -> None:
        super().__init__()
        conv = pyg().GINConv
        sizes = [shape.node_columns, *[width] * layers]
        self.convs = nn.ModuleList(
            conv(nn.Sequential(nn.Linear(size, width), Norm(width), nn.ReLU(), nn.Linear(width, width)), train_eps=True)
            for size in sizes[:-1]
        )
        self.norms = nn.ModuleList(Norm(width) for _ in range(layers))
        self.votes = nn.ModuleList(nn.Linear(size, shape.classes) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        h = inputs.x
        logits: Tensor = self.dropout(self.votes[0](pool(h, inputs, "sum")))
        for conv, norm, vote in zip(self.convs, self.norms, self.votes[1:], strict=True):
            h = F.relu(norm(conv(h, inputs.edge_index)))
            logits = logits + self.dropout(vote(pool(h, inputs, "sum")))
        return logits


def build_gin(shape: Shape, *, layers: int = 4) -> Network:
    return GIN(shape, layers=layers, width=64, dropout=0.5)
