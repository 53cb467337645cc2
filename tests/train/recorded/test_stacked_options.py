"""Readouts, jumping knowledge and the head's options: stacked networks beside ordinary ones."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from egocnn.config import ModelConfig, Readout
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import EgoCNN
from egocnn.nn.engines.padded import Mode
from egocnn.nn.rows import Learning
from egocnn.nn.stacked import StackedBatch, StackedNetwork
from egocnn.train.engines.recorded.batches import BatchShape, batch_of, join, sizes_of
from tests.support.networks import doubled, randomise
from tests.support.samples import sure
from tests.support.tiny import TRAIN, alcohols, fit, plain_model
from tests.train.recorded.stacks import cast, replicas

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {"k": 2, "slots": 3, "width": 6, "hidden": 5, "depth": 2, "sort_nodes": 4, "dropout": 0.0}
CLASSES = 2


def hubs(n_graphs: int = 9, seed: int = 0) -> Graphs:
    """Stars with a few edges more: hubs have far more neighbours than any K here; no labels."""
    random = np.random.default_rng(seed)
    counts = random.integers(2, 12, n_graphs)
    edges: list[tuple[int, int]] = []
    for first, count in zip((np.cumsum(counts) - counts).tolist(), counts.tolist(), strict=True):
        pairs = {(0, node) for node in range(1, count)}
        pairs |= {(int(min(u, v)), int(max(u, v))) for u, v in random.integers(count, size=(3, 2)) if u != v}
        edges += [(first + u, first + v) for u, v in sorted(pairs)]
    return Graphs.from_edges(
        node_counts=counts, edges=np.array(edges), target=np.arange(n_graphs) % CLASSES, class_names=("no", "yes")
    )


def networks(graphs: Graphs, config: ModelConfig, several: int = 2) -> tuple[list[EgoCNN], EncodedGraphs]:
    """In double precision, all weights and statistics random, over one collection."""
    encoder = Encoder.fit(graphs, config)
    made = []
    for seed in range(several):
        network = EgoCNN(config, shape=encoder.shape(config), attributes=len(encoder.attr_mean), outputs=CLASSES)
        randomise(network, seed=seed)
        made.append(network.double())
    return made, cast(encoder.apply(graphs, config), torch.float64)


def padded_batch(prepared: EncodedGraphs, chosen: Sequence[Sequence[int]]) -> StackedBatch:
    """With more room than is needed; -1 for no graph."""
    joined, _ = join([(prepared, prepared)] * len(chosen))
    most = [max(int(sum(of[graph] for graph in own if graph >= 0)) for own in chosen) for of in sizes_of(joined)]
    return batch_of(joined, torch.tensor(chosen), BatchShape(most[0] + 7, most[1] + 3))


def compare_with_each_alone(
    own: Sequence[EgoCNN], prepared: EncodedGraphs, chosen: Sequence[Sequence[int]], *, missing: float = 0.0
) -> None:
    """Logits and gradients in training on graphs of which a share of the nodes is missing, running statistics after
    it, logits of whole graphs in evaluation; all but the stacked logits in double precision."""
    close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)
    batch = padded_batch(prepared, chosen)
    together = StackedNetwork([copy.deepcopy(network) for network in own], CPU)
    active = batch.exists.any(1)
    kept = torch.rand(batch.present.shape, generator=torch.Generator().manual_seed(0)) >= missing
    there = batch.present & kept if missing else None
    mode = Mode.of(batch.present if there is None else there, active, parts=there is not None)
    logits = together.logits(batch, Learning(mode, None), there)
    losses = [F.cross_entropy(logits[r][exists], batch.target[r][exists]) for r, exists in enumerate(batch.exists)]
    gradients = torch.autograd.grad(torch.stack(losses).sum(), list(together.parameters.values()))
    evaluated = together.logits(batch).detach()
    for r, (network, graphs) in enumerate(zip(own, chosen, strict=True)):
        one = doubled(prepared.batch(torch.tensor([graph for graph in graphs if graph >= 0])))
        network.train(len(one.place) > 1)
        for norm in (network.pool_norm, network.norm):
            norm.train(network.training and len(one) > 1)
        presence = None if there is None else there[r, : len(one.place)].double()
        found = network(one, presence).output.float()
        exists = batch.exists[r]
        close(logits[r][exists], found)
        parameters = dict(network.named_parameters())
        wanted = torch.autograd.grad(
            F.cross_entropy(found, sure(one.target)), [parameters[name] for name in together.parameters]
        )
        for name, stack, gradient in zip(together.parameters, gradients, wanted, strict=True):
            mine = stack[r][tuple(slice(0, size) for size in gradient.shape)]
            assert torch.allclose(mine, gradient, rtol=1e-5, atol=1e-5), name
        for name, buffer in network.named_buffers():
            close(together.buffers[name][r], buffer)
        with torch.no_grad():
            close(evaluated[r][exists], network.eval()(one).output.float())


# ── the same function ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("readout", get_args(Readout))
@pytest.mark.parametrize("missing", [0.0, 0.6])
def test_stacked_logits_and_gradients_are_those_of_every_network_alone(readout: Any, missing: float) -> None:
    config = plain_model(**SMALL, degrees=True, jump=True, head_norm=True, readout=readout)
    own, prepared = networks(hubs(), config)
    compare_with_each_alone(own, prepared, [[0, 3, 5, 7], [2, 1, 8, -1]], missing=missing)


@pytest.mark.parametrize(
    "changes",
    [
        {"jump": False},
        {"head_norm": False},
        {"pool_norm": True},
        {"count_inputs": True, "pool_norm": True},
        {"count_inputs": True, "readout": "sort"},
        {"count_inputs": True, "readout": "mean+max"},
        {"pool_norm": True, "head_norm": False, "readout": "sort"},
        {"tie": True},
        {"embedding": "attributes"},
        {"degrees": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_every_other_setting_goes_with_the_new_ones(changes: dict[str, Any], missing: float) -> None:
    usual: dict[str, Any] = SMALL | {"degrees": True, "jump": True, "head_norm": True}
    own, prepared = networks(hubs(), plain_model(**usual | {"readout": "mean+log+max"} | changes), several=3)
    chosen = [[4, 3, -1], [8, 0, 1], [6, 5, 2] if missing else [6, -1, -1]]
    compare_with_each_alone(own, prepared, chosen, missing=missing)


def test_a_replica_with_one_graph_or_one_node_leaves_the_norms_alone_as_the_ordinary_loop_does() -> None:
    edges = np.array([(0, 1), (0, 2), (4, 5), (5, 6)])
    target = np.array([0, 1, 0, 1])
    graphs = Graphs.from_edges(node_counts=[3, 1, 3, 0], edges=edges, target=target, class_names=("no", "yes"))
    config = plain_model(**SMALL | {"k": 1}, head_norm=True, jump=True, readout="log+max")
    own, prepared = networks(graphs, config, several=4)
    before = [network.norm.get_buffer("running_mean").clone() for network in own]
    compare_with_each_alone(own, prepared, [[0, -1], [1, 3], [0, 2], [1, -1]])
    moved = [
        not torch.equal(network.norm.get_buffer("running_mean"), old) for network, old in zip(own, before, strict=True)
    ]
    assert moved == [False, False, True, False]


def test_batches_of_one_graph_train_with_a_norm_in_the_head_and_without_dropout_nothing_is_drawn() -> None:
    ((network, train, validation),) = replicas([alcohols()], plain_model(**SMALL, head_norm=True), torch.float32)
    history = fit(network, train, validation, replace(TRAIN, epochs=1, batch_size=1, device="cpu"))
    assert np.isfinite(history.epochs[0].train_loss)
    assert int(network.norm.get_buffer("num_batches_tracked")) == 0
    fit(network, train, validation, replace(TRAIN, epochs=1, batch_size=2, device="cpu"))
    assert int(network.norm.get_buffer("num_batches_tracked")) == -(-len(train) // 2)
    own, _ = networks(hubs(), plain_model(**SMALL))
    seeds = torch.tensor([0, 1])
    assert StackedNetwork(own, CPU).draw(seeds, seeds, rows=9) is None
    own, _ = networks(hubs(), plain_model(**SMALL, pool_dropout=0.5))
    assert StackedNetwork(own, CPU).draw(seeds, seeds, rows=9) is not None


# ── dropout of what was read out ──────────────────────────────────────────────────────────────────


def counting(config: ModelConfig, prepared: EncodedGraphs, graphs: Graphs) -> EgoCNN:
    """A network whose readout is all ones, and whose first logit counts what of it reaches the head."""
    encoder = Encoder.fit(graphs, config)
    network = EgoCNN(config, shape=encoder.shape(config), attributes=prepared.attributes.shape[1], outputs=CLASSES)
    with torch.no_grad():
        for conv in network.convs:
            conv.get_parameter("norm.weight").zero_()
            conv.get_parameter("norm.bias").fill_(1.0)
        network.hidden.weight.copy_(torch.eye(config.hidden))
        network.hidden.bias.zero_()
        network.out.weight.zero_()
        network.out.weight[0] = 1.0
        network.out.bias.zero_()
    return network


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("in_a_stack", [False, True])
def test_the_stated_share_of_the_readout_is_dropped_in_training_and_none_in_evaluation(
    share: float, in_a_stack: bool
) -> None:
    width, graphs = 64, hubs(16)
    config = plain_model(**SMALL | {"width": width, "hidden": width}, pool_dropout=share)
    prepared = Encoder.fit(graphs, config).apply(graphs, config)
    network = counting(config, prepared, graphs)
    everyone = torch.arange(len(graphs))
    counts = []
    if in_a_stack:
        together, batch = StackedNetwork([network, network], CPU), padded_batch(prepared, [everyone.tolist()] * 2)
        whole = together.logits(batch)[..., 0]
        for step in range(20):
            drawn = together.draw(torch.tensor([5, 6]), torch.tensor([step, step]), rows=batch.present.shape[1])
            learning = Learning(Mode.of(batch.present, batch.exists.any(1)), drawn)
            counts.append(together.logits(batch, learning)[..., 0].detach())
        assert not torch.equal(counts[0][0], counts[0][1])
    else:
        whole = network.eval()(prepared.batch(everyone)).output[:, 0]
        network.train()
        torch.manual_seed(0)
        counts = [network(prepared.batch(everyone)).output[:, 0].detach() for _ in range(40)]
    assert torch.equal(whole, torch.full_like(whole, width))
    kept = torch.stack(counts) * (1 - share)  # those kept are amplified by 1 / (1 - share)
    torch.testing.assert_close(kept, kept.round(), rtol=0, atol=1e-3)
    assert float(kept.mean()) / width == pytest.approx(1 - share, abs=0.02)
    assert len(set(kept.round().flatten().tolist())) > 3
