"""Inputs made from valid and kept ones by mutations alone, without a look at what they reach: for tests, and where
atheris is not installed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from fuzz.mutations import mutate
from fuzz.targets import Target, try_input

CORPORA = Path(__file__).parent / "corpora"


def kept(target: Target) -> list[Path]:
    """Inputs that once were a finding, and must never be one again."""
    return sorted((CORPORA / target.name).glob("*"))


def starts(target: Target) -> list[bytes]:
    return [*target.seeds(), *(path.read_bytes() for path in kept(target))]


def inputs(target: Target, seed: int) -> Iterator[bytes]:
    """All starts as they are, then broken ones without end."""
    generator, known = Random(seed), starts(target)
    yield from known
    while True:
        data = generator.choice(known)
        for _ in range(generator.choice((1, 1, 2, 3))):
            data = mutate(data, generator, target.words)
        yield data


def feed(
    target: Target, folder: Path, *, seconds: float = math.inf, most: float = math.inf, seed: int = 0
) -> tuple[int, int]:
    """Feed the target until its time is over, or so many inputs are tried: inputs tried, inputs that were read.

    A :class:`~fuzz.guard.ViolationError` ends it; the folder then holds the input, in the file ``last``.
    """
    tried = accepted = 0
    end = time.monotonic() + seconds
    for data in inputs(target, seed):
        if tried >= most or time.monotonic() > end:
            break
        (folder / "last").write_bytes(data)
        accepted += try_input(target, data, folder) is None
        tried += 1
    return tried, accepted
