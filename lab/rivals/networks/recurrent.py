"""Networks that update node states with the same weights again and again: Inputs -> logits (B, C)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.rivals.gine import Inputs
from lab.rivals.networks.encoding import Shape
from lab.rivals.networks.layers import Network, Norm, dense_head, pool, pyg, sum_neighbours


class Structure2vec(Network):
    r"""Mean-field inference as a network.

    .. math:: \mu_n \leftarrow \mathrm{ReLU}\Big(W_1 x_n + W_2 \sum_{m \in N(n)} \mu_m
              + W_3 \sum_{m \in N(n)} e_{mn}\Big)

    for a few rounds with the same weights, from zero; the graph is the sum over its nodes.
    """

    def __init__(self, shape: Shape, *, rounds: int, width: int, dropout: float) -> None:
        super().__init__()
        self.rounds = rounds
        self.own = nn.Linear(shape.node_columns, width)
        self.around = nn.Linear(width, width)
        self.edges = nn.Linear(shape.edge_columns, width, bias=False)
        self.norm = Norm(width)
        self.head = dense_head(width, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        bonds = inputs.x.new_zeros(len(inputs.x), inputs.edge_attr.shape[1])
        fixed = self.own(inputs.x) + self.edges(bonds.index_add(0, inputs.edge_index[0], inputs.edge_attr))
        mu = torch.zeros_like(fixed)
        for _ in range(self.rounds):
            mu = F.relu(fixed + self.around(sum_neighbours(mu, inputs)))
        logits: Tensor = self.head(self.norm(pool(mu, inputs, "sum")))
        return logits


def build_structure2vec(shape: Shape, *, layers: int = 4) -> Network:
    return Structure2vec(shape, rounds=layers, width=64, dropout=0.3)


class GatedNetwork(Network):
    r"""A gated graph network with the readout of its paper.

    .. math:: y = \tanh\Big(\sum_n \sigma(i(h_n, x_n)) \odot \tanh(j(h_n, x_n))\Big)

    where h are the states after a few gated steps; two dense layers follow.
    """

    def __init__(self, shape: Shape, *, steps: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Linear(shape.node_columns, width)
        self.steps = pyg().GatedGraphConv(width, num_layers=steps)
        self.gate = nn.Linear(2 * width, width)
        self.value = nn.Linear(2 * width, width)
        self.norm = Norm(width)
        self.head = dense_head(width, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        x = self.embed(inputs.x)
        both = torch.cat([self.steps(x, inputs.edge_index), x], dim=1)
        seen = pool(torch.sigmoid(self.gate(both)) * torch.tanh(self.value(both)), inputs, "sum")
        logits: Tensor = self.head(torch.tanh(self.norm(seen)))
        return logits


def build_gated(shape: Shape, *, layers: int = 5) -> Network:
    return GatedNetwork(shape, steps=layers, width=64, dropout=0.3)


class ColumnNetwork(Network):
    r"""A column of highway layers per node, each layer with the same weights.

    .. math:: \tilde h_n = \mathrm{ReLU}\Big(W h_n + \frac{1}{R} \sum_r V_r c_{nr}\Big), \quad
              a_n = \sigma\Big(W' h_n + \frac{1}{R} \sum_r V'_r c_{nr}\Big), \quad
              h_n \leftarrow a_n \tilde h_n + (1 - a_n) h_n

    where c is the mean over the neighbours that relation r, an edge label, joins to n.
    """

    def __init__(self, shape: Shape, *, layers: int, width: int, dropout: float) -> None:
        super().__init__()
        self.layers = layers
        self.embed = nn.Linear(shape.node_columns, width)
        self.own = nn.Linear(width, 2 * width)  # both the candidate and its gate
        self.context = nn.Linear(shape.edge_columns * width, 2 * width, bias=False)
        with torch.no_grad():
            self.own.bias[width:] = -1.0  # highways start almost open: ten layers deep, little would come through
        self.dropout = nn.Dropout(dropout)
        self.head = dense_head(width, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        N, R = len(inputs.x), inputs.edge_attr.shape[1]
        edge, relation = inputs.edge_attr.nonzero().T
        row = inputs.edge_index[0, edge] * R + relation  # one for each node and relation
        source, value = inputs.edge_index[1, edge], inputs.edge_attr[edge, relation][:, None]
        count = torch.bincount(row, minlength=N * R).clamp(min=1)[:, None]
        h = F.relu(self.embed(inputs.x))
        for _ in range(self.layers):
            around = h.new_zeros(N * R, h.shape[1]).index_add(0, row, h[source] * value) / count
            candidate, gate = (self.own(h) + self.context(around.view(N, R * h.shape[1])) / R).chunk(2, dim=1)
            h = torch.lerp(h, F.relu(candidate), torch.sigmoid(gate))
        logits: Tensor = self.head(pool(self.dropout(h), inputs, "mean"))
        return logits


def build_column(shape: Shape, *, layers: int = 10) -> Network:
    return ColumnNetwork(shape, layers=layers, width=64, dropout=0.3)


class MessagePassing(Network):
    r"""Gilmer's network: the edge's features make the matrix of its message, a GRU updates, Set2Set reads out.

    .. math:: m_n = \mathrm{ReLU}\Big(W h_n + \sum_{m \in N(n)} A(e_{mn}) h_m + b\Big), \quad
              h_n \leftarrow \mathrm{GRU}(m_n, h_n)
    """

    def __init__(self, shape: Shape, *, steps: int, width: int, dropout: float) -> None:
        super().__init__()
        layers = pyg()
        self.steps = steps
        self.embed = nn.Linear(shape.node_columns, width)
        edge_network = nn.Sequential(nn.Linear(shape.edge_columns, width), nn.ReLU(), nn.Linear(width, width * width))
        self.conv = layers.NNConv(width, width, edge_network, aggr="add")
        self.update = nn.GRUCell(width, width)
        self.readout = layers.Set2Set(width, processing_steps=3)
        self.head = dense_head(2 * width, width, shape.classes, dropout)

    def forward(self, inputs: Inputs) -> Tensor:
        h = F.relu(self.embed(inputs.x))
        kinds, kind = torch.unique(inputs.edge_attr, dim=0, return_inverse=True)
        for _ in range(self.steps):
            if len(kinds) > MOST_KINDS:
                heard = self.conv(h, inputs.edge_index, inputs.edge_attr)
            else:
                heard = self.hear(h, inputs, kinds, kind)
            h = self.update(F.relu(heard), h)
        logits: Tensor = self.head(self.readout(h, inputs.graph_of, dim_size=inputs.n_graphs))
        return logits

    def hear(self, h: Tensor, inputs: Inputs, kinds: Tensor, kind: Tensor) -> Tensor:
        """What the convolution gives, with a matrix for each kind of edge instead of one for each edge."""
        heard: Tensor = self.conv.lin(h) + self.conv.bias
        to, source = inputs.edge_index
        for number, matrix in enumerate(self.conv.nn(kinds).view(-1, h.shape[1], h.shape[1])):
            edges = torch.nonzero(kind == number)[:, 0]
            heard = heard + torch.zeros_like(h).index_add(0, to[edges], h[source[edges]]) @ matrix
        return heard


MOST_KINDS = 16  # Edges of more kinds than this in a batch, weighted ones say, each have their own matrix.


def build_message_passing(shape: Shape, *, layers: int = 3) -> Network:
    return MessagePassing(shape, steps=layers, width=64, dropout=0.3)
