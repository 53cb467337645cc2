"""The name of a device, as a user types it -> the torch device; and how many threads compute."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from egocnn.errors import DataError


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
