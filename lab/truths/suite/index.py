"""``tasks.json``: what every task of a folder is, read without what made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from egocnn.errors import DataError
from egocnn.files import write_json

INDEX = "tasks.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """One task of a folder."""

    name: str
    family: str
    half: str  # choosing, reporting or named
    what: str  # the rule in words
    positive: str | None
    """the class that the structures speak for; None: each graph's own class, or a value is predicted"""
    sizes: dict[str, int]  # graphs in train, validation, test (of the usual size) and larger

    @property
    def is_regression(self) -> bool:
        return self.family == "values"


def write_index(folder: Path, tasks: list[TaskInfo], about: Mapping[str, Any]) -> None:
    write_json(folder / INDEX, {"tasks": [asdict(task) for task in tasks], **about})


def read_index(folder: str | Path) -> dict[str, TaskInfo]:
    """The tasks of a folder by name."""
    path = Path(folder) / INDEX
    if not path.exists():
        raise DataError(f"{path}: no such file; python -m lab truths make -o {folder} makes it")
    return {task["name"]: TaskInfo(**task) for task in json.loads(path.read_text(encoding="utf-8"))["tasks"]}


def task_names(folder: str | Path, half: str = "all") -> list[str]:
    """The tasks of one half, or all of them."""
    return [task.name for task in read_index(folder).values() if half in ("all", task.half)]
