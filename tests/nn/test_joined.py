from typing import Any

import pytest
import torch

from egocnn.explain.techniques import by_relevance
from egocnn.model import Model
from egocnn.nn.joined import joined
from tests.explain.random_models import USUAL, assert_close, forward_pass, predictor_for
from tests.support.networks import doubled, whole_batch
from tests.support.strategies import random_trees

SETTINGS: list[dict[str, Any]] = [
    {},
    USUAL,
    {"readout": "sort", "jump": True},
    {"embedding": "attributes", "count_inputs": True, "jump": True},
    {"own": True, "tie": False},
    {"tie": True, "depth": 3, "readout": "log+max", "head_norm": True},
]
KINDS = pytest.mark.parametrize("changes", SETTINGS, ids=lambda changes: " ".join(map(str, changes)) or "plain")


def trees_and_model(changes: dict[str, Any], networks: int) -> tuple[Any, Model]:
    random = torch.Generator().manual_seed(0)
    trees = random_trees(7, nodes=9, seed=0, target=torch.arange(7).numpy() % 2, class_names=("no", "yes"))
    trees = trees.replace(node_attr=torch.randn(trees.n_nodes, 2, generator=random).numpy())
    return trees, predictor_for(trees, networks=networks, **changes)


@KINDS
@pytest.mark.parametrize("networks", [1, 2, 3])
@torch.no_grad()
def test_joined_networks_compute_what_each_computes_alone(changes: dict[str, Any], networks: int) -> None:
    trees, model = trees_and_model(changes, networks)
    batch = doubled(whole_batch(trees, model.encoder, model.config))
    presence = torch.linspace(0, 1, trees.n_nodes, dtype=torch.float64)
    for network in model.networks:
        network.double()
    for there in (None, presence):
        alone, together = [network(batch, there) for network in model.networks], joined(model.networks)(batch, there)
        assert_close(together.output, torch.stack([each.output for each in alone]), tolerance=1e-12)
        for layer, several in zip(together.layers, zip(*(each.layers for each in alone), strict=True), strict=True):
            assert_close(layer, torch.cat(several, dim=1), tolerance=1e-12)


@pytest.mark.parametrize("changes", [{}, USUAL, {"embedding": "attributes", "jump": True}], ids=str)
def test_the_relevance_of_joined_networks_is_the_sum_of_that_of_each(changes: dict[str, Any]) -> None:
    trees, model = trees_and_model(changes, 3)
    given = [
        forward_pass(Model(config=model.config, encoder=model.encoder, networks=(n,)), trees) for n in model.networks
    ]
    each, network = [by_relevance(one, against=1.0) for one in given], joined(model.networks)
    with torch.no_grad():
        output = network(given[0].batch)
    parts = {name: getattr(given[0], name) for name in ("batch", "classes", "places", "edges", "attention", "settings")}
    found = by_relevance(type(given[0])(network=network, output=output, **parts), against=1.0)
    assert_close(found.nodes, sum(one.nodes for one in each))
    assert_close(found.edges, sum(one.edges for one in each))
    for layer, several in zip(found.trace, zip(*(one.trace for one in each), strict=True), strict=True):
        for kind in (0, 1):
            assert_close(layer[kind], sum(one[kind] for one in several))


def test_networks_are_joined_once_until_a_weight_changes() -> None:
    _, model = trees_and_model(USUAL, 2)
    first = joined(model.networks)
    assert joined(model.networks) is first
    with torch.no_grad():
        model.networks[1].out.bias.add_(1)
    assert joined(model.networks) is not first
    second = joined(model.networks)
    model.networks[0].double()
    assert joined(model.networks[:1]) is not second
