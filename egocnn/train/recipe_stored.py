"""Graphs that stay in their store + settings -> a trained predictor, as :func:`egocnn.train.recipe.learn` gives it.

The store is read three times, in portions: for the labels in use, for what is counted and scaled, and to prepare all
graphs. What is prepared goes to disk (:mod:`egocnn.encode.cache`), and every batch is read from there. In memory are one
portion or one batch, the network, the colours of the training graphs, and some 60 bytes a graph.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import Counts, Judgement, decide_by, judge_counts
from egocnn.data.schema import PARTS
from egocnn.data.store import Stored
from egocnn.encode.cache import Seat, Shelved, shelf
from egocnn.encode.degrees import describe_by_degree
from egocnn.encode.encoder import Encoder, check_nodes
from egocnn.encode.survey import Survey
from egocnn.model import Model
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.distributed.fit import fit_together
from egocnn.train.engines.distributed.world import World, current
from egocnn.train.loop import History, Report, choose_device, fit, predict
from egocnn.train.recipe import with_conclusion
from egocnn.train.validation import part_numbers

WHOLE_BYTES = 1 << 25
"""A store up to this size is read whole: what is computed from it fits into any memory, and training is quicker."""


def learn_stored(
    stored: Stored,
    model: ModelConfig,
    train: TrainConfig,
    folder: Path,
    *,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    ready: Callable[[], None] | None = None,
) -> tuple[Model, History, torch.Tensor | None]:
    """Also the outputs (T, C) for the graphs of the test part, where there are any and this process writes the run.

    ``folder``: where prepared graphs are kept meanwhile; ``ready`` is called before anything is written there.
    """
    device = choose_device(train.device)
    parts = part_numbers(stored.outline, train)
    model, judgement, encoder = fit_stored(stored.choose(parts[0]), model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(train.seed)
        predictor = Model.build(model, encoder)
    if ready is not None:
        ready()
    folder.mkdir(parents=True, exist_ok=True)
    with shelve(stored, predictor, folder) as shelved:
        learned, validation = (shelved(numbers) for numbers in parts)
        history = (fit if current() is None else fit_together)(
            predictor.network,
            learned,
            validation,
            train,
            resume=None if checkpoint is None else checkpoint.resume,
            keep=None if checkpoint is None else checkpoint.keep,
            report=report,
        )
        predictor = with_conclusion(predictor, history, validation, judgement, device)
        tested = np.zeros(0, np.int64)
        if stored.outline.part is not None and World.here().rank == 0:
            tested = np.flatnonzero(stored.outline.part == PARTS.index("test"))
        outputs = predict(predictor.network, shelved(tested).to(device)).float().cpu() if len(tested) else None
    return predictor, history, outputs


@contextmanager
def shelve(stored: Stored, predictor: Model, folder: Path) -> Iterator[Callable[[Ints], Shelved]]:
    """All graphs prepared and put on a shelf; what is given takes some of them, by number, from there."""
    target = predictor.encoder.targets(stored.outline)
    with shelf(stored.node_counts, folder, _seat()) as records:
        records.fill(predictor.encode(graphs) for graphs in stored.portions(*records.stretch))

        def shelved(numbers: Ints) -> Shelved:
            own = None if target is None else target[torch.from_numpy(numbers)]
            return Shelved.of(records, numbers, stored.node_counts[numbers], own)

        yield shelved


def fit_stored(fitted: Stored, model: ModelConfig) -> tuple[ModelConfig, Judgement | None, Encoder]:
    """What is decided and fitted by the training graphs, bit for bit as from memory."""
    survey = Survey.of(fitted.portions())
    check_nodes(len(fitted), survey.nodes)
    model, judgement = decide_by(model, lambda: _judge(survey, len(fitted)))
    by_degree = model.degrees and not survey.has_node_labels
    node_names, edge_names = survey.degree_names if by_degree else survey.names("node"), survey.names("edge")

    def portions() -> Iterator[Graphs]:
        for graphs in fitted.portions():
            described = describe_by_degree(graphs) if by_degree else graphs
            yield described.with_names(nodes=node_names, edges=edge_names)

    target = fitted.outline.target
    return model, judgement, Encoder.fit_portions(portions(), model, target=target, by_degree=by_degree)


def _judge(survey: Survey, graphs: int) -> Judgement:
    degree = np.flatnonzero(survey.degrees)
    degree = degree[degree > 0]
    return judge_counts(Counts(degree, survey.degrees[degree]), graphs=graphs, nodes=survey.nodes)


def _seat() -> Seat:
    """The processes that torchrun has started on one machine share the work of preparing."""
    if current() is None:
        return Seat()
    import torch.distributed as dist

    world = World.here()
    size = int(os.environ["LOCAL_WORLD_SIZE"])
    return Seat(world.local_rank, size, str(world.rank - world.local_rank), dist.barrier)
