"""Computing equal nodes once changes nothing."""

import pytest
import torch

from egocnn import read
from egocnn.config import ModelConfig, Readout
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import distinct


@pytest.mark.parametrize(("readout", "slots"), [("mean+log+max", 10), ("sort", 3)])
def test_nodes_that_are_told_apart_later_are_computed_once_before(readout: Readout, slots: int) -> None:
    graphs = read("compounds:isomers")[:600]
    config = ModelConfig(width=16, depth=2, readout=readout, slots=slots)
    torch.manual_seed(0)
    model = Model.build(config, Encoder.fit(graphs, config))
    batch = model.encode(graphs).batch(torch.arange(len(graphs)))
    few = distinct.distinct(batch, config.k, config.depth)
    kinds = [int(kind.max()) + 1 for kind in few.kinds]
    assert len(batch.place) >= distinct.FEWEST > kinds[2] >= kinds[1] >= kinds[0] > 1
    network = model.networks[0].eval()
    with torch.no_grad():
        one, other = network(batch), network(few)
    assert all(torch.equal(a, b) for a, b in zip(one.layers, other.layers, strict=True))
    assert torch.equal(one.output, other.output)


def test_a_small_batch_and_one_with_attributes_stay_as_they_are() -> None:
    graphs = read("compounds:isomers")[:3]
    model = Model.build(ModelConfig(), Encoder.fit(graphs, ModelConfig()))
    batch = model.encode(graphs).batch(torch.arange(3))
    assert distinct.distinct(batch, 16, 3) is batch
