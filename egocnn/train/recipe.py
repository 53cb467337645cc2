"""A collection + settings -> a trained model: split, fit the encoder, encode, build, train, calibrate.

A collection on disk (:mod:`egocnn.data.store`) that is too large to be read whole is read three times, in portions: for
the labels in use, for what is counted and scaled, and to encode all graphs. What is encoded goes to a cache on disk
(:mod:`egocnn.encode.cache`), and every batch is read from there. In memory are one portion or one batch, the network,
the colours of the training graphs, and some 60 bytes a graph. On a GPU the encoded graphs are loaded from the cache
where they fit into its memory. Either way the model is, bit for bit, the one that is trained from memory, unless a GPU
cannot hold the encoded graphs: see :func:`choose_engine`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, cpu_count, delayed
from torch import Tensor, nn

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import Counts, Judgement, decide_by, judge_counts
from egocnn.data.schema import PARTS
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.cache import CachedGraphs, Worker, encoded_cache
from egocnn.encode.degrees import describe_by_degree
from egocnn.encode.encoder import Encoder, check_nodes
from egocnn.encode.survey import Survey
from egocnn.errors import ConfigError, DivergedError
from egocnn.model import Model
from egocnn.nn.batch import Batchable
from egocnn.nn.device import choose_device
from egocnn.nn.model import EgoCNN
from egocnn.nn.predict import predict
from egocnn.nn.stacked.network import check_stackable
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.common import Member
from egocnn.train.engines.distributed.world import World, current
from egocnn.train.history import History, Report
from egocnn.train.loop import EngineName, fit, free_megabytes
from egocnn.train.metrics import loss_of
from egocnn.train.validation import part_numbers

WHOLE_BYTES = 1 << 25
"""A store up to this size is read whole: what is computed from it fits into any memory, and training is quicker."""

WORTH_WORKERS = 1 << 20
"""Nodes and edges in all collections that must be encoded before it is worth starting further processes for it."""


def stays_on_disk(collection: Collection) -> bool:
    """Whether the collection is too large to be read whole."""
    return collection.bytes_on_disk > WHOLE_BYTES


def read_if_small(collection: Collection) -> Collection:
    """The collection, in memory unless it is too large for that."""
    return collection if stays_on_disk(collection) else collection.whole()


# ── one model ─────────────────────────────────────────────────────────────────────────────────────


def learn(
    collection: Collection,
    model: ModelConfig,
    train: TrainConfig,
    *,
    embed: nn.Module | None = None,
    embed_width: int | None = None,
    stack: bool | None = None,
    report: Report | None = None,
) -> tuple[Model, History]:
    """Train on the graphs; their own validation part chooses the best epoch, else a part split off by the seed.

    Graphs that the data marks as its test part are never looked at. ``stack``: train in steps that a GPU records and
    replays; by default where that is quicker. Ctrl-C before the first epoch has ended is passed on; later it ends the
    training with the best weights so far.
    """
    predictor, history, _ = learn_and_test(
        collection, model, train, embed=embed, embed_width=embed_width, stack=stack, report=report, test=False
    )
    return predictor, history


def learn_and_test(
    collection: Collection,
    model: ModelConfig,
    train: TrainConfig,
    *,
    embed: nn.Module | None = None,
    embed_width: int | None = None,
    stack: bool | None = None,
    test: bool = True,
    folder: Path | None = None,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    ready: Callable[[], None] | None = None,
    trained: Callable[[Model, History], None] | None = None,
) -> tuple[Model, History, Tensor | None]:
    """:func:`learn`, and the outputs (T, C) for the test part, where there is one and this process writes the run.

    The processes of a group (:mod:`egocnn.train.engines.distributed.world`) all call this, and train together.
    ``ready`` is called once graphs and settings have proved fit for training, before anything is written, ``trained``
    with the trained model before it is tested. ``folder``: where encoded graphs that do not fit into memory are kept
    meanwhile, by default that for temporary files.
    """
    device = choose_device(train.device)  # first, to refuse early one that is not there
    learned, chosen_by = part_numbers(collection.outline, train)
    plan = TrainingPlan.of(collection.choose(learned), model)
    predictor = plan.build(train.seed, embed=embed, embed_width=embed_width)
    if stack:
        if current() is not None:
            raise ConfigError("a stack trains in one process; leave out either the stack or torchrun")
        check_stackable([predictor.network])
    if ready is not None:
        ready()
    with encode(collection, plan, folder) as encoded:
        validation = encoded(chosen_by)
        member = Member(predictor.network, encoded(learned), validation, train.seed)
        (history,) = fit(
            [member],
            train,
            engine=choose_engine([member], train, stack=stack),
            resume=None if checkpoint is None else checkpoint.resume,
            keep=None if checkpoint is None else checkpoint.keep,
            report=None if report is None else lambda histories, config: report(histories[0], config),
        )
        predictor = _concluded(predictor, history, validation, plan.judgement, device)
        if trained is not None:
            trained(predictor, history)
        outputs, part = None, collection.outline.part
        if test and part is not None and World.here().rank == 0:
            tested = np.flatnonzero(part == PARTS.index("test"))
            outputs = predict(predictor.network, encoded(tested).to(device)).float().cpu() if len(tested) else None
    return predictor, history, outputs


def choose_engine(members: Sequence[Member], train: TrainConfig, *, stack: bool | None) -> EngineName:
    """Distributed in a group; recorded where that is asked for, or by default where a GPU can.

    A GPU that cannot hold all encoded graphs at once trains plainly: what comes out differs from a recorded training
    in rounding, and in which activations dropout drops.
    """
    if current() is not None:
        return "distributed"
    device = choose_device(train.device)
    if stack is None:
        parts = {id(part): part for member in members for part in (member.train, member.validation)}
        free = free_megabytes(device)
        stack = all(is_best_stacked(member.network, device) for member in members)
        stack = stack and free is not None and sum(part.megabytes for part in parts.values()) < free
    return "recorded" if stack else "plain"


def is_best_stacked(network: EgoCNN, device: torch.device) -> bool:
    """A GPU gains from recorded steps; a module in place of the node embedding may do what cannot be recorded."""
    return device.type == "cuda" and not network.custom_embedding


def _concluded(
    predictor: Model,
    history: History,
    validation: Batchable,
    judgement: Judgement | None,
    device: torch.device,
) -> Model:
    """What is left to do after a training: refuse one that came to nothing, calibrate, note why layers are tied."""
    if history.best is None and history.interrupted:
        raise KeyboardInterrupt
    if history.best is None:
        raise DivergedError(
            "training diverged: no epoch gave a finite loss; try a smaller --learning-rate, with --overwrite"
        )
    if predictor.class_names and validation.target is not None:
        logits = predict(predictor.network, validation.to(device)).cpu()
        predictor = replace(predictor, temperature=calibrate(logits, validation.target.cpu()))
    if judgement is not None:
        predictor = replace(
            predictor, about={"tie": {"scale_free": judgement.is_scale_free, "reason": judgement.reason}}
        )
    return predictor


def calibrate(logits: Tensor, target: Tensor) -> float:
    """The temperature from 1 to 10 under which the validation part is most likely.

    A temperature below 1 would make a model that errs on none of a few graphs claim certainty: never sharpen.
    """
    candidates = torch.logspace(0, 1, 41).tolist()
    losses = [float(loss_of(logits / t, target)) for t in candidates]
    return float(candidates[int(np.argmin(losses))])


# ── what is fitted on the training part, and encoded graphs ───────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPlan:
    """All that the training graphs decide before a network is trained on them."""

    model: ModelConfig
    """in which ``tie`` is true or false"""
    judgement: Judgement | None
    """why layers are tied, where the graphs were to decide it"""
    encoder: Encoder

    @staticmethod
    def of(fitted: Collection, model: ModelConfig) -> TrainingPlan:
        """Fitted on these graphs; the same, bit for bit, from memory and from disk.

        A label that only other graphs have is to the model what it is in any new data: unseen.
        """
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
        encoder = Encoder.fit_portions(portions(), model, target=target, by_degree=by_degree)
        return TrainingPlan(model, judgement, encoder)

    def build(self, seed: int, *, embed: nn.Module | None = None, embed_width: int | None = None) -> Model:
        """An untrained model; its first weights follow from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Model.build(self.model, self.encoder, embed=embed, embed_width=embed_width)

    def encode(self, graphs: Graphs) -> EncodedGraphs:
        """Graphs as the network reads them, in memory."""
        return self.encoder.apply(graphs, self.model)


