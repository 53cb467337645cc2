"""Write every task of the catalogue into a folder: names, sizes and a seed -> files, an index, and a line for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.record import circumstances
from lab.truths.suite.catalogue import CATALOGUE, task_called
from lab.truths.suite.files import write_task
from lab.truths.suite.halves import draw_halves
from lab.truths.suite.index import TaskInfo, write_index
from lab.truths.suite.task import SEED, Example, Sizes, SuiteTask


def make_tasks(
    folder: Path,
    sizes: Sizes,
    data: Path,
    *,
    names: Sequence[str] | None = None,
    seed: int = SEED,
    command: str = "",
    say: Callable[[str], None] = print,
) -> list[TaskInfo]:
    """Make and write the tasks; ``data`` is the folder of the data sets."""
    halves = {name: half for half, own in draw_halves().items() for name in own}
    infos = []
    for name in names or CATALOGUE:
        task = task_called(name)
        examples = task.examples(sizes, data, seed)
        write_task(folder, name, examples)
        infos.append(_info(task, halves[name], examples))
        say(f"{name:28}{infos[-1].half:11}{', '.join(f'{n} {part}' for part, n in infos[-1].sizes.items())}")
    write_index(folder, infos, {"seed": seed, "command": command, **circumstances("rdkit")})
    return infos


def _info(task: SuiteTask, half: str, examples: Sequence[Example]) -> TaskInfo:
    counts = Counter("larger" if example.larger else example.part for example in examples)
    return TaskInfo(
        name=task.name,
        family=task.family,
        half=half,
        what=task.what,
        positive=task.positive,
        sizes={part: counts[part] for part in ("train", "validation", "test", "larger") if counts[part]},
    )
