"""What is typed, ``width=32,64`` -> an axis of the grid; axes -> the settings to try; their scores -> a table."""

import math
import random
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

from egocnn.config import ModelConfig, TrainConfig, check_value
from egocnn.data.sources.text import one_line
from egocnn.errors import ConfigError, rule
from egocnn.files import csv_text
from egocnn.train.metrics import in_words as score_in_words

DIVERGED = "diverged"
FIXED = {  # fields that a sweep does not go over, and why
    "seed": "the best of several seeds says nothing of a setting; --restarts trains each more often",
    "device": "it changes no score",
    "validation": "all settings must be judged by the same graphs; --validation holds for the whole sweep",
}
SWITCH = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


class Axis(NamedTuple):
    """A field of the settings and the values to try."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One point of the grid."""

    values: tuple[tuple[str, Any], ...]  # fields of the grid and their values, in the order of the axes
    model: ModelConfig
    train: TrainConfig


def in_words(values: Iterable[tuple[str, Any]]) -> str:
    """``width 8, depth 2``"""
    return ", ".join(f"{name} {shown(value)}" for name, value in values)


def shown(value: Any) -> str:
    """As it is typed after ``--over``."""
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value}"


def changed(*configs: Any) -> dict[str, Any]:
    """The settings that are not at their usual values."""
    every = ((asdict(config), asdict(type(config)())) for config in configs)
    return {n: value for found, usual in every for n, value in found.items() if value != usual[n] and n != "device"}


def flags(settings: dict[str, Any]) -> str:
    """Settings as they are typed for ``egocnn train``."""
    words = []
    for name, value in settings.items():
        flag = name.replace("_", "-")
        is_switch = isinstance(value, bool)
        joint = "=" if str(value).startswith("-") else " "  # a value like an option must not be taken for one
        words.append(f"--{'' if value else 'no-'}{flag}" if is_switch else f"--{flag}{joint}{shlex.quote(str(value))}")
    return " ".join(words)


