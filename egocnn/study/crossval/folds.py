"""Names, files and graphs -> how a cross-validation is carried out, and its folds with all their seeds. ``plain``:
stratified folds, a share of the training part validates, one training a fold unless ``restarts`` says more. ``paper``:
what the authors' code does. Ten stratified folds; in each, 10% of the training part validates; five restarts, of which
the best in validation is tested, once. ``fair``: the published splits of Errica et al. (A fair comparison of graph
neural networks for graph classification, ICLR 2020). The given validation part chooses epoch and settings, and the
score of a fold is the mean of three runs. Departure: they draw another tenth for early stopping in those runs; here the
given validation part serves again."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from egocnn.config import TrainConfig, check_fields
from egocnn.data.arrays import Ints
from egocnn.data.collection import split_off
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS, rule
from egocnn.errors import ConfigError, DataError
from egocnn.files import regular

ProtocolName = Literal["plain", "paper", "fair"]
Combine = Literal["best", "average"]
PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)
PAPER_VALIDATION = 0.1


class Split(NamedTuple):
    """Graph numbers of one fold, all parts given."""

    train: Ints
    validation: Ints
    tested: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How often is trained, on what, and what chooses."""

    name: ProtocolName = "plain"
    folds: int = 10
    runs: int = 1  # per fold, each with its own look at the test fold; the score is their mean
    restarts: int = 1  # trainings per run
    combine: Combine = "best"  # predicts in a run: the restart best in validation, or all, probabilities averaged
    splits: tuple[Split, ...] | None = None  # given; None: drawn by the seed
    metric: str | None = None  # the score that is reported; None: accuracy, or R² where a value is predicted

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.name == "fair") != (self.splits is not None):
            raise ConfigError("splits are given with the fair protocol, and only with it")
        if self.splits is not None and len(self.splits) != self.folds:
            raise ConfigError(f"{len(self.splits)} splits for {self.folds} folds")


@dataclass(frozen=True, slots=True, eq=False)
class FoldTask:
    """A fold to compute: numbers of graphs, and seeds."""

    fold: int  # from 1
    learned: Ints
    validation: Ints
    tested: Ints
    seeds: tuple[tuple[int, ...], ...]  # for every run, one per restart

    def without_tested(self, graphs: Graphs) -> Graphs:
        """All but the tested graphs, with the part that each belongs to: all trainings of a fold share these parts."""
        rest = np.sort(np.concatenate([self.learned, self.validation]))
        part = np.where(np.isin(rest, self.validation), PARTS.index("validation"), PARTS.index("train"))
        return graphs[rest].replace(part=part.astype(np.int8))


def choose_protocol(
    name: ProtocolName, *, data: str = "", splits: Path | None = None, combine: Combine = "best", **counts: int | None
) -> Protocol:
    """A protocol with ``folds``, ``runs`` and ``restarts`` (None: as usual); ``data`` names the published splits."""
    rule(name in PROTOCOLS, f"no protocol is called {name!r}; there are {', '.join(PROTOCOLS)}", ConfigError)
    given = None
    if name == "fair":
        given = tuple(read_splits(published_splits(data) if splits is None else splits))
        if (folds := counts.get("folds")) not in (None, len(given)):
            raise ConfigError(f"the given splits make {len(given)} folds, not {folds}; leave --folds out")
        counts["folds"] = len(given)
    elif splits is not None:
        raise ConfigError(f"--splits belongs to --protocol fair, not to {name}")
    usual: dict[str, Any] = {"plain": {}, "paper": {"restarts": 5}, "fair": {"runs": 3}}[name]
    asked = {count: number for count, number in counts.items() if number is not None}
    return Protocol(name=name, combine=combine, splits=given, **usual | asked)


def published_splits(data: str) -> Path:
    """Where the published splits of a data set are on this machine."""
    name = Path(data).name.removesuffix(".zip")
    folder = os.environ.get("EGOCNN_DATA")
    if not folder:
        wanted = f"the fair protocol reads splits/{name}.json in the folder that EGOCNN_DATA names"
        raise DataError(f"{wanted}, and EGOCNN_DATA is not set; --splits names a file")
    path = Path(folder, "splits", f"{name}.json")
    rule(path.is_file(), f"{path}: no such file; the fair protocol needs the published splits of {name!r}")
    return path