def _judge(survey: Survey, graphs: int) -> Judgement:
    degree = np.flatnonzero(survey.degrees)
    degree = degree[degree > 0]
    return judge_counts(Counts(degree, survey.degrees[degree]), graphs=graphs, nodes=survey.nodes)


@contextmanager
def encode(
    collection: Collection, plan: TrainingPlan, folder: Path | None = None
) -> Iterator[Callable[[Ints], Batchable]]:
    """What gives the graphs with these numbers, encoded: in memory, or where they are too many, in a cache on disk."""
    if not stays_on_disk(collection):
        graphs = collection.whole()
        yield lambda numbers: plan.encode(graphs.choose(numbers))
        return
    folder = folder or Path(tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    target = plan.encoder.targets(collection.outline)
    counts = collection.node_counts
    with encoded_cache(counts, folder, _worker()) as cache:
        cache.fill(plan.encode(graphs) for graphs in collection.portions(*cache.stretch))

        def cached(numbers: Ints) -> CachedGraphs:
            own = None if target is None else target[torch.from_numpy(numbers)]
            return CachedGraphs.of(cache, numbers, counts[numbers], own)

        yield cached


def _worker() -> Worker:
    """The processes that torchrun has started on one machine share the work of encoding."""
    if current() is None:
        return Worker()
    import torch.distributed as dist

    world = World.here()
    size = int(os.environ["LOCAL_WORLD_SIZE"])
    return Worker(world.local_rank, size, str(world.rank - world.local_rank), dist.barrier)


# ── many models at once ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One of many trainings: an untrained model, what it learns from and what chooses its best epoch, and its seed."""

    predictor: Model
    parts: tuple[Batchable, Batchable]
    seed: int

    @property
    def member(self) -> Member:
        return Member(self.predictor.network, *self.parts, self.seed)


def prepare_replicas(
    several: Sequence[Graphs], model: ModelConfig, train: TrainConfig, seeds: Sequence[Sequence[int]]
) -> list[list[Replica]]:
    """Everything before the training, exactly as :func:`learn` does it for each seed alone.

    The graphs must bring their own validation part: all seeds of a collection share it, and what was fitted.
    """
    if len(several) != len(seeds):
        raise ConfigError(f"{len(several)} collections of graphs, and seeds for {len(seeds)}")
    size = sum(graphs.n_nodes + len(graphs.indices) for graphs in several)
    jobs = min(len(several), cpu_count()) if size > WORTH_WORKERS else 1
    calls = (delayed(_prepare)(graphs, model, train) for graphs in several)
    prepared = Parallel(n_jobs=jobs, return_as="generator")(calls)
    return [
        [Replica(plan.build(seed), parts, seed) for seed in own]
        for (plan, parts), own in zip(prepared, seeds, strict=True)
    ]


def _prepare(
    graphs: Graphs, model: ModelConfig, train: TrainConfig
) -> tuple[TrainingPlan, tuple[EncodedGraphs, EncodedGraphs]]:
    learned, chosen_by = (graphs.choose(numbers) for numbers in part_numbers(graphs.outline, train))
    plan = TrainingPlan.of(learned, model)
    return plan, (plan.encode(learned), plan.encode(chosen_by))