def parse_axis(text: str) -> Axis:
    """``learning_rate=1e-3,3e-4`` -> the axis; an error says what would be one."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    types = get_type_hints(ModelConfig) | get_type_hints(TrainConfig)
    rule(equals, f"--over takes a field and its values, width=32,64 say, got {text!r}", ConfigError)
    if name in FIXED:
        raise ConfigError(f"--over {name}: {FIXED[name]}")
    if name not in types:
        known = sorted(types.keys() - FIXED)
        hint = "".join(f"did you mean {near}? " for near in get_close_matches(name, known, 1))
        raise ConfigError(f"--over: no setting is called {name!r}; {hint}there are {', '.join(known)}")
    found = tuple(_value(word.strip(), types[name]) for word in values.split(","))
    for value in found:
        try:
            (ModelConfig if hasattr(ModelConfig, name) else TrainConfig)(**{name: value})
        except ConfigError as error:
            raise ConfigError(f"--over: {error}") from None
    if twice := [shown(value) for number, value in enumerate(found) if value in found[:number]]:
        raise ConfigError(f"--over {name}: {twice[0]} is given twice")
    return Axis(name, found)


def draw_settings(
    axes: Sequence[Axis], model: ModelConfig, train: TrainConfig, *, sample: int | None = None, seed: int = 0
) -> list[GridPoint]:
    """Every combination, or ``sample`` of them drawn by the seed, no two alike; all else is as given."""
    names = [axis.name for axis in axes]
    rule(axes, "a sweep needs something to go over: --over width=32,64,128 say", ConfigError)
    if again := [name for number, name in enumerate(names) if name in names[:number]]:
        raise ConfigError(f"--over {again[0]} is given twice; name all its values in one, with commas between")
    check_value("sample", sample, "int | None")
    sizes = [len(axis.values) for axis in axes]
    numbers: Sequence[int] = range(math.prod(sizes))
    if sample is not None and sample < len(numbers):
        numbers = sorted(random.Random(seed).sample(numbers, sample))
    places = (np.unravel_index(number, sizes) for number in numbers)  # the last axis changes fastest
    several = (zip(axes, place, strict=True) for place in places)
    return [_point([(axis.name, axis.values[at]) for axis, at in each], model, train) for each in several]


def _point(values: list[tuple[str, Any]], model: ModelConfig, train: TrainConfig) -> GridPoint:
    own = {field.name for field in fields(ModelConfig)}
    of_model = {name: each for name, each in values if name in own}
    of_training = {name: each for name, each in values if name not in own}
    return GridPoint(tuple(values), replace(model, **of_model), replace(train, **of_training))


def _value(word: str, annotation: Any) -> Any:
    """What is typed, as a field of this type holds it; a word that is no such value is left to the record to refuse."""
    if annotation is bool or bool in get_args(annotation):
        return SWITCH.get(word, word)
    if annotation in (int, float):
        with suppress(ValueError):
            return annotation(word)
    return word


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """One setting on one fold, judged by graphs that are not the fold's test graphs."""

    fold: int  # from 1
    score: float | None  # accuracy, R², or another that was asked for; None: the training diverged
    parameters: int | None
    seconds: float
    targets: dict[str, float] = field(default_factory=dict)  # of several the score of each, whose mean ``score`` is


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting on all folds."""

    rank: int  # from 1, the best first
    setting: dict[str, Any]
    mean: float | None  # None where a training diverged
    std: float | None  # of the folds around their mean (n - 1)
    seconds: float  # of all folds together, also of those that ran at the same time
    parameters: int | None
    scores: tuple[float | None, ...]
    targets: dict[str, float] = field(default_factory=dict)  # of several the mean of each over the folds


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All settings in order of merit, with what is needed to judge and to repeat it."""

    data: str
    protocol: str
    folds: int
    restarts: int
    score: str  # what is measured: accuracy, r2, or another that was asked for
    over: dict[str, list[Any]]
    sampled: int | None  # settings drawn from the grid; None: all of it
    rows: tuple[Row, ...]
    chosen: dict[str, Any]  # all settings of the best row, ``model`` and ``train``
    flags: str  # the same as typed for ``egocnn train``; what is at its usual value is left out
    test: dict[str, Any] | None  # mean, std, interval of the chosen setting on the test folds; None: not looked at
    seed: int
    seconds: float  # of all trainings together
    command: str
    date: str
    machine: str
    versions: dict[str, str]

    def lines(self) -> Iterator[str]:
        """A table for a terminal."""
        names = (name.replace("_", " ") for name in self.over)
        targets = self.rows[0].targets
        own = (one_line(name, 30) for name in targets)
        header = ["", *names, f"validation {score_in_words(self.score)}", *own, "seconds", "parameters"]
        table = [header]
        for row in self.rows:
            spread = "" if row.std is None else f" ± {row.std:.4f}"
            score = DIVERGED if row.mean is None else f"{row.mean:.4f}{spread}"
            size = "" if row.parameters is None else f"{row.parameters:,}"
            own = (f"{row.targets[name]:.4f}" if name in row.targets else "" for name in targets)
            table.append([f"{row.rank}", *map(shown, row.setting.values()), score, *own, f"{row.seconds:.1f}", size])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            yield "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        best = self.rows[0]
        if best.mean is None:
            yield "Every setting diverged; try smaller learning rates."
            return
        drawn = "" if self.sampled is None else " drawn"
        yield f"Best of {len(self.rows)}{drawn} settings over {self.folds} folds: {in_words(best.setting.items())}."
        if self.test is None:
            yield "The best of many is flattered by the choice; --test-chosen gives its one look at the test folds."
        else:
            low, high = self.test["interval"]
            found = f"{self.test['mean']:.4f} ± {self.test['std']:.4f}"
            yield f"On the test folds: {found} (95% interval of the mean: {low:.4f} to {high:.4f})."
        yield f"Train with it: egocnn train {shlex.quote(self.data)} -o RUN {self.flags}"

    def csv(self) -> str:
        """The table, unrounded."""
        last, targets = ("mean", "std", "seconds", "parameters"), tuple(self.rows[0].targets)
        rows = []
        for row in self.rows:
            settings = (shown(row.setting[name]) for name in self.over)
            of_each = (row.targets.get(name) for name in targets)
            rows.append([row.rank, *settings, *(getattr(row, name) for name in last), *of_each])
        return csv_text([("rank", *self.over, *last, *(f"{name} mean" for name in targets)), *rows])


def ranked(
    points: Sequence[GridPoint], scores: Sequence[Sequence[PairScore]], *, lower: bool = False
) -> list[tuple[GridPoint, Row]]:
    """The best (``lower``: lowest) mean first, of equals the smaller, then in order of the grid; diverged ones last."""
    rows: list[tuple[GridPoint, Row]] = []
    for point, several in zip(points, scores, strict=True):
        own = sorted(several, key=lambda each: each.fold)
        known = [each.score for each in own if each.score is not None]
        is_whole = len(known) == len(own)
        row = Row(
            rank=0,
            setting=dict(point.values),
            mean=float(np.mean(known)) if is_whole else None,
            std=float(np.std(known, ddof=1)) if is_whole and len(known) > 1 else None,
            seconds=sum(each.seconds for each in own),
            parameters=max((each.parameters for each in own if each.parameters is not None), default=None),
            scores=tuple(each.score for each in own),
            targets={name: float(np.mean([each.targets[name] for each in own])) for name in own[0].targets if is_whole},
        )
        rows.append((point, row))
    sign = 1 if lower else -1
    rows.sort(key=lambda pair: (pair[1].mean is None, sign * (pair[1].mean or 0.0), pair[1].parameters or 0))
    return [(point, replace(row, rank=rank)) for rank, (point, row) in enumerate(rows, start=1)]
