"""Several processes, started by torchrun, train one network: shares of every batch -> the weights of one process. Which
of them this one is, is known here without torch, which takes long to import."""

import os
from dataclasses import dataclass

from egocnn.errors import ConfigError


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


def only_for_train(command: str) -> None:
    """Refuse to run any other command in several processes: each would do all the work, and write the same files."""
    world = World.here()
    if world.size == 1:
        return
    if world.rank > 0:
        raise SystemExit(0)  # rank 0 says why, and its exit code is torchrun's
    raise ConfigError(f"{command} runs in one process; start it without torchrun, which is for train alone")
