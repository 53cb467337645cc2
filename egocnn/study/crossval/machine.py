"""This machine -> its entries in a record: processor, memory, versions; and one thread for each of many processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import torch

from egocnn import __version__
from egocnn.study.cluster import LOCAL
from egocnn.train.run import machine, versions

LIBRARIES = ("scikit-learn", "scipy", "torch-geometric", "grakel", "gensim", "igraph")  # that other models are made of


def name_machine(device: torch.device, ray: str | None = None) -> str:
    """The processors that compute; of a Ray cluster elsewhere only who called it is known."""
    here = f"{torch.cuda.get_device_name(device)}, {machine()}" if device.type == "cuda" else machine()
    return here if ray in (None, LOCAL) else f"Ray cluster, called from {here}"


def library_versions() -> dict[str, str]:
    """The version of every library that is installed and may decide a score."""
    found = {"egocnn": __version__, **versions()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def peak_megabytes(device: torch.device) -> float | None:
    """The most memory so far: the GPU's where it has been used, else this process's."""
    if device.type == "cuda" and (used := torch.cuda.max_memory_allocated(device)):
        return round(used / 1e6, 1)
    if os.name != "posix":
        return None
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(largest / (1e6 if sys.platform == "darwin" else 1e3), 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes with several threads each crawl."""
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
