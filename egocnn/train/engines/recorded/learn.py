"""Collections with a validation part, and seeds for each -> a trained predictor for every seed, all trained as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from joblib import Parallel, cpu_count, delayed

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import decide_tie
from egocnn.encode.encoder import Encoder
from egocnn.errors import ConfigError
from egocnn.model import Model
from egocnn.nn.model import EgoCNN
from egocnn.train.engines.recorded.data import Parts
from egocnn.train.engines.recorded.fit import StackedReport, fit_stacked
from egocnn.train.loop import History, choose_device, fit
from egocnn.train.memory import attempt, warn
from egocnn.train.validation import training_parts, with_own_labels

OCCUPIED = 0.7
"""Share of a GPU's free memory that replicas may fill."""


WORTH_WORKERS = 1 << 20
"""Nodes and edges in all collections that must be prepared before it is worth starting further processes for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One training to be."""

    predictor: Model
    parts: Parts
    seed: int


def prepare_replicas(
    several: Sequence[Graphs], model: ModelConfig, train: TrainConfig, seeds: Sequence[Sequence[int]]
) -> list[list[Replica]]:
    """Everything before the training, exactly as :func:`egocnn.train.recipe.learn` does it for each seed alone.

    The graphs must bring their own validation part: all seeds of a collection share it, and what was fitted.
    """
    if len(several) != len(seeds):
        raise ConfigError(f"{len(several)} collections of graphs, and seeds for {len(seeds)}")
    size = sum(graphs.n_nodes + len(graphs.indices) for graphs in several)
    jobs = min(len(several), cpu_count()) if size > WORTH_WORKERS else 1
    calls = (delayed(_prepare)(graphs, model, train) for graphs in several)
    prepared = Parallel(n_jobs=jobs, return_as="generator")(calls)
    return [
        [Replica(untrained(settled, encoder, seed), parts, seed) for seed in own]
        for (settled, encoder, parts), own in zip(prepared, seeds, strict=True)
    ]


def _prepare(graphs: Graphs, model: ModelConfig, train: TrainConfig) -> tuple[ModelConfig, Encoder, Parts]:
    """The settings, settled by the training part, what was fitted on it, and both parts ready to be read."""
    fitted, chosen_by = training_parts(graphs, train)
    fitted = with_own_labels(fitted)
    settled, _ = decide_tie(model, fitted)
    encoder = Encoder.fit(fitted, settled)
    return settled, encoder, (encoder.apply(fitted, settled), encoder.apply(chosen_by, settled))


def train_replicas(
    replicas: Sequence[Replica], train: TrainConfig, *, report: StackedReport | None = None
) -> list[History]:
    """Train all of them, in as few stacks as the memory allows; their predictors end with the best weights."""
    device = choose_device(train.device)
    at_once = len(replicas)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        at_once = max(1, int(OCCUPIED * free / max(_megabytes(r, train) * 1e6 for r in replicas)))
    histories: dict[int, History] = {}
    waiting = list(_stacks(replicas, at_once))
    while waiting:
        numbers = waiting.pop(0)
        done = list(histories.values())

        def tell(current: Sequence[History], config: TrainConfig, done: Sequence[History] = done) -> None:
            if report is not None:
                report([*done, *current], config)

        own = _train_together([replicas[number] for number in numbers], train, tell)
        if own is None:
            warn("out of memory: fewer models are trained at a time, with the same result")
            half = len(numbers) // 2
            waiting[:0] = [numbers[:half], numbers[half:]]
            continue
        if own[-1].interrupted:
            raise KeyboardInterrupt
        histories |= zip(numbers, own, strict=True)
    return [histories[number] for number in range(len(replicas))]


def _train_together(replicas: Sequence[Replica], train: TrainConfig, report: StackedReport) -> list[History] | None:
    """One stack of them; None, and nothing learned, where the memory does not suffice for several."""
    networks = [replica.predictor.network for replica in replicas]
    before = [{name: value.clone() for name, value in network.state_dict().items()} for network in networks]
    parts, seeds = [replica.parts for replica in replicas], [replica.seed for replica in replicas]
    own = attempt(lambda: fit_stacked(networks, parts, seeds, train, report=report))
    if own is not None:
        return own
    for network, state in zip(networks, before, strict=True):
        network.load_state_dict(state)
    if len(replicas) > 1:
        return None
    config = replace(train, seed=seeds[0])
    return [fit(networks[0], *parts[0], config, report=lambda history, _: report([history], train))]


def _stacks(replicas: Sequence[Replica], at_once: int) -> Iterator[list[int]]:
    """Numbers of the replicas that train together: equal settings, as folds may decide differently on a tie."""
    alike: dict[ModelConfig, list[int]] = {}
    for number, replica in enumerate(replicas):
        alike.setdefault(replica.predictor.config, []).append(number)
    for numbers in alike.values():
        yield from (numbers[first : first + at_once] for first in range(0, len(numbers), at_once))


def untrained(model: ModelConfig, encoder: Encoder, seed: int) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Model.build(model, encoder)


def _megabytes(replica: Replica, train: TrainConfig) -> float:
    """About what a replica takes on a GPU, counted generously."""
    network: EgoCNN = replica.predictor.network
    model, (learned, validation) = network.config, replica.parts
    rows = replica.predictor.encoder.shape(model).rows
    nodes = 2 * train.batch_size * len(learned.steps) / max(len(learned), 1)
    per_node = 4 * rows + 64 * max(model.layer_k) + 24 * sum(model.layer_width) + 24 * max(model.layer_width)
    weights = 32 * network.n_parameters  # the weights, their gradient, two moments, the best ones, and copies
    return (weights + nodes * per_node) / 1e6 + learned.megabytes + validation.megabytes
