"""Which rows of a padded batch a GPU kernel reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

kernel: Callable[[Callable[..., Any]], Any] = triton.jit  # which has no types of its own


@kernel
def is_there(row: tl.tensor, end: tl.tensor, there: tl.tensor, begin: tl.tensor, PARTS: tl.constexpr) -> tl.tensor:
    """Rows before the end; where graphs are shown in part, those of them that ``there``, from ``begin`` on, says."""
    found = row < end
    if PARTS:
        found = tl.load(there + begin + row, mask=found, other=0).to(tl.int32) != 0
    return found
