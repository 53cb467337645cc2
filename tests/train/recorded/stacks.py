"""Small stacks for tests: replicas with different graphs, in double precision so that rounding hides nothing."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch

from egocnn.config import Device, ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.nn import EgoCNN
from egocnn.train import loop
from egocnn.train.engines.common import Member
from egocnn.train.history import History
from tests.support.tiny import fit, parts

Replica = tuple[EgoCNN, EncodedGraphs, EncodedGraphs]


def cast(prepared: EncodedGraphs, kind: torch.dtype) -> EncodedGraphs:
    """The same graphs, their numbers in another precision."""
    weight = prepared.bag_weight
    return replace(
        prepared, attributes=prepared.attributes.to(kind), bag_weight=None if weight is None else weight.to(kind)
    )


def replicas(several: Sequence[Graphs], model: ModelConfig, kind: torch.dtype = torch.float64) -> list[Replica]:
    """One for every collection, the seed its number."""
    built = [parts(graphs, model, seed=seed) for seed, graphs in enumerate(several)]
    return [(network.to(kind), cast(train, kind), cast(validation, kind)) for network, train, validation in built]


def stacked(
    own: Sequence[Replica], seeds: Sequence[int], config: TrainConfig, device: Device = "cpu"
) -> tuple[list[EgoCNN], list[History]]:
    """Copies of the networks, trained as one."""
    networks = [copy.deepcopy(network) for network, _, _ in own]
    members = [Member(n, each[1], each[2], seed) for n, each, seed in zip(networks, own, seeds, strict=True)]
    return networks, loop.fit(members, replace(config, device=device), engine="recorded")


def alone(replica: Replica, seed: int, config: TrainConfig) -> tuple[EgoCNN, History]:
    """A copy of the network, trained by the ordinary loop."""
    network, train, validation = replica
    network = copy.deepcopy(network)
    return network, fit(network, train, validation, replace(config, seed=seed, device="cpu"))


def assert_close(one: EgoCNN, other: EgoCNN, tolerance: float) -> None:
    for (name, left), right in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.allclose(left, right, rtol=tolerance, atol=tolerance), name


def assert_same_course(one: History, other: History, tolerance: float) -> None:
    assert len(one.epochs) == len(other.epochs)
    assert (one.best and one.best.epoch) == (other.best and other.best.epoch)
    for left, right in zip(one.epochs, other.epochs, strict=True):
        for name in ("learning_rate", "train_loss", "train_score", "validation_loss", "validation_score"):
            assert abs(getattr(left, name) - getattr(right, name)) < tolerance, (left.epoch, name)
