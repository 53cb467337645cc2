"""Figures from results/: the role ``result`` with a file and a path into it -> the number that stands there.

``{result}`two_processes.json > seconds > one process, one thread > best``` is that number; `` : .0f`` at the end
formats it; in a list, ``[2]`` is the third, and ``[connections=8, asked=no picture]`` the one record with these values.
A figure that is no longer there fails the build.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

RESULTS = Path(__file__).resolve().parent.parent.parent / "results"
logger = logging.getLogger(__name__)


def look_up(text: str) -> tuple[Path, str]:
    place, _, form = (part.strip() for part in text.partition(" : "))
    name, *steps = (step.strip() for step in place.split(" > "))
    path = RESULTS / name
    if not path.is_file():
        raise LookupError(f"there is no results/{name}")
    found: Any = json.loads(path.read_text(encoding="utf-8"))
    for step in steps:
        found = _step(found, step)
    return path, format(found, form)


def _step(found: Any, step: str) -> Any:
    if isinstance(found, dict):
        if step not in found:
            raise LookupError(f"nothing is called {step!r} there")
        return found[step]
    if step.strip("[]").isdecimal():
        return found[int(step.strip("[]"))]
    wanted = dict(pair.strip().split("=", 1) for pair in step.strip("[]").split(", "))
    chosen = [row for row in found if all(str(row.get(key)) == value for key, value in wanted.items())]
    if len(chosen) != 1:
        raise LookupError(f"{len(chosen)} records have {step}, not one")
    return chosen[0]


class ResultRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            path, shown = look_up(self.text)
        except (LookupError, TypeError, ValueError) as error:
            logger.warning("no figure for %r: %s", self.text, error, location=self.get_location())
            return [nodes.literal(self.text, self.text)], []
        self.env.note_dependency(str(path))
        return [nodes.inline("", shown, classes=["result"])], []


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("result", ResultRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
