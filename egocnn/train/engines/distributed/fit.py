"""The training loop on several processes: what :func:`egocnn.train.loop.fit` takes -> what it returns, on each of them.

Every process holds the same weights and sees its share of every batch. Norms use the statistics of the whole batch, and
gradients are averaged with weights that make them those of the whole batch; so but for rounding, and for which
activations dropout drops, the weights are those that one process would have come to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from egocnn.config import TrainConfig
from egocnn.nn.batch import Batchable
from egocnn.nn.model import EgoCNN
from egocnn.train.checkpoint import pack, unpack
from egocnn.train.engines.distributed.norm import share_norms, unshare_norms
from egocnn.train.engines.distributed.world import Group, World, current, meeting_place
from egocnn.train.loop import (
    History,
    Keep,
    Progress,
    Report,
    RunEpoch,
    Scores,
    arithmetic,
    choose_device,
    class_weights,
    descend,
    epoch_by_epoch,
    fit,
    learn_norms,
    loss_of,
    portions,
    set_rate,
    shuffled,
    weight_of,
)


def fit_together(
    network: EgoCNN,
    train: Batchable,
    validation: Batchable,
    config: TrainConfig,
    *,
    resume: Callable[[Progress], None] | None = None,
    keep: Keep | None = None,
    report: Report | None = None,
) -> History:
    """:func:`egocnn.train.loop.fit` by all processes of the group, called on each with the same graphs and settings.

    Rank 0 alone reads the checkpoint, and sends the others what is in it: they may have no access to the folder.
    """
    group = current()
    assert group is not None, "called outside of a group"

    def begin(progress: Progress) -> None:
        if resume is not None and group.world.rank == 0:
            resume(progress)
        _share_progress(group, progress)

    try:
        return fit(network, train, validation, config, engine=side_by_side, resume=begin, keep=keep, report=report)
    finally:
        unshare_norms(network)


def _share_progress(group: Group, progress: Progress) -> None:
    is_first = group.world.rank == 0
    sent = group.from_first(save(pack(progress, "sent")) if is_first else None)
    if sent is None:  # rank 0 has found that there is nothing to train, and has said so
        raise SystemExit(0)
    if not is_first:
        unpack(load(sent), "sent", progress)


def side_by_side(progress: Progress, train: Batchable, validation: Batchable, config: TrainConfig) -> RunEpoch:
    """Epochs of which every process computes its share; after each, all have the same weights and scores."""
    group = current()
    assert group is not None, "called outside of a group"
    world, network = group.world, progress.network
    device = choose_device(config.device)
    train, validation = train.to(device), validation.to(device)
    weights = class_weights(train, network.out.out_features) if config.class_weights else None
    norms = share_norms(network)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # later versions of torch have another name for broadcast_buffers
        replica = DistributedDataParallel(
            network,
            broadcast_buffers=False,
            find_unused_parameters=has_idle(network),
            gradient_as_bucket_view=True,  # one copy of the gradients less
        )

    def learn(epoch: int) -> tuple[float, float]:
        assert train.target is not None
        batches = shuffled(train, config)
        torch.manual_seed(dropout_seed(config.seed, epoch, world.rank))
        outputs = torch.zeros(len(train), network.out.out_features, device=device)
        total = torch.zeros((), device=device)
        for number, chosen in enumerate(batches):
            set_rate(progress.optimizer, (epoch - 1 + number / len(batches)) / config.epochs, config)
            counts = train.node_ptr[chosen + 1] - train.node_ptr[chosen]
            # too few graphs for all: every process computes them all, and so needs no one else
            is_split = len(chosen) >= world.size
            mine = share_of(chosen, counts, world) if is_split else chosen
            learn_norms(network, graphs=len(chosen), nodes=int(counts.sum()))
            for norm in norms:
                norm.is_shared = is_split
            batch = train.batch(mine)
            assert batch.target is not None
            with arithmetic(config, device):
                logits = replica(batch).output.float()
            share = weight_of(batch.target, weights) / weight_of(train.target[chosen], weights)
            loss = loss_of(logits, batch.target, weights) * (share if is_split else 1 / world.size)
            descend(progress, loss * world.size)  # what all have is averaged, and what they sum up to is wanted
            total += loss.detach() * len(chosen)
            if is_split or world.rank == 0:
                outputs[mine] = logits.detach()
        dist.all_reduce(outputs)
        dist.all_reduce(total)
        results = Scores()
        results.add(outputs, train.target, total / len(train))
        return agreed(results.loss, results.score)

    def validate() -> tuple[float, float]:
        assert validation.target is not None
        outputs = predict_together(network, validation, world)
        results = Scores()
        results.add(outputs, validation.target, loss_of(outputs, validation.target, weights))
        return agreed(results.loss, results.score)

    return epoch_by_epoch(progress, config, learn, validate)


@torch.no_grad()
def predict_together(network: EgoCNN, data: Batchable, world: World) -> Tensor:
    """:func:`egocnn.train.loop.predict`, each process for its share of the graphs."""
    network.eval()
    outputs = torch.zeros(len(data), network.out.out_features, device=data.node_ptr.device)
    for chosen in portions(data):
        mine = share_of(chosen, data.node_ptr[chosen + 1] - data.node_ptr[chosen], world)
        if len(mine):
            outputs[mine] = network(data.batch(mine)).output.float()
    dist.all_reduce(outputs)
    return outputs


def share_of(chosen: Tensor, node_counts: Tensor, world: World) -> Tensor:
    """The graphs of these that are this rank's: as many as any other's to within one, with about as many nodes.

    They are dealt out from the largest to the smallest, back and forth.
    """
    by_size = torch.argsort(node_counts, descending=True, stable=True)
    place = torch.arange(len(chosen), device=chosen.device)
    seat = place % world.size
    owner = torch.where(place // world.size % 2 == 0, seat, world.size - 1 - seat)
    return chosen[by_size[owner == world.rank]]


def agreed(*numbers: float) -> tuple[float, float]:
    """Those of rank 0: a last bit that differs must not make one process stop an epoch before the others."""
    shared = torch.tensor(numbers, dtype=torch.float64, device=meeting_place())
    dist.broadcast(shared, src=0)
    first, second = shared.tolist()
    return first, second


def has_idle(network: EgoCNN) -> bool:
    """Whether parameters may get no gradient: those for attributes that no node has, or those of a foreign module."""
    return network.custom_embedding or any(parameter.numel() == 0 for parameter in network.parameters())


def dropout_seed(seed: int, epoch: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, rank + 1]).generate_state(1, np.uint64)[0] >> np.uint64(1))
