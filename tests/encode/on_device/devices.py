"""Where the tests of resident graphs run, on the CPU and on a GPU that is there, and in how small portions."""

from __future__ import annotations

import pytest
import torch

from egocnn.encode.on_device import arrays

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def set_portions(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    """Work on no more than so many adjacency entries at a time."""
    monkeypatch.setattr(arrays, "ENTRIES_AT_ONCE", entries)
    monkeypatch.setattr(arrays, "ENTRIES_AT_ONCE_ON_GPU", entries)
