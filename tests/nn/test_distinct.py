"""Computing equal nodes once changes nothing but the rounding of products of a few rows."""

import pytest
import torch

from egocnn import read
from egocnn.config import ModelConfig, Readout
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import predict


@pytest.mark.parametrize(("readout", "slots"), [("mean+log+max", 10), ("sort", 3)])
def test_nodes_that_are_told_apart_later_are_computed_once_before(readout: Readout, slots: int) -> None:
    graphs = read("compounds:alcohols")[:600]
    config = ModelConfig(width=16, depth=2, readout=readout, slots=slots)
    torch.manual_seed(0)
    model = Model.build(config, Encoder.fit(graphs, config))
    batch = model.encode(graphs).batch(torch.arange(len(graphs)))
    few = predict.distinct(batch, config.k, config.depth, fewest=1)
    kinds = [int(kind.max()) + 1 for kind in few.kinds]
    assert len(batch.place) > 2 * kinds[2] >= 2 * kinds[1] >= 2 * kinds[0] > 2
    network = model.networks[0].eval()
    with torch.no_grad():
        one, other = network(batch), network(few)
    for a, b in zip((*one.layers, one.output), (*other.layers, other.output), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_a_small_batch_stays_as_it_is() -> None:
    graphs = read("compounds:alcohols")[:3]
    model = Model.build(ModelConfig(), Encoder.fit(graphs, ModelConfig()))
    batch = model.encode(graphs).batch(torch.arange(3))
    assert predict.distinct(batch, 16, 3) is batch
