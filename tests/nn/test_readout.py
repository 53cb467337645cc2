import math
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from egocnn.config import Readout
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import Pool, SortPool
from egocnn.nn.batch import Batch
from egocnn.nn.readout import log_of, pool
from tests.support.networks import whole_batch
from tests.support.tiny import plain_model

CONFIG = plain_model(k=2, slots=2)


def batch_of(graphs: Graphs) -> Batch:
    return whole_batch(graphs, Encoder.fit(graphs, CONFIG), CONFIG)


def embeddings(N: int, D: int = 3, seed: int = 0) -> Tensor:
    """Numbers of both signs, one row a node."""
    return torch.randn(N, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("kind", get_args(Readout))
def test_gradients_equal_finite_differences_and_a_graph_without_nodes_reads_zeros(kind: Readout) -> None:
    batch = batch_of(Graphs.from_edges(node_counts=[3, 0, 1, 0], edges=np.array([[0, 1]])))
    readout = SortPool(2) if kind == "sort" else Pool(kind)
    h = embeddings(4).requires_grad_()
    out = readout(h, batch)
    assert (out[[1, 3]] == 0).all()
    assert (out[[0, 2]] != 0).any(dim=1).all()
    assert torch.autograd.gradcheck(lambda h: readout(h, batch), (h,))
    assert torch.autograd.gradgradcheck(lambda h: readout(h, batch), (h,))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nodes_that_attain_the_maximum_together_share_its_gradient(sign: float) -> None:
    h = torch.tensor([[2.0], [2.0], [1.0], [3.0]], requires_grad=True)
    pooled = pool(h, torch.tensor([0, 0, 0, 1]), torch.tensor([3, 1]), "max")
    (gradient,) = torch.autograd.grad((sign * pooled).sum(), h)
    assert gradient.flatten().tolist() == [sign / 2, sign / 2, 0.0, sign]


def test_the_logarithm_of_a_sum_rises_everywhere_and_as_steeply_as_the_sum_at_0() -> None:
    total = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    found = log_of(total)
    assert found.tolist() == pytest.approx([-math.log(4), -math.log(2), 0, math.log(2), math.log(4)])
    assert torch.autograd.grad(found.sum(), total)[0].tolist() == pytest.approx([0.25, 0.5, 1, 0.5, 0.25])
