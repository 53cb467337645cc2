"""One target, fed until its time is over by atheris, which keeps what reaches code that nothing before has reached.

Run by :mod:`fuzz.__main__`, a process for each target: libFuzzer never returns.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

MODULES = ["egocnn", "networkx.readwrite", "zipfile", "csv", "json", "safetensors"]
"""Whose branches are counted."""
LATE = ("networkx.readwrite.graphml", "networkx.readwrite.gexf", "safetensors.numpy", "egocnn.show.drawing.scene")
"""Which egocnn imports only when it needs them."""
LEFT_OUT = [
    "egocnn.nn.engines",
    "egocnn.train.engines.recorded",
    "lab.bench",
    "lab.tables",
    "egocnn.train.engines.distributed",
]
OWN_SHARE = 0.7
"""Of mutations that know the format; the rest are libFuzzer's own."""
MOST_BYTES = 1 << 16


def fuzz(name: str, folder: Path, found: Path, arguments: list[str]) -> None:
    """Never returns; a violation is written to ``found`` with what happened, and ends the process."""
    atheris: Any = import_module("atheris")
    sys.dont_write_bytecode = True
    with atheris.instrument_imports(include=MODULES, exclude=LEFT_OUT, enable_loader_override=False):
        from fuzz.guard import ViolationError
        from fuzz.mutations import mutate
        from fuzz.targets import TARGETS, try_input

        for library in LATE:
            import_module(library)

    import torch

    torch.set_num_threads(1)
    target = TARGETS[name]

    def feed(data: bytes) -> None:
        try:
            try_input(target, data, folder)
        except ViolationError as error:
            told = "".join(traceback.format_exception(error))
            found.mkdir(parents=True, exist_ok=True)
            (found / "input").write_bytes(data)
            (found / "what").write_text(f"{error}\n\n{told}", encoding="utf-8", errors="backslashreplace")
            raise

    def change(data: bytes, most: int, seed: int) -> bytes:
        generator = Random(seed)
        if generator.random() < OWN_SHARE:
            start = data or generator.choice(target.seeds())
            return mutate(start, generator, target.words, most)
        return bytes(atheris.Mutate(data, most))

    atheris.Setup([sys.argv[0], *arguments], feed, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    fuzz(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
