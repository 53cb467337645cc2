"""What tying means: the pattern of one filter shared by all layers is a Kronecker product."""

from itertools import product

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.data.arrays import Floats
from egocnn.nn import EgoCNN, EgoConv
from egocnn.nn.embed import PatchShape


def one_filter(k: int, depth: int, weight: Tensor) -> EgoCNN:
    """A tied Ego-CNN with a single filter, its bias and norms out of the way; positive weights keep it linear."""
    config = ModelConfig(k=k, depth=depth, width=1, tie=True, dropout=0)
    network = EgoCNN(config, shape=PatchShape(slots=2, node_labels=0, edge_labels=0), attributes=0, outputs=2).double()
    first = network.convs[0]
    assert isinstance(first, EgoConv)
    for conv in network.convs:
        conv.norm = nn.Identity()
    with torch.no_grad():
        first.weight.copy_(weight.view(-1, 1, 1))
    network.eval()
    return network


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_the_pattern_of_a_tied_one_filter_network_is_a_kronecker_product(k: int, depth: int, seed: int) -> None:
    """Section 4 of the supplement: A(l) = f(A(l-1) ⊗ W), where f merges what belongs to the same node."""
    random = np.random.default_rng(seed)
    nodes = 7
    table = np.array([random.choice(nodes, k, replace=False) for _ in range(nodes)])
    table[random.random(table.shape) < 0.2] = -1
    pattern = random.random((k, k)) + 0.1
    weight = random.random(k + 1) + 0.1
    patches = torch.from_numpy(random.random((nodes, k, k))).requires_grad_()

    network = one_filter(k, depth, torch.from_numpy(weight))
    h = (patches * torch.from_numpy(pattern)).sum((1, 2))[:, None]
    for conv in network.convs:
        h = conv(h, torch.from_numpy(table))
    (captured,) = torch.autograd.grad(h[0, 0], patches)

    product_of_all: Floats = pattern
    for _ in range(depth):
        product_of_all = np.kron(weight[:, None], product_of_all)  # (K + 1 times as many rows, K)
    merged = np.zeros((nodes, k, k))
    blocks = product_of_all.reshape(-1, k, k)
    for block, ranks in zip(blocks, product(range(k + 1), repeat=depth), strict=True):
        node = 0
        for rank in ranks:
            node = node if rank == 0 or node < 0 else int(table[node, rank - 1])
        if node >= 0:
            merged[node] += block
    np.testing.assert_allclose(captured.numpy(), merged, rtol=1e-9, atol=1e-12)
