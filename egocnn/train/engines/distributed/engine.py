"""The distributed engine: the processes of a group train the same networks, each on its share of every batch. Norms
use the statistics of the whole batch, and gradients are averaged to those of the whole batch: but for rounding, and for
which activations dropout drops, the weights of all are those that one process would have come to. torch's own
SyncBatchNorm is for GPUs alone. Rank 0 writes and speaks; the others compute their share and are silent. Where several
fail, the first says why."""

import logging
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from egocnn.config import TrainConfig
from egocnn.errors import DataError, EgoCNNError, RunError
from egocnn.nn.device import choose_device
from egocnn.nn.engines.padded import statistics, sums_of, update_running
from egocnn.nn.predict import portions
from egocnn.train.checkpoint import pack, unpack
from egocnn.train.engines.common import Member, Progress, epoch_seed
from egocnn.train.engines.distributed import World
from egocnn.train.engines.plain import PlainEngine, run_batch
from egocnn.train.metrics import SeveralTargets, loss_and_score, loss_of, weight_of

LOST = "another process of this training has died; --resume goes on from its last whole epoch"
SIGNS = ("gloo", "NCCL", "Connection", "Socket", "Broken pipe")
"""Words in what torch raises where another process does not answer; mostly it has no exception of its own."""


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

    def train(self, r: int, epoch: int) -> Generator[None, None, tuple[float, float]]:
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
            yield
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


class SharedNorm(nn.BatchNorm1d):
    """An ``nn.BatchNorm1d`` whose mean and variance in training are those of the rows of all processes together."""

    is_shared: bool = True  # false while every process is shown the same rows

    def forward(self, input: Tensor) -> Tensor:
        """Rows (n, D) of this process -> the same, normed with all rows"""
        if not self.training or not self.is_shared:
            return super().forward(input)
        sums, rows = sums_of(input.detach())
        sums = torch.cat([sums.flatten(), sums.new_tensor([rows])])
        dist.all_reduce(sums)
        count = sums[-1]
        mean, variance = statistics(sums[:-1].view(2, -1), count)
        weight = input.new_ones(input.shape[1]) if self.weight is None else self.weight
        bias = input.new_zeros(input.shape[1]) if self.bias is None else self.bias
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            share = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
            update_running((self.running_mean, self.running_var), mean, variance, count, share)
        apply: Callable[..., Tensor] = _Norm.apply
        return apply(input, weight, bias, mean, variance, count, self.eps)


