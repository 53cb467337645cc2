"""Everything that ``egocnn reproduce`` knows, by name: experiments, known truths, patterns, figures and tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from egocnn.errors import ConfigError
from egocnn.study.cluster import connected
from lab.figures import patterns
from lab.figures.structures import FIGURES, write_figure
from lab.tables import experiments, words
from lab.tables.cells import TableOptions, write_table
from lab.tables.growth import table1
from lab.tables.moleculenet import table as moleculenet
from lab.tables.scores import TABLES
from lab.truths import prove, table
from lab.truths.tasks import TASKS

KEPT = Path("runs/tables")  # Finished cells of tables: a table that was interrupted goes on from them.


def names() -> Iterator[str]:
    """A line for each."""
    for name, experiment in experiments.EXPERIMENTS.items():
        yield f"{name:16}{experiment.title} ({experiment.seeds} seeds)"
    yield f"{'explain':16}{prove.TITLE} (5 seeds; --tasks {','.join(TASKS)})"
    yield f"{'patterns':16}{patterns.TITLE}"
    for name, figure in FIGURES.items():
        yield f"{name:16}{figure.title}"
    yield f"{moleculenet.NAME:16}{moleculenet.TITLE} (3 seeds; --chemprop PROGRAM)"
    yield f"{table1.NAME:16}{table1.TITLE} (--quick for a rough answer)"
    for name, scores in TABLES.items():
        yield f"{name:16}{scores.title} (--quick for a rough answer)"


def reproduce(options: argparse.Namespace, say: Callable[[str], None]) -> tuple[dict[str, Any], str]:
    """Run what ``options.name`` says -> the result as plain data, and as text."""
    name, folder = options.name, options.out
    if options.ray is not None and (name not in TABLES or options.device == "cuda"):
        raise ConfigError(f"--ray is for tables whose cells have folds ({', '.join(TABLES)}), on CPUs")
    if name in FIGURES:
        result = write_figure(name, folder=folder, seed=options.seed, say=say)
        return result, "\n".join(str(folder / file) for file in result["files"])
    if name == "patterns":
        result = patterns.write_recurring(folder=folder, seed=options.seed, say=say)
        return result, "\n".join(f"{row['data']}, {row['class']}: {row['sentence']}" for row in result["rows"])
    if name == "explain":
        tasks = options.tasks.split(",") if options.tasks else None
        result = prove.prove(folder=folder, seeds=options.seeds or 5, jobs=options.jobs, tasks=tasks, say=say)
        return result, table.markdown(result)
    if name == moleculenet.NAME:
        result = moleculenet.write_moleculenet(_moleculenet_options(options), folder=folder, say=say)
        return result, moleculenet.markdown(result) if result["rows"] else f"tables and arrays are in {result['work']}"
    if name == table1.NAME:
        result = table1.write_growth(_table_options(options), folder=folder, say=say)
        return result, table1.markdown(result)
    if name in TABLES:
        with connected(options.ray):  # one connection for all cells
            result = write_table(name, _table_options(options), folder=folder, kept=KEPT, say=say)
        return result, words.markdown(result)
    result = experiments.run_experiment(name, folder=folder, seeds=options.seeds, jobs=options.jobs, say=say)
    return result, experiments.markdown(result)


def _moleculenet_options(options: argparse.Namespace) -> moleculenet.MoleculeNetOptions:
    return moleculenet.MoleculeNetOptions(
        work=options.work or Path("runs") / (f"{moleculenet.NAME}-quick" if options.quick else moleculenet.NAME),
        sets=options.data.split(",") if options.data else None,
        systems=options.models.split(";") if options.models else None,
        seeds=options.seeds or (1 if options.quick else 3),
        jobs=options.jobs,
        quick=options.quick,
        chemprop=options.chemprop,
        kept_only=options.kept_only,
        prepare_only=options.prepare_only,
    )


def _table_options(options: argparse.Namespace) -> TableOptions:
    return TableOptions(
        protocol=options.protocol,
        minutes=options.minutes,
        kept_only=options.kept_only,
        quick=options.quick,
        seed=options.seed,
        device=options.device,
        jobs=options.jobs if options.jobs > 1 else None,
        ray=options.ray,
        data=options.data.split(",") if options.data else None,
        models=options.models.split(";") if options.models else None,
    )
