"""``torchrun -m egocnn train``: graphs + settings -> one run folder, trained by all processes and written by rank 0.

What torchrun starts anew after a process has died goes on from the last checkpoint, as with ``--resume``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.store import Stored
from egocnn.errors import RunError
from egocnn.train.engines.distributed.world import World, current
from egocnn.train.loop import Report
from egocnn.train.recipe import learn
from egocnn.train.recipe_stored import learn_stored
from egocnn.train.run import Log, checked, fingerprint, finished_metrics, train_run
from egocnn.train.run_folder import growing_place


def train_by_rank(
    graphs: Graphs | Stored,
    folder: Path,
    model: ModelConfig,
    train: TrainConfig,
    *,
    test: float,
    about: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]],
    resume: bool,
    overwrite: bool,
    report: Report | None,
    log: Log | None = None,
) -> dict[str, Any]:
    """:func:`egocnn.train.run.train_run` by the processes of the current group, or by this one where there is none.

    Only rank 0 returns; the others have nothing to write or to tell, and end.
    """
    world, group = World.here(), current()
    if world.restarts or group is not None:
        marked = checked(graphs, test, train.seed)
        digest = fingerprint(marked, model, train)
        resume = resume or (world.restarts > 0 and (not overwrite or is_done(folder, digest)))
        if group is not None:
            group.check_alike(digest)
            if world.rank > 0:
                if isinstance(marked, Stored):
                    _, history, _ = learn_stored(marked, model, train, folder)
                else:
                    _, history = learn(marked, model, train)
                raise SystemExit(130 if history.interrupted else 0)
    return train_run(
        graphs,
        folder,
        model,
        train,
        test=test,
        about=about,
        settings=settings,
        resume=resume,
        overwrite=overwrite,
        report=report,
        log=log,
    )


def is_done(folder: Path, digest: str) -> bool:
    """Whether this very run has taken its place in the folder already: what is to be overwritten is another one."""
    try:
        return not growing_place(folder).exists() and finished_metrics(folder, digest) is not None
    except RunError:
        return False
