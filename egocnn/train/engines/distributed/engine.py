"""The distributed engine: the processes of a group train the same networks, each on its share of every batch. Norms
use the statistics of the whole batch, and gradients are averaged to those of the whole batch: but for rounding, and for
which activations dropout drops, the weights of all are those that one process would have come to."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from egocnn.config import TrainConfig
from egocnn.nn.predict import portions
from egocnn.train.checkpoint import pack, unpack
from egocnn.train.engines.common import Member, Progress, epoch_seed
from egocnn.train.engines.distributed.norm import share_norms
from egocnn.train.engines.distributed.world import World, current, exchange_device
from egocnn.train.engines.plain import PlainEngine, run_batch
from egocnn.train.metrics import SeveralTargets, loss_and_score, loss_of, weight_of


class DistributedEngine(PlainEngine):
    """See :class:`egocnn.train.engines.common.Engine`. Built on each process with the same members and settings. Rank 0
    alone reads the checkpoint, and sends the others what is in it: they may have no access to the folder."""

    def __init__(self, members: Sequence[Member], progress: Sequence[Progress], config: TrainConfig) -> None:
        group = current()
        assert group is not None, "called outside of a group"
        self._world, is_first = group.world, group.world.rank == 0
        sent = group.from_first(save(pack(progress, "sent")) if is_first else None)
        if sent is None:  # rank 0 has found that there is nothing to train, and has said so
            raise SystemExit(0)
        if not is_first:
            unpack(load(sent), "sent", progress)
        super().__init__(members, progress, config)
        self._norms = [share_norms(member.network) for member in self.members]
        self._replicas: list[DistributedDataParallel] = []
        with warnings.catch_warnings():
            # later versions of torch have another name for broadcast_buffers
            warnings.simplefilter("ignore", FutureWarning)
            # a view: one copy of the gradients less
            how: dict[str, Any] = {"broadcast_buffers": False, "gradient_as_bucket_view": True}
            for network in (member.network for member in self.members):
                # some may get no gradient: those for attributes that no node has, or those of a foreign module
                has_idle = network.custom_embedding or any(each.numel() == 0 for each in network.parameters())
                self._replicas.append(DistributedDataParallel(network, find_unused_parameters=has_idle, **how))

    def train(self, r: int, epoch: int) -> tuple[float, float]:
        """Every process computes its share of each batch; all end with the same weights, loss and score."""
        world, train, weights = self._world, self.members[r].train, self.weights[r]
        assert train.target is not None
        batches = self.batches(r, epoch)
        torch.manual_seed(epoch_seed(self.members[r].seed, epoch, world.rank + 1))  # each rank drops other activations
        outputs = torch.zeros(len(train), self.members[r].network.out.out_features, device=self.device)
        total = torch.zeros((), device=self.device)
        for chosen in batches:
            # too few graphs for all: every process computes them all, and so needs no one else
            is_split = len(chosen) >= world.size
            mine = share_of(chosen, train.node_ptr, world) if is_split else chosen
            for norm in self._norms[r]:
                norm.is_shared = is_split
            logits, target = run_batch(self._replicas[r], self.members[r], mine, epoch, self.config, self.device)
            share = weight_of(target, weights) / weight_of(train.target[chosen], weights)
            loss = loss_of(logits, target, weights) * (share if is_split else 1 / world.size)
            self.progress[r].optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss * world.size)  # what all have is averaged, and what they sum up to is wanted
            self.update(r)
            total += loss.detach() * len(chosen)
            if is_split or world.rank == 0:
                outputs[mine] = logits.detach()
        dist.all_reduce(outputs)
        dist.all_reduce(total)
        return _agreed_scores(outputs, train.target, total / len(train))

    @torch.no_grad()
    def validate(self, r: int) -> tuple[float, float]:
        data, network = self.members[r].validation, self.members[r].network.eval()
        assert data.target is not None
        outputs = torch.zeros(len(data), network.out.out_features, device=data.node_ptr.device)
        for chosen in portions(data):
            mine = share_of(chosen, data.node_ptr, self._world)
            if len(mine):
                outputs[mine] = network(data.batch(mine)).output.float()
        dist.all_reduce(outputs)
        weights, monitor = self.weights[r], self.progress[r].history.monitor
        weights = weights.on(data.target) if isinstance(weights, SeveralTargets) else weights
        loss = loss_of(outputs, data.target, weights)
        return _agreed_scores(outputs, data.target, loss, monitor, network.widths)

    def finish(self) -> None:
        super().finish()
        for progress in self.progress:
            share_norms(progress.network, shared=False)


def share_of(chosen: Tensor, node_ptr: Tensor, world: World) -> Tensor:
    """The graphs of these that are this rank's: as many as any other's to within one, with about as many nodes. They
    are dealt out from the largest to the smallest, back and forth."""
    by_size = torch.argsort(node_ptr[chosen + 1] - node_ptr[chosen], descending=True, stable=True)
    place = torch.arange(len(chosen), device=chosen.device)
    turn = place % world.size
    owner = torch.where(place // world.size % 2 == 0, turn, world.size - 1 - turn)
    return chosen[by_size[owner == world.rank]]


def _agreed_scores(
    outputs: Tensor, target: Tensor, loss: Tensor, monitor: str = "", widths: Sequence[int] = ()
) -> tuple[float, float]:
    """Loss and score of rank 0: a last bit that differs must not make one process stop an epoch before the others."""
    own = loss_and_score([(outputs, target, loss)], monitor, widths)
    shared = torch.tensor(own, dtype=torch.float64, device=exchange_device())
    dist.broadcast(shared, src=0)
    return float(shared[0]), float(shared[1])
