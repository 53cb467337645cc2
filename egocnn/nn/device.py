"""Where is computed: the name of a device, as a user types it -> the torch device; how many threads compute; and where
the memory may not suffice, a computation -> its result, or None; over graphs, the same from halves of them."""

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from egocnn.errors import DataError

# what the allocators of GPUs, CPUs and libraries say; only the first has an exception of its own
SIGNS = ("out of memory", "can't allocate memory", "ALLOC_FAILED")
T = TypeVar("T")
log = logging.getLogger("egocnn")
warn, inform = cache(log.warning), cache(log.info)  # each text once


def choose_device(device: str) -> torch.device:
    """``auto`` is a GPU where torch can use one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise DataError("--device cuda: this machine has no CUDA device that torch can use")
    return torch.device(device)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread meanwhile: where there is little to compute, others only wait, which keeps a core busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether this error, or one that it was raised on top of, says that memory has run out."""
    while error is not None:
        if isinstance(error, RuntimeError) and any(sign in str(error) for sign in SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


def attempt(run: Callable[[], T]) -> T | None:
    """What ``run`` returns; None where the memory does not suffice, and what it had taken is free again."""
    try:
        return run()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    # only now: while the error is being handled, its frames keep all that was computed
    gc.collect()
    torch.cuda.empty_cache()
    return None


def by_halves(run: Callable[[Tensor], T], chosen: Tensor) -> Iterator[T]:
    """What ``run`` returns for the chosen graphs, in order: all at once, or where memory is short, by halves."""
    if len(chosen) < 2:
        yield run(chosen)
        return
    found = attempt(lambda: (run(chosen),))
    if found is not None:
        yield from found
        return
    warn("out of memory: fewer graphs are read at a time, with the same result")
    for half in torch.tensor_split(chosen, 2):
        yield from by_halves(run, half)
