"""Run by torchrun: train on a store as the command does, and note how many graphs each rank prepared and read."""

import json
import sys
from pathlib import Path
from typing import Any

from egocnn.cli import main
from egocnn.data.arrays import Ints
from egocnn.encode.batch import EncodedCache, EncodedGraphs
from egocnn.train import recipe
from egocnn.train.engines.distributed import World


def run(notes: Path, words: list[str]) -> int:
    setattr(recipe, "WHOLE_BYTES", 0)  # noqa: B010 — no store is small enough to be read whole
    rank, note = World.here().rank, {"prepared": 0, "read": 0}
    fill, read = EncodedCache.fill, EncodedCache.read

    def noted_fill(cache: EncodedCache, portions: Any) -> None:
        note["prepared"] = cache.stretch[1] - cache.stretch[0]
        fill(cache, portions)

    def noted_read(cache: EncodedCache, graphs: Ints) -> EncodedGraphs:
        note["read"] += len(graphs)
        (notes / f"{rank}.json").write_text(json.dumps(note))
        return read(cache, graphs)

    setattr(EncodedCache, "fill", noted_fill)  # noqa: B010
    setattr(EncodedCache, "read", noted_read)  # noqa: B010
    return main(words)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
