"""What is typed, ``width=32,64`` -> an axis of the grid; axes -> the settings to try, all of them or some drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, get_args, get_type_hints

from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import ConfigError

FIXED = {
    "seed": "the best of several seeds says nothing of a setting; --restarts trains each more often",
    "device": "it changes no score",
    "validation": "all settings must be judged by the same graphs; --validation holds for the whole sweep",
}
"""Fields that a sweep does not go over, and why."""
SWITCH = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of the settings and the values to try."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid."""

    said: tuple[tuple[str, Any], ...]
    """fields of the grid and their values, in the order of the axes"""
    model: ModelConfig
    train: TrainConfig

    @property
    def words(self) -> str:
        return ", ".join(f"{name} {shown(value)}" for name, value in self.said)


def shown(value: Any) -> str:
    """As it is typed after ``--over``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else f"{value}"


def changed(model: ModelConfig, train: TrainConfig) -> dict[str, Any]:
    """The settings that are not at their usual values."""
    found: dict[str, Any] = {}
    for config in (model, train):
        usual = asdict(type(config)())
        found |= {name: value for name, value in asdict(config).items() if value != usual[name]}
    return {name: value for name, value in found.items() if name != "device"}


def flags(said: dict[str, Any]) -> str:
    """Settings as they are typed for ``egocnn train``."""
    words = []
    for name, value in said.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{flag}")
        else:
            words.append(f"--{flag} {','.join(map(str, value)) if isinstance(value, (tuple, list)) else value}")
    return " ".join(words)


def parse_axis(text: str) -> Axis:
    """``learning_rate=1e-3,3e-4`` -> the axis; a line that helps where it is none."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    types = _types()
    if not equals:
        raise ConfigError(f"--over takes a field and its values, width=32,64 say, got {text!r}")
    if name in FIXED:
        raise ConfigError(f"--over {name}: {FIXED[name]}")
    if name not in types:
        near = get_close_matches(name, types, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(f"--over: no setting is called {name!r}; {hint}there are {', '.join(sorted(types))}")
    found = tuple(_value(name, word.strip(), types[name]) for word in values.split(","))
    twice = [shown(value) for number, value in enumerate(found) if value in found[:number]]
    if twice:
        raise ConfigError(f"--over {name}: {twice[0]} is given twice")
    return Axis(name, found)


def draw_settings(
    axes: Sequence[Axis], model: ModelConfig, train: TrainConfig, *, sample: int | None = None, seed: int = 0
) -> list[Setting]:
    """Every combination, or ``sample`` of them drawn by the seed, no two alike; all else is as given."""
    names = [axis.name for axis in axes]
    if not axes:
        raise ConfigError("a sweep needs something to go over: --over width=32,64,128 say")
    if len(set(names)) < len(names):
        again = next(name for number, name in enumerate(names) if name in names[:number])
        raise ConfigError(f"--over {again} is given twice; name all its values in one, with commas between")
    if sample is not None and sample < 1:
        raise ConfigError(f"sample must be at least 1, got {sample}")
    total = math.prod(len(axis.values) for axis in axes)
    numbers: Sequence[int] = range(total)
    if sample is not None and sample < total:
        numbers = sorted(random.Random(seed).sample(numbers, sample))
    return [_setting(axes, number, model, train) for number in numbers]


def _setting(axes: Sequence[Axis], number: int, model: ModelConfig, train: TrainConfig) -> Setting:
    """The combination of this number, the last axis changing fastest."""
    said: list[tuple[str, Any]] = []
    for axis in reversed(axes):
        number, at = divmod(number, len(axis.values))
        said.insert(0, (axis.name, axis.values[at]))
    own = {field.name for field in fields(ModelConfig)}
    try:
        return Setting(
            tuple(said),
            replace(model, **{name: value for name, value in said if name in own}),
            replace(train, **{name: value for name, value in said if name not in own}),
        )
    except ConfigError as error:
        where = ", ".join(f"{name} {shown(value)}" for name, value in said)
        raise ConfigError(f"--over, {where}: {error}") from None


def _types() -> dict[str, Any]:
    """Every field that may be swept, and what it holds."""
    found = {**get_type_hints(ModelConfig), **get_type_hints(TrainConfig)}
    return {name: kind for name, kind in found.items() if name not in FIXED}


def _value(name: str, word: str, annotation: Any) -> Any:
    kinds = get_args(annotation)
    words = tuple(each for kind in (kinds or ()) for each in (get_args(kind) or (kind,)) if isinstance(each, str))
    if annotation is bool or bool in kinds:
        if word in SWITCH:
            return SWITCH[word]
        wanted = " or ".join(("yes", "no", *words))
    elif words:
        wanted = f"one of {', '.join(words)}"
    elif annotation is float:
        return _number(float, word, name, "a number")
    else:
        several = int in kinds and "x" in word
        wanted = "a whole number, or one per layer (128x64x32)" if int in kinds else "a whole number"
        numbers = tuple(_number(int, part, name, wanted) for part in word.split("x")) if several else ()
        return numbers or _number(int, word, name, wanted)
    if word in words:
        return word
    near = get_close_matches(word, words, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"--over {name}: {word!r} is not {wanted}{hint}")


def _number(kind: type[int] | type[float], word: str, name: str, wanted: str) -> int | float:
    try:
        return kind(word)
    except ValueError:
        raise ConfigError(f"--over {name}: {word!r} is not {wanted}") from None