def read_splits(path: Path) -> list[Split]:
    """Read ``[{"test": […], "model_selection": [{"train": […], "validation": […]}]}, …]``."""
    try:
        found = json.loads(regular(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: is not JSON") from None
    rule(isinstance(found, list) and len(found) >= 2, f"{path}: must hold a list of at least 2 folds")
    return [_split(fold, f"{path}, fold {number}") for number, fold in enumerate(found, start=1)]


def _split(fold: Any, where: str) -> Split:
    inner = fold.get("model_selection") if isinstance(fold, dict) else None
    if not isinstance(inner, list) or len(inner) != 1 or not isinstance(inner[0], dict):
        raise DataError(f"{where}: must have a 'test' part and one 'model_selection' with 'train' and 'validation'")
    named = {**inner[0], "test": fold.get("test")}
    split = Split(*(_numbers(named.get(name), name, where) for name in ("train", "validation", "test")))
    values, counts = np.unique(np.concatenate(split), return_counts=True)
    if counts.max() > 1:
        raise DataError(f"{where}: graph {values[counts > 1][0]} stands twice; a graph belongs to one part")
    return split


def _numbers(values: Any, name: str, where: str) -> Ints:
    rule(isinstance(values, list) and values, f"{where}: the part {name!r} has no graphs")
    for value in values:
        is_number = type(value) is int and 0 <= value < 2**62
        rule(is_number, f"{where}: {value!r} in {name!r} is not the number of a graph, counted from 0")
    return np.sort(np.array(values, np.int64))


def make_tasks(graphs: Graphs, protocol: Protocol, train: TrainConfig) -> list[FoldTask]:
    """The folds of a protocol; ``train.seed`` decides whatever is drawn."""
    if protocol.name == "paper" and train.validation != PAPER_VALIDATION:
        paper = f"the paper's protocol validates on {PAPER_VALIDATION} of the training part"
        raise ConfigError(f"{paper}, not {train.validation}; --protocol plain leaves that free")
    parts = list(protocol.splits or ())
    if protocol.splits is None:
        for number, (rest, tested) in enumerate(fold_numbers(graphs, protocol.folds, train.seed), start=1):
            both = split_off_validation(graphs, rest, train.validation, derived(train.seed, number))
            parts.append(Split(*both, tested))
    elif (last := max(int(numbers.max()) for fold in parts for numbers in fold)) >= len(graphs):
        raise DataError(f"the given splits name graph {last}, counted from 0; there are {len(graphs)} graphs")
    tasks, trainings = [], range(protocol.runs * protocol.restarts)
    for number, fold in enumerate(parts, start=1):
        seeds = np.array([derived(train.seed, number, training) for training in trainings]).reshape(protocol.runs, -1)
        tasks.append(FoldTask(number, *fold, tuple(map(tuple, seeds.tolist()))))
    return tasks


def split_off_validation(graphs: Graphs, numbers: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """These graphs without a share of them, and the share: classes in equal parts, groups never torn apart."""
    learned, validation = split_off(graphs[numbers], share, seed)
    return numbers[learned], numbers[validation]


def fold_numbers(graphs: Graphs, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """The graphs to train on and those to test on, for every fold."""
    from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

    assert graphs.target is not None
    stratify = not graphs.targets and graphs.is_classification  # several targets have no classes in common
    classes = graphs.target if stratify else np.zeros(len(graphs), np.int64)
    group, what = graphs.group, "graphs" if graphs.group is None else "groups of graphs"
    for number in np.unique(classes):
        of_class = classes == number
        found = int(of_class.sum()) if group is None else len(np.unique(group[of_class]))
        whose = f"class {graphs.class_names[int(number)]!r} has" if stratify else "there are"
        rule(found >= folds, f"{whose} {found} {what}, too few for {folds} folds; --folds {max(found, 2)} at most")
    kind = StratifiedGroupKFold if group is not None else StratifiedKFold if stratify else KFold
    draw: Any = kind(n_splits=folds, shuffle=True, random_state=derived(seed))
    numbers: list[tuple[Ints, Ints]] = list(draw.split(classes, classes, group))
    if not all(len(tested) for _, tested in numbers):
        raise DataError(f"the groups are too unequal for {folds} folds: one would have no graph to test")
    return numbers


def derived(*numbers: int) -> int:
    """A seed that follows from others."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def digest_of_folds(tasks: Sequence[FoldTask]) -> str:
    """Which graphs each fold tests, in short: scores are paired only where this is the same."""
    return hashlib.sha256(json.dumps([task.tested.tolist() for task in tasks]).encode()).hexdigest()[:16]
