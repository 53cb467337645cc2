"""Everything that ``egocnn reproduce`` knows, by name: experiments, known truths, patterns, figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from egocnn.config import Device
from egocnn.errors import ConfigError
from egocnn.study.cluster import connected
from lab.figures import FIGURES, write_figure
from lab.proving import TASKS, TITLE, prove, table
from lab.proving.recurring import TITLE as RECURRING
from lab.proving.recurring import write_recurring
from lab.reproduce import EXPERIMENTS, markdown, reproduce
from lab.tables import growth_table
from lab.tables.run import How, write_table
from lab.tables.scores import TABLES
from lab.tables.words import markdown as table_markdown

KEPT = Path("runs/tables")
"""Finished cells of tables: a table that was interrupted goes on from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceOptions:
    """Which experiment to run, and how."""

    name: str
    """One of those that :func:`names` lists."""
    out: Path = Path("results")
    """Folder for the tables."""
    seed: int = 0
    seeds: int | None = None
    """Seeds 0 to N-1; None for the experiment's own number."""
    device: Device = "auto"
    jobs: int = 1
    """Processes at a time."""
    ray: str | None = None
    """Address of a Ray cluster for the folds of tables."""
    tasks: tuple[str, ...] = ()
    """explain: only these tasks; empty for all."""
    protocol: Literal["paper", "fair"] = "fair"
    """Folds of tables."""
    minutes: float | None = None
    """Time for a cell of a table; None for no limit."""
    kept_only: bool = False
    """Tables from finished cells alone."""
    quick: bool = False
    """A rough answer in a short time."""
    data: tuple[str, ...] = ()
    """Tables: only these data sets; empty for all."""
    models: tuple[str, ...] = ()
    """Tables: only these rows; empty for all."""


def names() -> Iterator[str]:
    """A line for each."""
    for name, experiment in EXPERIMENTS.items():
        yield f"{name:16}{experiment.title} ({experiment.seeds} seeds)"
    yield f"{'explain':16}{TITLE} (5 seeds; --tasks {','.join(TASKS)})"
    yield f"{'patterns':16}{RECURRING}"
    for name, figure in FIGURES.items():
        yield f"{name:16}{figure.title}"
    yield f"{growth_table.NAME:16}{growth_table.TITLE} (--quick for a rough answer)"
    for name, scores in TABLES.items():
        yield f"{name:16}{scores.title} (--quick for a rough answer)"


def run_experiment(options: ReproduceOptions, say: Callable[[str], None]) -> tuple[dict[str, Any], str]:
    """The result as plain data, and as text."""
    name, folder = options.name, options.out
    if options.ray is not None and (name not in TABLES or options.device == "cuda"):
        raise ConfigError(f"--ray is for tables whose cells have folds ({', '.join(TABLES)}), on CPUs")
    if name in FIGURES:
        result = write_figure(name, folder=folder, seed=options.seed, say=say)
        return result, "\n".join(str(folder / file) for file in result["files"])
    if name == "patterns":
        result = write_recurring(folder=folder, seed=options.seed, say=say)
        return result, "\n".join(f"{row['data']}, {row['class']}: {row['sentence']}" for row in result["rows"])
    if name == "explain":
        result = prove(
            folder=folder, seeds=options.seeds or 5, jobs=options.jobs, tasks=list(options.tasks) or None, say=say
        )
        return result, table.markdown(result)
    if name == growth_table.NAME or name in TABLES:
        how = How(
            protocol=options.protocol,
            minutes=options.minutes,
            kept_only=options.kept_only,
            quick=options.quick,
            seed=options.seed,
            device=options.device,
            jobs=options.jobs if options.jobs > 1 else None,
            ray=options.ray,
            data=list(options.data) or None,
            models=list(options.models) or None,
        )
        if name == growth_table.NAME:
            result = growth_table.write_growth(how, folder=folder, say=say)
            return result, growth_table.markdown(result)
        with connected(options.ray):  # one connection for all cells
            result = write_table(name, how, folder=folder, kept=KEPT, say=say)
        return result, table_markdown(result)
    result = reproduce(name, folder=folder, seeds=options.seeds, jobs=options.jobs, say=say)
    return result, markdown(result)
