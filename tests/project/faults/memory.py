"""A limit on the memory of tensors: what goes beyond it fails, as on a GPU that is full."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Memory:
    """Counts the bytes of all tensors that are computed inside and still there; more than ``most`` are refused."""

    def __init__(self, most: float = float("inf")) -> None:
        self.most = most
        self.held = self.peak = self.refused = 0
        self._known: dict[int, Any] = {}
        # made on the fly: torch gives its class no types to inherit
        methods = {"__torch_dispatch__": lambda _, *call: self._run(*call)}
        self._mode: Any = type("Mode", (TorchDispatchMode,), methods)()

    def __enter__(self) -> Self:
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)

    def _run(
        self, func: Callable[..., Any], _: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for value in tree_leaves(found):
            if isinstance(value, Tensor):
                self._hold(value.untyped_storage())
        return found

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        if self.held + size > self.most:
            self.refused += 1
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
        self._known[key] = weakref.finalize(storage, self._free, key, size)
        self.held += size
        self.peak = max(self.peak, self.held)

    def _free(self, key: int, size: int) -> None:
        del self._known[key]
        self.held -= size
