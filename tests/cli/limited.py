"""Run commands with less address space left than a store takes.

python -m tests.cli.limited MEGABYTES COMMANDS.json

torch and its threads map gigabytes before anything is read, so what counts is what may be mapped on top of that.
"""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from egocnn.cli import main
from egocnn.data.graphs import Graphs
from egocnn.data.store import read, write_store
from egocnn.train import recipe
from tests.support.strategies import random_trees

WIDE = 256
"""attributes a node: a large store of few nodes"""


def wide(seed: int, n_graphs: int = 100) -> Graphs:
    numbers = np.random.default_rng(seed)
    trees = random_trees(n_graphs, nodes=100, seed=seed)
    return trees.replace(
        node_attr=numbers.normal(size=(trees.n_nodes, WIDE)).astype(np.float32),
        target=numbers.integers(2, size=n_graphs),
        class_names=("no", "yes"),
        names=tuple(f"{seed}, {number}" for number in range(n_graphs)),
    )


def check_limited(folder: Path, megabytes: int, before: list[list[str]], commands: list[list[str]]) -> None:
    """Write a store of 800 wide graphs and run commands that could not hold it whole."""
    size = write_store((wide(seed) for seed in range(8)), folder / "store").size
    assert size > 1.2 * megabytes * 2**20
    task = {"before": before, "commands": [["hold", str(size)], *commands]}
    (folder / "task.json").write_text(json.dumps(task))
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.limited", str(megabytes), str(folder / "task.json")],
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},  # an arena more maps megabytes and uses none of them
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def mapped() -> int:
    """Bytes of address space in use."""
    found = re.search(r"VmSize:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def limited(megabytes: int, before: list[list[str]], commands: list[list[str]]) -> int:
    """``before``: small commands that make torch import and start what it does on first use, without a limit"""
    torch.set_num_threads(1)
    setattr(read, "PORTION_BYTES", 1 << 20)  # noqa: B010 — an eighth of the usual: a store of megabytes will do then
    setattr(recipe, "WHOLE_BYTES", 0)  # noqa: B010 — no store is small enough to be read whole
    for words in before:
        if code := main(words):
            return code
    limit = mapped() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for words in commands:
        if words[0] == "hold":  # what a command that reads all at once would have to do
            try:
                np.ones(int(words[1]), np.uint8)
            except MemoryError:
                continue
            return 3
        if code := main(words):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(limited(int(sys.argv[1]), **json.loads(Path(sys.argv[2]).read_text())))
