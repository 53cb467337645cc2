"""What every record says about itself (when, where, with which versions), and what all measuring scripts share.

A script is a module with a ``main(words)``; ``python -m lab measure NAME words`` calls it. It takes its arguments by
:func:`arguments` and writes what it measured by :func:`write_measured`.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent  # The checkout: commands that are measured are started there.
RESULTS = Path("results")


def circumstances(*libraries: str, device: str = "cpu") -> dict[str, Any]:
    """Date, processor or GPU, and versions; ``libraries`` are those used besides torch and numpy, where installed."""
    from egocnn.train.run import machine, versions  # not at the top: a process that is measured must not load torch

    if device == "cuda":
        import torch

        place = torch.cuda.get_device_name()
    else:
        place = machine()
    return {"date": date.today().isoformat(), "machine": place, "versions": versions() | installed(*libraries)}


def installed(*libraries: str) -> dict[str, str]:
    """The versions of those that are there."""
    found = {}
    for library in libraries:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def arguments(name: str, text: str | None, *, out: Path | None = None) -> argparse.ArgumentParser:
    """A parser with ``-o FILE``, by default ``results/NAME.json``; ``text`` is the docstring of the script."""
    parser = argparse.ArgumentParser(
        prog=f"python -m lab measure {name}", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    out = out or RESULTS / f"{name}.json"
    parser.add_argument("-o", "--out", type=Path, default=out, metavar="FILE", help="the JSON to write [%(default)s]")
    return parser


def command_of(name: str, words: Sequence[str]) -> str:
    return " ".join(["python -m lab measure", name, *words])


def write_measured(
    name: str,
    words: Sequence[str],
    out: Path,
    measured: Mapping[str, Any],
    *libraries: str,
    device: str = "cpu",
    hidden: Sequence[str] = (),
) -> dict[str, Any]:
    """Write it as JSON with how it was made, and print it but for what is ``hidden``."""
    from egocnn.files import write_json

    record = {**measured, "command": command_of(name, words), **circumstances(*libraries, device=device)}
    write_json(out, record)
    print(json.dumps({key: value for key, value in record.items() if key not in hidden}, indent=2))
    return record


def one_line(text: str | None) -> str:
    """A docstring as the ``what`` of a record."""
    return " ".join((text or "").split())


def peak_gigabytes() -> float:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # a process starts out with the ru_maxrss of the one that started it, but with a high-water mark of its own
        (mark,) = re.findall(r"^VmHWM:\s*(\d+) kB$", status.read_text(encoding="utf-8"), re.MULTILINE)
        return int(mark) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9  # macOS counts bytes
