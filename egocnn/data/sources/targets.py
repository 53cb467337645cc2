"""What is to be predicted, as it stands in a file -> classes or numbers: values -> target, class_names."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import Task
from egocnn.data.arrays import LARGEST
from egocnn.data.sources.text import listed, short
from egocnn.errors import DataError

MOST_CLASSES = 20  # More distinct whole numbers than this are taken for values to predict.

log = logging.getLogger("egocnn")

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,300}", re.ASCII)


def encode_targets(
    values: Sequence[str | None], task: Task, where: str, places: Sequence[str] | None = None
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Texts -> (class numbers, class names), or (real values, ()); without a single value (None, ()).

    None and empty texts are missing: class -1, value NaN. ``task="auto"`` reads classes where a text is not a
    number, where all are whole and only two differ, and where all are whole with at most 20 different ones and fewer
    than half as many as there are graphs; anything else is to be predicted as a number. Numbers that are equal
    name one class, however they are written; classes are sorted by number where all are numbers, else by name.
    ``places`` says where each value stands, for error messages (default: row 1, 2, ... of ``where``).
    """
    texts = [None if value is None or not value.strip() else value.strip() for value in values]
    known = [text for text in texts if text is not None]
    if not known:
        return None, ()
    as_classes = task == "classification" or (task == "auto" and _look_like_classes(known))
    if as_classes:
        target, class_names = _encode_classes(texts)
    else:
        target, class_names = _encode_numbers(texts, where, places), ()
    if task == "auto":
        _say_what_was_guessed(where, class_names)
    return target, class_names


def encode_values(
    values: Sequence[object], task: Task, where: str, places: Sequence[str]
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Values with a type -> as :func:`encode_targets`, which alone judges whole numbers.

    Left to itself (``task="auto"``), a text or a boolean is a class and a number with a point a value to predict.
    """
    texts = [target_text(value, place) for value, place in zip(values, places, strict=True)]
    if task == "auto":
        if any(isinstance(value, (str, bool, np.bool_)) for value in values):
            task = "classification"
        elif any(isinstance(value, (float, np.floating)) for value in values):
            task = "regression"
    return encode_targets(texts, task, where, places)


def target_text(value: object, place: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    raise DataError(f"{place}: target {short(value)} must be a text or a number")


def sort_names(names: Sequence[str]) -> tuple[str, ...]:
    """By number where all are numbers, else by name."""
    if all(_number(name) is not None for name in names):
        return tuple(sorted(names, key=lambda name: (_number(name), name)))
    return tuple(sorted(names))


def _number(text: str) -> float | None:
    """The finite number that the text spells; whole numbers exactly."""
    if _INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _look_like_classes(texts: Sequence[str]) -> bool:
    distinct = set(texts)
    if not all(_NUMBER.fullmatch(text) for text in distinct):
        return True
    numbers = {_number(text) for text in distinct}
    if not all(number is not None and number == int(number) for number in numbers):
        return False
    return len(numbers) <= 2 or (len(numbers) <= MOST_CLASSES and 2 * len(numbers) < len(texts))


def _encode_classes(texts: Sequence[str | None]) -> tuple[NDArray[Any], tuple[str, ...]]:
    distinct = sorted({text for text in texts if text is not None})
    if all(_number(text) is not None for text in distinct):
        spellings: dict[float | None, list[str]] = {}
        for text in distinct:
            spellings.setdefault(_number(text), []).append(text)
        # 1 and 1.0 must mean the same class in the file of today and in that of tomorrow
        name_of = {
            text: min((re.sub(r"(?<=\d)\.0*$", "", other) for other in same), key=lambda name: (len(name), name))
            for same in spellings.values()
            for text in same
        }
    else:
        name_of = {text: text for text in distinct}
    class_names = sort_names(sorted(set(name_of.values())))
    position = {name: number for number, name in enumerate(class_names)}
    codes = [-1 if text is None else position[name_of[text]] for text in texts]
    return np.array(codes, np.int64), class_names


def _encode_numbers(texts: Sequence[str | None], where: str, places: Sequence[str] | None) -> NDArray[Any]:
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if text is None:
            continue
        number = _number(text)
        if number is None:
            place = f"{where}, row {row + 1}" if places is None else places[row]
            raise DataError(f"{place}: target {short(text)} is not a finite number; leave unknown values empty")
        if abs(number) > LARGEST:
            place = f"{where}, row {row + 1}" if places is None else places[row]
            raise DataError(f"{place}: target {short(text)} is too large; at most {LARGEST:.2g} is read: rescale them")
        numbers[row] = number
    return numbers


def _say_what_was_guessed(where: str, class_names: tuple[str, ...]) -> None:
    if class_names:
        shown = listed(class_names[:5]) + (", ..." if len(class_names) > 5 else "")
        log.info("%s: %d classes to predict (%s); --task regression for numbers", where, len(class_names), shown)
    else:
        log.info("%s: numbers to predict; --task classification for classes", where)
