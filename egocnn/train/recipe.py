"""A collection + settings -> a trained model: split, fit the encoder, encode, build, train, calibrate.

The R networks of a model learn from the same graphs, and the same validation part chooses the best epoch of each. They
differ in their seeds alone (:func:`network_seeds`).

A collection on disk that is too large to be read whole is read three times, in portions: for the labels in use, for
what is counted and scaled, and to encode all graphs. What is encoded goes to a cache on disk, from which every batch is
read, or where they fit, all graphs into the memory of a GPU. In memory are one portion or one batch, the network, the
colours of the training graphs, and some 60 bytes a graph. The model is, bit for bit, the one that is trained from
memory, unless a GPU cannot hold the encoded graphs: see :func:`choose_engine`."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, cpu_count, delayed
from torch import Tensor, nn

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.collection import Collection, keep_nodes, surroundings
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import Counts, Judgement, judge_counts
from egocnn.data.schema import PARTS
from egocnn.encode.batch import CachedGraphs, EncodedCache, EncodedGraphs, Worker
from egocnn.encode.blocks import HUGE
from egocnn.encode.degrees import describe_by_degree
from egocnn.encode.encoder import Encoder, Survey, check_nodes
from egocnn.errors import ConfigError, DivergedError
from egocnn.model import FITTED, Model, mean_output
from egocnn.nn.batch import Batchable
from egocnn.nn.device import choose_device, warn
from egocnn.nn.model import EgoCNN
from egocnn.nn.predict import predict_each
from egocnn.nn.stacked import check_stackable
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.common import Member
from egocnn.train.engines.distributed import World
from egocnn.train.engines.distributed.engine import current
from egocnn.train.history import History, Report, mean_history
from egocnn.train.loop import EngineName, fit, free_megabytes
from egocnn.train.metrics import loss_of
from egocnn.train.validation import part_numbers, tell_look_alikes

TRAINED = 4096  # Nodes of a huge graph that are learned from.
WHOLE_BYTES = 1 << 25  # A store up to this size is read whole: all of it fits into any memory, and that is quicker.
LEAST_VARIANCE = 1e-12  # Of a standardised value: also where graphs are predicted exactly, the logarithm is finite.
WORTH_WORKERS = 1 << 20  # Nodes and edges in all collections to be encoded that are worth starting processes for.

Test = Callable[[], Tensor | None]  # Gives a model's outputs (R, T, C) for the test part, where there is one.


def stays_on_disk(collection: Collection) -> bool:
    """Whether the collection is too large to be read whole."""
    return collection.bytes_on_disk > WHOLE_BYTES


def read_if_small(collection: Collection) -> Collection:
    """The collection, in memory unless it is too large for that."""
    return collection if stays_on_disk(collection) else collection.whole()


def network_seeds(seed: int, networks: int) -> tuple[int, ...]:
    """The seeds of the R networks of a model: the first is ``seed`` itself, so that R = 1 is the training of that seed.
    The r-th, counted from 0, is a hash: the first 63 bits of SHA-256 of the text "SEED network R"."""
    hashes = (hashlib.sha256(f"{seed} network {r}".encode()).digest() for r in range(1, networks))
    return (seed, *(int.from_bytes(each[:8], "big") >> 1 for each in hashes))


def learn(
    collection: Collection, model: ModelConfig, train: TrainConfig, *, embed: nn.Module | None = None,
    embed_width: int | None = None, stack: bool | None = None, folder: Path | None = None,
    checkpoint: Checkpoint | None = None, report: Report | None = None, ready: Callable[[], None] | None = None,
    trained: Callable[[Model, History, Test], None] | None = None,
) -> tuple[Model, History]:  # fmt: skip
    """Train on the graphs; their own validation part chooses the best epoch, else a part split off by the seed.

    Graphs that the data marks as its test part are never looked at. ``stack``: train in steps that a GPU records and
    replays; by default where that is quicker. Ctrl-C before the first epoch has ended is passed on; later it ends the
    training with the best weights so far. The processes of a group all call this, and train together.

    ``ready`` is called once graphs and settings have proved fit for training, before anything is written, ``trained``
    with the model, and with what tests it. ``folder``: where encoded graphs that do not fit into memory are kept
    meanwhile, by default that for temporary files."""
    device = choose_device(train.device)  # first, to refuse early one that is not there
    whole, collection = collection, bounded(collection, train.seed)
    learned, chosen_by = part_numbers(collection.outline, train)
    plan = TrainingPlan.of(collection.choose(learned), model)
    seeds = network_seeds(train.seed, train.networks)
    predictor = plan.build(seeds, embed=embed, embed_width=embed_width)
    if stack and current() is not None:
        raise ConfigError("a stack trains in one process; leave out either the stack or torchrun")
    if stack:
        check_stackable(predictor.networks)
    if ready is not None:
        ready()
    if not stays_on_disk(collection):
        tell_look_alikes(collection.whole().choose(np.union1d(learned, chosen_by)))
    scale = plan.encoder.target_scale
    with encode(collection, plan, folder) as encoded:
        validation = encoded(chosen_by)
        members = Replica(predictor, (encoded(learned), validation), seeds).members
        tell = None if report is None else lambda several, config: report(mean_history(several).in_unit(scale), config)
        stored = {} if checkpoint is None else {"resume": checkpoint.resume, "keep": checkpoint.keep}
        engine = choose_engine(members, train, stack=stack)
        history = mean_history(fit(members, train, engine=engine, report=tell, **stored)).in_unit(scale)
        predictor = _concluded(predictor, history, validation, plan.judgement, device)

        def test() -> Tensor | None:
            part = collection.outline.part
            tested = np.flatnonzero(part == PARTS.index("test") if part is not None else [])
            if (whole.node_counts[tested] >= HUGE).any():
                return torch.from_numpy(predictor.outputs_of_each(whole.choose(tested).whole(), device=train.device))
            return predict_each(predictor.networks, encoded(tested).to(device)).float().cpu() if len(tested) else None

        if trained is not None:
            trained(predictor, history, test)
    return predictor, history


def bounded(collection: Collection, seed: int) -> Collection:
    """A collection in memory, of its huge graphs a connected part each, drawn by the seed: all layers of one, with what
    their gradients need, take gigabytes, and every epoch minutes. Whole graphs are predicted all the same."""
    huge = np.flatnonzero(collection.node_counts >= HUGE)
    if not len(huge) or stays_on_disk(collection):
        return collection
    warn(f"{len(huge)} graphs of {HUGE:,} nodes or more: a connected part of each, {TRAINED:,} nodes, is learned from")
    graphs = collection.whole()
    stays = ~np.isin(graphs.graph_of, huge)
    for g in huge.tolist():
        one, weight = graphs[g : g + 1], np.random.default_rng((seed, g)).random(graphs.node_counts[g])
        part = surroundings(one.indptr, one.indices, weight.argmax(keepdims=True), weight, TRAINED)
        stays[graphs.node_ptr[g] + part] = True
    return keep_nodes(graphs, stays)


def choose_engine(members: Sequence[Member], train: TrainConfig, *, stack: bool | None) -> EngineName:
    """Distributed in a group; recorded where that is asked for, or by default on a GPU that holds all encoded graphs.
    What comes out of a plain training differs in rounding, and in which activations dropout drops."""
    if current() is not None:
        return "distributed"
    free = free_megabytes(choose_device(train.device))  # of a GPU
    if stack is None and free is not None:
        parts = {id(part): part for member in members for part in (member.train, member.validation)}
        # a module in place of the node embedding may do what cannot be recorded; several targets were not tried yet
        is_plain = any(member.network.custom_embedding or member.network.widths for member in members)
        stack = not is_plain and sum(part.megabytes for part in parts.values()) < free
    return "recorded" if stack else "plain"


def _concluded(
    predictor: Model, history: History, validation: Batchable, judgement: Judgement | None, device: torch.device
) -> Model:
    """What is left to do after a training: refuse one that came to nothing, calibrate, note why layers are tied."""
    has_diverged = any(each.best is None for each in history.of_each)
    if has_diverged and history.interrupted:
        raise KeyboardInterrupt
    if has_diverged:
        advice = "try a smaller --learning-rate, with --overwrite"
        raise DivergedError(f"training diverged: no epoch gave a finite loss; {advice}")
    if validation.target is not None and (predictor.targets or predictor.class_names or len(predictor.networks) > 1):
        outputs, target = predict_each(predictor.networks, validation.to(device)).float().cpu(), validation.target.cpu()
        predictor = _calibrated(predictor, outputs, target)
    if judgement is not None:
        why = {"scale_free": judgement.is_scale_free, "reason": judgement.reason}
        predictor = replace(predictor, about={"tie": why})
    return predictor


def _calibrated(predictor: Model, outputs: Tensor, target: Tensor) -> Model:
    """Outputs (R, V, C) and targets (V), or (V, T), of the validation part -> the model with what is fitted on them"""
    if predictor.targets:
        several = list(predictor.encoder.targets_of)
        for t, (_, one, own) in enumerate(predictor.each_target(outputs.numpy())):
            known = ~target[:, t].isnan()
            values = target[known, t].long() if one.class_names else target[known, t]
            one = _calibrated(one, torch.from_numpy(own)[:, known], values) if len(values) else one
            several[t] = replace(several[t], **{number: getattr(one, number) for number in FITTED})
        return replace(predictor, encoder=replace(predictor.encoder, targets_of=tuple(several)))
    if predictor.class_names:
        mean = torch.from_numpy(mean_output(outputs.numpy()))
        return replace(predictor, temperature=calibrate(mean, target))
    if len(predictor.networks) == 1:
        return predictor
    noise, scale = fit_spread(outputs[:, :, 0], target)
    return replace(predictor, noise=noise, spread_scale=scale)


def calibrate(logits: Tensor, target: Tensor) -> float:
    """The temperature from 1 to 10 under which the validation part is most likely. A temperature below 1 would make a
    model that errs on none of a few graphs claim certainty: never sharpen."""
    candidates = torch.logspace(0, 1, 41).tolist()
    losses = [float(loss_of(logits / t, target)) for t in candidates]
    return float(candidates[int(np.argmin(losses))])


def fit_spread(values: Tensor, target: Tensor) -> tuple[float, float]:
    r"""Noise s and scale k under which the validation part is most likely: its errors normal around 0 with variance

    .. math:: s^2 + k^2 \, \mathrm{var}_r(z_{rg})

    Both are taken from a grid; a finer one would say more than a validation part does.

    Shapes: values (R, V), target (V), both standardised"""
    values, target = values.double(), target.double()
    error, variance = (values.mean(dim=0) - target).square(), values.var(dim=0)
    noises = float(error.mean().sqrt()) * torch.linspace(0, 1.2, 25, dtype=torch.float64)
    scales = torch.tensor([0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8], dtype=torch.float64)
    pairs = list(product(noises.tolist(), scales.tolist()))
    totals = [(noise**2 + scale**2 * variance).clamp(min=LEAST_VARIANCE) for noise, scale in pairs]
    surprise = torch.stack([(total.log() + error / total).sum() for total in totals])
    return pairs[int(surprise.argmin())]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPlan:
    """All that the training graphs decide before a network is trained on them."""

    model: ModelConfig  # in which ``tie`` is true or false
    judgement: Judgement | None  # why layers are tied, where the graphs were to decide it
    encoder: Encoder

    @staticmethod
    def of(fitted: Collection, model: ModelConfig) -> "TrainingPlan":
        """Fitted on these graphs; the same, bit for bit, from memory and from disk. A label that only other graphs have
        is to the model what it is in any new data: unseen."""
        survey = Survey(fitted.portions())
        check_nodes(len(fitted), survey.nodes)
        judgement = None
        if model.tie == "auto":
            degree = 1 + np.flatnonzero(survey.degrees[1:])
            counts = Counts(degree, survey.degrees[degree])
            judgement = judge_counts(counts, graphs=len(fitted), nodes=survey.nodes)
            tied = "tied" if judgement.is_scale_free else "not tied"
            logging.getLogger("egocnn").info("tie auto: %s (%s)", tied, judgement.reason)
            model = replace(model, tie=judgement.is_scale_free)
        by_degree = model.degrees and not survey.has_node_labels
        node_names, edge_names = survey.degree_names if by_degree else survey.names("node"), survey.names("edge")

        def portions() -> Iterator[Graphs]:
            for graphs in fitted.portions():
                described = describe_by_degree(graphs) if by_degree else graphs
                yield described.with_names(nodes=node_names, edges=edge_names)

        encoder = Encoder.fit_portions(portions(), target=fitted.outline.target, by_degree=by_degree)
        return TrainingPlan(model, judgement, encoder)

    def build(self, seeds: Sequence[int], *, embed: nn.Module | None = None, embed_width: int | None = None) -> Model:
        """An untrained model with a network for each of the seeds, from which its first weights follow."""
        networks: list[EgoCNN] = []
        with torch.random.fork_rng(devices=[]):
            for seed in seeds:
                torch.manual_seed(seed)
                networks += Model.build(self.model, self.encoder, embed=embed, embed_width=embed_width).networks
        return Model(config=self.model, encoder=self.encoder, networks=tuple(networks))

    def encode(self, graphs: Graphs) -> EncodedGraphs:
        """Graphs as the network reads them, in memory."""
        return self.encoder.apply(graphs, self.model)


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
    with closing(EncodedCache(counts, folder, _worker())) as cache:
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


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One of many trainings: an untrained model, what it learns from and what chooses best epochs, and its seeds."""

    predictor: Model
    parts: tuple[Batchable, Batchable]
    seeds: tuple[int, ...]  # one for every network of the model; they follow from the first

    @property
    def members(self) -> list[Member]:
        """What the loop trains."""
        return [Member(each, *self.parts, seed) for each, seed in zip(self.predictor.networks, self.seeds, strict=True)]


