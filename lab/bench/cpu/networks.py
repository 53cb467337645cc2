"""How long does a model of R networks train on a CPU, beside a model of one? One run, one machine -> JSON.

    EGOCNN_DATA=... python -m lab measure networks

Epochs are those of the default settings, validation included. Models of one network (with all threads, as it is trained
by default, and with a single one) and of R networks take turns, epoch by epoch, so that whatever else the machine does
slows down all of them alike; the quickest epoch of each counts, and the median. Processor seconds are those of all
threads together. The first epoch of each does not count.

A ratio of R is what training the networks one after the other would cost. Where other processes keep the cores busy,
two threads that share one batch wait for each other longer than they compute: then only the comparison with one network
on one thread says something, and processor seconds do.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.train.engines.common import Build, Member, Progress
from egocnn.train.engines.plain import PlainEngine, SideBySideEngine
from egocnn.train.recipe import TrainingPlan, make_replica
from egocnn.train.validation import part_numbers
from lab.record import arguments, write_measured

GOAL = 0.8  # Share of R times the epoch of one network that an epoch of R networks may take.

QUIET = 0.5
"""Load average before the run up to which it says whether the goal is met: else threads wait for other processes."""

Seconds = tuple[float, float]  # by the clock, and of all processors


@contextmanager
def threads(number: int) -> Iterator[None]:
    """As many threads as this for torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def trainer(build: Build, members: Sequence[Member], config: TrainConfig, at_once: int) -> Callable[[int], Seconds]:
    """What trains the epoch of a number."""
    with threads(at_once):
        engine = build(members, [Progress.begin(member.network, config) for member in members], config)

    def epoch(number: int) -> Seconds:
        with threads(at_once):
            started, computed = time.perf_counter(), time.process_time()
            engine.train_epoch(number, np.ones(len(members), bool))
            return time.perf_counter() - started, time.process_time() - computed

    return epoch


def measure(graphs: Graphs, model: ModelConfig, config: TrainConfig, *, rounds: int, at_once: int) -> dict[str, Any]:
    """``config.networks`` networks against one, so many epochs each."""
    busy, R = os.getloadavg()[0], config.networks
    learned, chosen_by = (graphs.choose(numbers) for numbers in part_numbers(graphs.outline, config))
    plan = TrainingPlan.of(learned, model)
    parts = plan.encode(learned), plan.encode(chosen_by)

    def members(networks: int) -> list[Member]:
        return make_replica(plan, parts, config.seed, networks).members

    several = f"{R} networks"
    trainers = {
        "one network": trainer(PlainEngine, members(1), config, at_once),
        "one network, one thread": trainer(PlainEngine, members(1), config, 1),
        several: trainer(SideBySideEngine, members(R), config, at_once),
        f"{several}, in turn, one thread": trainer(PlainEngine, members(R), config, 1),
    }
    found: dict[str, list[Seconds]] = {name: [] for name in trainers}
    for number in range(1, rounds + 2):
        for name, epoch in trainers.items():
            found[name].append(epoch(number))
    times = {name: _summary(of[1:]) for name, of in found.items()}

    def ratio(of: str, kind: str = "best") -> float:
        return round(times[several][kind] / times[of][kind], 2)

    return {
        "what": "seconds of an epoch of training, validation included, on a CPU",
        "graphs": {"trained": len(learned), "validated": len(chosen_by)},
        "networks": R,
        "threads": at_once,
        "rounds": rounds,
        "load_average": [round(busy, 2), round(os.getloadavg()[0], 2)],
        "seconds": times,
        "times_one_network": ratio("one network"),
        "times_one_network_by_median": ratio("one network", "median"),
        "times_one_network_on_one_thread": ratio("one network, one thread"),
        "times_one_network_on_one_thread_by_median": ratio("one network, one thread", "median"),
        "processor_times_one_network_on_one_thread": ratio("one network, one thread", "processor"),
        "goal": round(GOAL * R, 2),
        "met": ratio("one network") <= GOAL * R if busy < QUIET else None,
    }


def _summary(seconds: Sequence[Seconds]) -> dict[str, float]:
    by_clock, of_processors = zip(*seconds, strict=True)
    return {
        "best": round(min(by_clock), 4),
        "median": round(statistics.median(by_clock), 4),
        "processor": round(min(of_processors), 4),
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("networks", __doc__)
    parser.add_argument("--data", default="NCI1", help="graphs with classes (default: NCI1)")
    parser.add_argument("--target", help="the column to predict, where the data is a table")
    parser.add_argument("--limit", type=int, default=800, help="take so many graphs (default: 800)")
    parser.add_argument("--networks", type=int, default=TrainConfig().networks)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args(words)
    graphs = read(options.data, target=options.target)
    graphs = graphs[np.random.default_rng(0).permutation(len(graphs))[: options.limit]]
    config = TrainConfig(networks=options.networks, epochs=options.rounds + 1, device="cpu")
    measured = measure(graphs, ModelConfig(), config, rounds=options.rounds, at_once=options.threads)
    write_measured("networks", words, options.out, measured | {"data": Path(options.data).name})
