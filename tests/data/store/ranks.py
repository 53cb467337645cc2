"""Run by torchrun: train on a store as the command does, and note how many graphs each rank prepared and read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from egocnn.cli import main
from egocnn.data.arrays import Ints
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.cache import Shelf
from egocnn.train import recipe_stored as learning_stored
from egocnn.train.engines.distributed.world import World


def run(notes: Path, words: list[str]) -> int:
    setattr(learning_stored, "WHOLE_BYTES", 0)  # noqa: B010 — no store is small enough to be read whole
    rank, note = World.here().rank, {"prepared": 0, "read": 0}
    fill, read = Shelf.fill, Shelf.read

    def noted_fill(shelf: Shelf, portions: Any) -> None:
        note["prepared"] = shelf.stretch[1] - shelf.stretch[0]
        fill(shelf, portions)

    def noted_read(shelf: Shelf, graphs: Ints) -> EncodedGraphs:
        note["read"] += len(graphs)
        (notes / f"{rank}.json").write_text(json.dumps(note))
        return read(shelf, graphs)

    setattr(Shelf, "fill", noted_fill)  # noqa: B010
    setattr(Shelf, "read", noted_read)  # noqa: B010
    return main(words)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