def prepare_replicas(
    several: Sequence[Graphs], model: ModelConfig, train: TrainConfig, seeds: Sequence[Sequence[int]]
) -> list[list[Replica]]:
    """Everything before the training, exactly as :func:`learn` does it for each seed alone. The graphs must bring their
    own validation part: all seeds of a collection share it, and what was fitted."""
    size = sum(graphs.n_nodes + len(graphs.indices) for graphs in several)
    jobs = min(len(several), cpu_count()) if size > WORTH_WORKERS else 1
    calls = (delayed(_prepare)(graphs, model, train) for graphs in several)
    prepared = zip(Parallel(n_jobs=jobs, return_as="generator")(calls), seeds, strict=True)
    return [[make_replica(plan, both, seed, train.networks) for seed in own] for (plan, both), own in prepared]


def make_replica(plan: TrainingPlan, parts: tuple[Batchable, Batchable], seed: int, networks: int) -> Replica:
    """An untrained model with so many networks, all of whose seeds follow from one."""
    seeds = network_seeds(seed, networks)
    return Replica(plan.build(seeds), parts, seeds)


def _prepare(
    graphs: Graphs, model: ModelConfig, train: TrainConfig
) -> tuple[TrainingPlan, tuple[EncodedGraphs, EncodedGraphs]]:
    graphs = bounded(graphs, train.seed).whole()
    learned, chosen_by = (graphs.choose(numbers) for numbers in part_numbers(graphs.outline, train))
    plan = TrainingPlan.of(learned, model)
    return plan, (plan.encode(learned), plan.encode(chosen_by))
