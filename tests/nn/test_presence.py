"""Presence: nodes that are there to a degree; 1 everywhere changes no bit, and 0 is what cutting the node out is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.nn import EgoCNN
from egocnn.nn.batch import Batch
from tests.support.networks import build, doubled, whole_batch
from tests.support.strategies import dressed, random_connected
from tests.support.tiny import plain_model

VARIANTS: dict[str, dict[str, Any]] = {
    "the usual": {},
    "every layer, counts and norms": {
        "jump": True,
        "readout": "mean+log+max",
        "pool_norm": True,
        "head_norm": True,
        "count_inputs": True,
    },
    "the mean of nodes": {"k": 2, "slots": 2, "readout": "mean"},
    "the sum of nodes": {"k": 2, "readout": "sum"},
    "patches wider than layers": {"k": 2, "slots": 6},
    "attributes": {"embedding": "attributes", "jump": True, "readout": "mean+max"},
}


def some_graphs(seed: int = 0) -> Graphs:
    classes: dict[str, Any] = {"target": np.array([0, 1, 0]), "class_names": ("no", "yes")}
    return dressed(random_connected(3, nodes=9, extra=7, seed=seed, **classes), seed=seed)


def network_and_batch(seed: int = 0, **changes: Any) -> tuple[EgoCNN, Batch, Callable[[Tensor], Batch]]:
    """The third makes the batch with these nodes (N) alone, everyone keeping the ranks they had."""
    graphs = some_graphs(seed)
    config = plain_model(**{"depth": 2, "width": 5, "k": 4, "slots": 4, "hidden": 6} | changes)
    network, encoder = build(graphs, config, outputs=2, seed=seed)
    every, shape, encoded = torch.arange(len(graphs)), encoder.shape(config), encoder.apply(graphs, config)
    return network.eval(), whole_batch(graphs, encoder, config), lambda there: encoded.batch(every, there, shape)


@pytest.mark.parametrize("variant", VARIANTS)
def test_presence_of_one_everywhere_changes_no_bit(variant: str) -> None:
    network, batch, _ = network_and_batch(**VARIANTS[variant])
    with torch.no_grad():
        plain, present = network(batch), network(batch, torch.ones(len(batch.place)))
    assert torch.equal(plain.output, present.output)
    assert torch.equal(plain.pooled, present.pooled)
    assert all(torch.equal(one, other) for one, other in zip(plain.layers, present.layers, strict=True))


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=12)
@given(seed=st.integers(0, 40), share=st.floats(0, 1))
def test_a_node_with_presence_zero_is_as_good_as_cut_out(variant: str, seed: int, share: float) -> None:
    network, batch, with_nodes = network_and_batch(seed % 3, **VARIANTS[variant])
    network, batch = network.double(), doubled(batch)
    there = torch.rand(len(batch.place), generator=torch.Generator().manual_seed(seed)) >= share
    with torch.no_grad():
        absent = network(batch, there.double())
        cut = network(doubled(with_nodes(there)))
    torch.testing.assert_close(absent.output, cut.output)
    torch.testing.assert_close(absent.pooled, cut.pooled)
    for one, other in zip(absent.layers, cut.layers, strict=True):
        torch.testing.assert_close(one[there], other)
        assert not one[~there].any()


def test_the_output_is_a_smooth_function_of_presence() -> None:
    network, batch, _ = network_and_batch(**VARIANTS["every layer, counts and norms"] | {"readout": "mean"})
    network, batch = network.double(), doubled(batch)
    presence = torch.full((len(batch.place),), 0.6, dtype=torch.float64, requires_grad=True)

    def output(presence: Tensor) -> Tensor:
        found: Tensor = network(batch, presence).output
        return found

    assert torch.autograd.gradcheck(output, (presence,))
