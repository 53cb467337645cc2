"""Time to finish a whole 10-fold cross-validation, beside as many trainings one after the other.

These are projected from a few epochs of ours, and from the training step of a network of PyTorch Geometric's: to wait
for all of them would take hours. Beside them stand the seconds that the paper's authors report. Their supplement gives
them next to the accuracies, for a GTX 1070, and does not say what they cover.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.study.crossval import cross_validate
from egocnn.train.recipe import learn
from lab.bench.speed.step import Material, StepSizes, peer_builder
from lab.bench.tools.ceilings import Precision
from lab.bench.tools.datasets import read_each
from lab.bench.tools.peers import GIN_TWO
from lab.bench.tools.systems import OURS, BenchSettings, Measurement, TimedCase, TimedSystem, measure_systems
from lab.bench.tools.timing import Timing
from lab.tables.published import SECONDS

REPORTED = SECONDS["Ego-CNN"]  # Seconds in the table of the paper's supplement.
AUTHORS = "the authors' report (GTX 1070)"
SINGLY = "one training after the other"
TIMED_EPOCHS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossvalSizes:
    data: Sequence[str] = tuple(REPORTED)
    folds: int = 10
    restarts: int = 5
    model: ModelConfig = field(default_factory=lambda: ModelConfig(depth=5))
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=100, patience=100))
    """patience that never runs out: every training takes all its epochs"""


GPU = CrossvalSizes()
CPU = CrossvalSizes(data=("MUTAG", "PTC_MR"), restarts=1)
QUICK = CrossvalSizes(data=("MUTAG",), folds=3, restarts=1, train=TrainConfig(epochs=4))


def bench_crossval(setting: BenchSettings, sizes: CrossvalSizes | None = None) -> dict[str, Any]:
    sizes = sizes or (QUICK if setting.quick else GPU if setting.device.type == "cuda" else CPU)
    cases: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name, graphs in read_each(sizes.data, setting, missing):
        cases.append(_case(name, graphs, sizes, setting).to_plain())
    return {"cases": cases, "missing": missing}


def _case(name: str, graphs: Graphs, sizes: CrossvalSizes, setting: BenchSettings) -> TimedCase:
    train = replace(sizes.train, seed=setting.seed, device="cuda" if setting.device.type == "cuda" else "cpu")
    restarts = f"{sizes.restarts} restart{'s' if sizes.restarts > 1 else ''}"
    title = f"{name}, {sizes.folds} folds, {restarts}, {train.epochs} epochs"
    setting.say(title)
    result = cross_validate(graphs, sizes.model, train, folds=sizes.folds, restarts=sizes.restarts, data=name)
    setting.say(f"  {OURS}: {result.seconds:.1f} s, accuracy {result.mean:.4f}")
    memory = result.peak_megabytes if setting.device.type == "cuda" else None
    found = [Measurement(system=OURS, timing=_whole(result.seconds, memory))]
    if result.stacked:  # else it is what has just been done
        found.append(_singly(graphs, sizes, train))
    found.append(_peer(graphs, sizes, setting))
    if name in REPORTED and not setting.quick:
        note = "reported in the paper, not measured here; it does not say what the time covers"
        found.append(Measurement(system=AUTHORS, timing=_whole(REPORTED[name]), same_function=False, note=note))
    shape = {
        "data": name,
        "graphs": len(graphs),
        "folds": sizes.folds,
        "restarts": sizes.restarts,
        "epochs": train.epochs,
        "batch_size": train.batch_size,
        "depth": sizes.model.depth,
        "width": sizes.model.width,
        "stacked": result.stacked,
        "accuracy": round(result.mean, 4),
        "preparing_seconds": round(result.preparing_seconds, 2),
        "training_seconds": round(result.training_seconds, 2),
        "testing_seconds": round(result.testing_seconds, 2),
    }
    return TimedCase(name=title, shape=shape, measurements=found)


def _singly(graphs: Graphs, sizes: CrossvalSizes, train: TrainConfig) -> Measurement:
    learned, _ = graphs.split(test=1 / sizes.folds, seed=train.seed)
    _, history = learn(learned, sizes.model, replace(train, epochs=TIMED_EPOCHS + 1, patience=TIMED_EPOCHS + 1))
    epoch = statistics.median(done.seconds for done in history.epochs[1:])  # the first one warms up
    seconds = epoch * train.epochs * sizes.folds * sizes.restarts
    note = f"projected from {TIMED_EPOCHS} epochs of one training"
    return Measurement(system=SINGLY, timing=_whole(seconds), note=note)


def _peer(graphs: Graphs, sizes: CrossvalSizes, setting: BenchSettings) -> Measurement:
    batch_size = sizes.train.batch_size
    precision: Precision = "bfloat16" if setting.device.type == "cuda" else "float32"
    material = Material.choose(graphs, StepSizes(batches=4, model=sizes.model), batch_size, setting)
    build = peer_builder(material, precision, building=True, peer=GIN_TWO)
    (step,) = measure_systems([TimedSystem(name=GIN_TWO.name, build=build, same_function=False)], setting)
    if step.timing is None:
        return step
    learned = len(graphs) * (1 - 1 / sizes.folds) * (1 - sizes.train.validation)
    steps = math.ceil(learned / batch_size) * sizes.train.epochs * sizes.folds * sizes.restarts
    note = "one training after the other, projected from its training step; validation and tests not counted"
    return replace(step, timing=_whole(step.timing.milliseconds / 1000 * steps), note=note)


def _whole(seconds: float, peak_megabytes: float | None = None) -> Timing:
    return Timing(milliseconds=1000 * seconds, spread=0.0, rounds=1, peak_megabytes=peak_megabytes)
