"""The spatial construction of Bruna et al.: the nodes of graphs of one size -> layers of learned matrices between them.

As the supplement of the paper describes it: a filter learns how all clusters are connected, so it has N² weights and
fits graphs of one size only. It therefore serves to measure how time grows, and nothing else.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.errors import DataError
from lab.rivals.gine import Inputs
from lab.rivals.networks.diffpool import MEMORY
from lab.rivals.networks.encoding import Shape
from lab.rivals.networks.layers import Network, dense_head

COPIES = 4  # of every weight that a step holds: itself, its gradient, and the two averages of AdamW


class SpatialConstruction(Network):
    r"""Every cluster is a node, and none are merged.

    .. math:: H^{(l+1)} = \mathrm{ReLU}(W_l H^{(l)} V_l), \quad W_l \in R^{N \times N}, V_l \in R^{D \times D}
    """

    def __init__(self, shape: Shape, *, layers: int, width: int = 64) -> None:
        super().__init__()
        self.nodes, self.layers = shape.most_nodes, layers
        self.check_size(self.nodes, 1, torch.device("cpu"))  # before the weights are there
        self.embed = nn.Linear(shape.node_columns, width)
        scale = 1 / math.sqrt(self.nodes)
        self.between = nn.ParameterList(torch.randn(self.nodes, self.nodes) * scale for _ in range(layers))
        self.mix = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = dense_head(width, width, shape.classes, 0.3)

    def forward(self, inputs: Inputs) -> Tensor:
        h = self.embed(inputs.x).view(inputs.n_graphs, self.nodes, -1)
        for between, mix in zip(self.between, self.mix, strict=True):
            h = F.relu(mix(between @ h))
        logits: Tensor = self.head(h.mean(1))
        return logits

    def check_size(self, most_nodes: int, batch_size: int, device: torch.device) -> None:  # noqa: ARG002
        needed = 4 * COPIES * self.layers * most_nodes**2
        if needed > MEMORY:
            gibibytes = f"{needed / 2**30:.1f} GiB; {MEMORY / 2**30:.1f} GiB are set aside"
            raise DataError(f"matrices between all {most_nodes} nodes in {self.layers} layers need about {gibibytes}")
