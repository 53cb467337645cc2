"""Which of torchrun's processes this one is: its environment -> a :class:`World`, and a group of them all. Rank 0
writes and speaks; the others compute their share and are silent. Where several fail, the first says why."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from egocnn.errors import ConfigError, DataError, EgoCNNError, RunError

if TYPE_CHECKING:
    import torch

LOST = "another process of this training has died; --resume goes on from its last whole epoch"
SIGNS = ("gloo", "NCCL", "Connection", "Socket", "Broken pipe")
"""Words in what torch raises where another process does not answer; mostly it has no exception of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The processes that torchrun has started together, and this one's number among them."""

    rank: int = 0
    local_rank: int = 0  # number on this machine, and of the GPU to use
    size: int = 1
    restarts: int = 0  # how often torchrun has started all of them anew

    @staticmethod
    def here() -> "World":
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return World()
        names = {"rank": "RANK", "local_rank": "LOCAL_RANK", "size": "WORLD_SIZE"}
        numbers = {field: int(os.environ[name]) for field, name in names.items()}
        return World(**numbers, restarts=int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")))


@dataclass(slots=True)
class Group:
    """All processes of a training, in touch with each other."""

    world: World
    has_begun: bool = False  # whether rank 0 has told the others that the training begins

    def from_first(self, content: bytes | None) -> bytes | None:
        """What rank 0 has, on every rank; None from it means that there will be no training."""
        import torch
        import torch.distributed as dist

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
        import torch
        import torch.distributed as dist

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


def exchange_device() -> "torch.device":
    """Where tensors must be for the processes to exchange them."""
    import torch
    import torch.distributed as dist

    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def only_for_train(command: str) -> None:
    """Refuse to run any other command in several processes: each would do all the work, and write the same files."""
    world = World.here()
    if world.size == 1:
        return
    if world.rank > 0:
        raise SystemExit(0)  # rank 0 says why, and its exit code is torchrun's
    raise ConfigError(f"{command} runs in one process; start it without torchrun, which is for train alone")


@contextmanager
def joined(world: World, *, device: str) -> Iterator[None]:
    """Be one of the group, with one GPU for each where there are any; alone, nothing happens."""
    if world.size == 1:
        yield
        return
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

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
    import torch

    from egocnn.nn.device import choose_device

    if choose_device(device).type != "cuda":
        return "gloo"
    if world.local_rank >= torch.cuda.device_count():
        raise DataError(f"{world.local_rank + 1} processes or more for {torch.cuda.device_count()} GPUs; one for each")
    torch.cuda.set_device(world.local_rank)
    return "nccl"


def _release(group: Group) -> None:
    """Where rank 0 ends without a training, the others wait for its word: let them go."""
    import torch.distributed as dist

    if group.world.rank == 0 and not group.has_begun and dist.is_initialized():
        with suppress(RuntimeError):  # those who are gone need no word
            group.from_first(None)


def _stop(*_: object) -> NoReturn:
    """torchrun ends all processes when one has died."""
    raise RunError(LOST)
