"""Triton kernels and their launches: tensors on a GPU -> ego-convolutions, norms and pools, each in one pass."""

from importlib.util import find_spec

import torch

HAS_TRITON = find_spec("triton") is not None


def has_kernels(x: torch.Tensor) -> bool:
    """Whether Triton's kernels can compute with this tensor; they have no double precision."""
    return x.is_cuda and x.dtype != torch.float64 and HAS_TRITON