class _Norm(torch.autograd.Function):
    r"""y = γ (x - μ) / √(v + ε) + β with μ and v of all n rows, and its gradient in terms of x, γ and β:

    .. math:: \partial x = \frac{\gamma}{\sqrt{v + \varepsilon}}
              \Big(\partial y - \frac1n \sum \partial y - \hat x \, \frac1n \sum \partial y \, \hat x\Big)

    The sums run over the rows of all processes; those of γ and β stay with their process until they are averaged."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, count: Tensor, eps: float
    ) -> Tensor:
        mean, variance = mean.to(weight.dtype), variance.to(weight.dtype)
        ctx.save_for_backward(x, weight, mean, variance, count)
        ctx.eps = eps
        return F.batch_norm(x, mean, variance, weight, bias, training=False, eps=eps)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, variance, count = ctx.saved_tensors
        deviation = torch.sqrt(variance + ctx.eps)
        if len(x):  # as if the statistics were constants: torch has one fused pass for that
            dx, d_weight, d_bias = torch.ops.aten.native_batch_norm_backward(
                dy.contiguous(), x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
            )
        else:  # which divides by the number of rows
            dx, d_weight, d_bias = dy, torch.zeros_like(weight), torch.zeros_like(weight)
        sums = torch.cat([d_bias, d_weight]).double()
        dist.all_reduce(sums)
        of_dy, of_dy_x = sums.div(count).to(weight.dtype).chunk(2)
        slope = weight / deviation
        along = slope * of_dy_x / deviation
        dx = dx.sub((slope * of_dy - along * mean).to(dx.dtype)).addcmul_(x, along.to(dx.dtype), value=-1)
        return dx, d_weight, d_bias, None, None, None, None


def share_norms(network: nn.Module, *, shared: bool = True) -> list[SharedNorm]:
    """Make every batch norm a shared one, or a plain one again; the list of the shared ones. They stay the same modules
    under another class: an optimiser goes on with their parameters, and so do tied layers."""
    for norm in network.modules():
        if type(norm) in (nn.BatchNorm1d, SharedNorm):
            norm.__class__ = SharedNorm if shared else nn.BatchNorm1d
    return [norm for norm in network.modules() if isinstance(norm, SharedNorm)]


@dataclass(slots=True)
class Group:
    """All processes of a training, in touch with each other."""

    world: World
    has_begun: bool = False  # whether rank 0 has told the others that the training begins

    def from_first(self, content: bytes | None) -> bytes | None:
        """What rank 0 has, on every rank; None from it means that there will be no training."""
        self.has_begun = True
        length = torch.tensor(-1 if content is None else len(content), device=exchange_device())
        dist.broadcast(length, src=0)
        if length < 0:
            return None
        letters = torch.empty(int(length), dtype=torch.uint8, device=length.device)
        if content:
            letters.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        dist.broadcast(letters, src=0)
        return letters.cpu().numpy().tobytes()

    def check_alike(self, fingerprint: str) -> None:
        """Refuse to train where the processes have read other graphs or were given other settings."""
        mine = torch.frombuffer(bytearray(fingerprint.encode()), dtype=torch.uint8).to(exchange_device())
        all_of_them = [torch.empty_like(mine) for _ in range(self.world.size)]
        dist.all_gather(all_of_them, mine)
        others = [rank for rank, other in enumerate(all_of_them) if not torch.equal(other, all_of_them[0])]
        if others:
            raise DataError(f"rank {others[0]} has read other graphs or settings than rank 0")


_GROUP: ContextVar[Group | None] = ContextVar("group", default=None)


def current() -> Group | None:
    """The group that this process is in; None where it works alone."""
    return _GROUP.get()


def exchange_device() -> torch.device:
    """Where tensors must be for the processes to exchange them."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


@contextmanager
def joined(world: World, *, device: str) -> Iterator[None]:
    """Be one of the group, with one GPU for each where there are any; alone, nothing happens."""
    if world.size == 1:
        yield
        return
    if world.rank > 0:
        logging.getLogger("egocnn").setLevel(logging.ERROR)
    store, _, _ = next(rendezvous("env://"))
    # torchrun keeps the store when it starts the processes anew, and in it the addresses of those that are gone
    own = PrefixStore(f"start {world.restarts}", store)
    signal.signal(signal.SIGTERM, _stop)
    group = Group(world)
    token = _GROUP.set(group)
    try:
        backend = _take_device(world, device)
        dist.init_process_group(backend, store=own, rank=world.rank, world_size=world.size)
        yield
        _release(group)
    except KeyboardInterrupt:
        _release(group)
        if world.rank > 0:
            raise SystemExit(130) from None
        raise
    except SystemExit as ended:
        if not ended.code:  # a rank that has done its share: to end with the group's threads alive may abort instead
            dist.destroy_process_group()
        raise
    except (EgoCNNError, OSError, RuntimeError, MemoryError) as error:
        _release(group)
        with suppress(RuntimeError):  # where nobody can be asked, every process says what went wrong, else the first
            if int(own.add("failed", 1)) > 1:
                raise SystemExit(2) from None
        if isinstance(error, RuntimeError) and any(sign in str(error) for sign in SIGNS):
            raise RunError(LOST) from None
        raise
    finally:
        _GROUP.reset(token)
    dist.destroy_process_group()


def _take_device(world: World, device: str) -> str:
    """Choose the GPU of this rank, if any; the name of what carries messages between such devices."""
    if choose_device(device).type != "cuda":
        return "gloo"
    if world.local_rank >= torch.cuda.device_count():
        raise DataError(f"{world.local_rank + 1} processes or more for {torch.cuda.device_count()} GPUs; one for each")
    torch.cuda.set_device(world.local_rank)
    return "nccl"


def _release(group: Group) -> None:
    """Where rank 0 ends without a training, the others wait for its word: let them go."""
    if group.world.rank == 0 and not group.has_begun and dist.is_initialized():
        with suppress(RuntimeError):  # those who are gone need no word
            group.from_first(None)


def _stop(*_: object) -> NoReturn:
    """torchrun ends all processes when one has died."""
    raise RunError(LOST)
