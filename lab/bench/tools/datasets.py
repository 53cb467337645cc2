"""Names of data sets -> those that are there; one that is missing is said and stops nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.errors import EgoCNNError
from lab.bench.tools.systems import BenchSettings


def read_each(names: Sequence[str], setting: BenchSettings, missing: dict[str, str]) -> Iterator[tuple[str, Graphs]]:
    """Read them one after the other; why one cannot be read goes into ``missing``."""
    for name in names:
        try:
            graphs = read(name)
        except (EgoCNNError, OSError) as error:
            missing[name] = str(error)
            setting.say(f"{name}: {error}")
        else:
            yield name, graphs
