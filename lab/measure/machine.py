"""What every benchmark says about itself: when and where it ran, with which versions, and the memory it took."""

from __future__ import annotations

import re
import resource
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any


def circumstances(*libraries: str) -> dict[str, Any]:
    """Date, processor and versions; ``libraries`` are those that the benchmark uses besides torch and numpy."""
    from egocnn.train.run import (
        machine,  # not at the top: a process that is measured must not load torch for this
        versions,
    )

    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions() | {library: version(library) for library in libraries},
    }


def peak_gigabytes() -> float:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # a process starts out with the ru_maxrss of the one that started it, but with a high-water mark of its own
        (mark,) = re.findall(r"^VmHWM:\s*(\d+) kB$", status.read_text(encoding="utf-8"), re.MULTILINE)
        return int(mark) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9  # macOS counts bytes
