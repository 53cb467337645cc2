"""What is typed, ``width=32,64`` -> an axis of the grid; axes -> the settings to try, all of them or some drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import ConfigError

FIXED = {
    "seed": "the best of several seeds says nothing of a setting; --restarts trains each more often",
    "device": "it changes no score",
    "validation": "all settings must be judged by the same graphs; --validation holds for the whole sweep",
}
"""Fields that a sweep does not go over, and why."""
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


def changed(model: ModelConfig, train: TrainConfig) -> dict[str, Any]:
    """The settings that are not at their usual values."""
    usual = asdict(ModelConfig()) | asdict(TrainConfig())
    found = asdict(model) | asdict(train)
    return {name: value for name, value in found.items() if value != usual[name] and name != "device"}


def flags(settings: dict[str, Any]) -> str:
    """Settings as they are typed for ``egocnn train``."""
    words = []
    for name, value in settings.items():
        flag = name.replace("_", "-")
        words.append(f"--{'' if value else 'no-'}{flag}" if isinstance(value, bool) else f"--{flag} {value}")
    return " ".join(words)


def parse_axis(text: str) -> Axis:
    """``learning_rate=1e-3,3e-4`` -> the axis; an error says what would be one."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    types = get_type_hints(ModelConfig) | get_type_hints(TrainConfig)
    if not equals:
        raise ConfigError(f"--over takes a field and its values, width=32,64 say, got {text!r}")
    if name in FIXED:
        raise ConfigError(f"--over {name}: {FIXED[name]}")
    if name not in types:
        known = sorted(types.keys() - FIXED)
        hint = "".join(f"did you mean {near}? " for near in get_close_matches(name, known, 1))
        raise ConfigError(f"--over: no setting is called {name!r}; {hint}there are {', '.join(known)}")
    found = tuple(_value(name, word.strip(), types[name]) for word in values.split(","))
    if twice := [shown(value) for number, value in enumerate(found) if value in found[:number]]:
        raise ConfigError(f"--over {name}: {twice[0]} is given twice")
    return Axis(name, found)


def draw_settings(
    axes: Sequence[Axis], model: ModelConfig, train: TrainConfig, *, sample: int | None = None, seed: int = 0
) -> list[GridPoint]:
    """Every combination, or ``sample`` of them drawn by the seed, no two alike; all else is as given."""
    names = [axis.name for axis in axes]
    if not axes:
        raise ConfigError("a sweep needs something to go over: --over width=32,64,128 say")
    if again := [name for number, name in enumerate(names) if name in names[:number]]:
        raise ConfigError(f"--over {again[0]} is given twice; name all its values in one, with commas between")
    if sample is not None and sample < 1:
        raise ConfigError(f"sample must be at least 1, got {sample}")
    total = math.prod(len(axis.values) for axis in axes)
    numbers: Sequence[int] = range(total)
    if sample is not None and sample < total:
        numbers = sorted(random.Random(seed).sample(numbers, sample))
    return [_point(axes, number, model, train) for number in numbers]


def _point(axes: Sequence[Axis], number: int, model: ModelConfig, train: TrainConfig) -> GridPoint:
    """The combination of this number, the last axis changing fastest."""
    places = np.unravel_index(number, [len(axis.values) for axis in axes])
    values = tuple((axis.name, axis.values[at]) for axis, at in zip(axes, places, strict=True))
    own = {field.name for field in fields(ModelConfig)}
    of_model, of_training = (
        {name: each for name, each in values if (name in own) == is_own} for is_own in (True, False)
    )
    try:
        return GridPoint(values, replace(model, **of_model), replace(train, **of_training))
    except ConfigError as error:
        raise ConfigError(f"--over, {in_words(values)}: {error}") from None


def _value(name: str, word: str, annotation: Any) -> Any:
    """A word that was typed as a value of the field's type."""
    kinds = get_args(annotation)
    words = tuple(each for kind in kinds for each in (get_args(kind) or (kind,)) if isinstance(each, str))
    is_switch = annotation is bool or bool in kinds
    if is_switch and word in SWITCH:
        return SWITCH[word]
    if word in words:
        return word
    if is_switch or words:
        wanted = " or ".join(("yes", "no", *words)) if is_switch else f"one of {', '.join(words)}"
        hint = "".join(f"; did you mean {near}?" for near in get_close_matches(word, words, 1))
        raise ConfigError(f"--over {name}: {word!r} is not {wanted}{hint}")
    try:
        return float(word) if annotation is float else int(word)
    except ValueError:
        wanted = "a number" if annotation is float else "a whole number"
        raise ConfigError(f"--over {name}: {word!r} is not {wanted}") from None
