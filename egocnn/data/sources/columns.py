"""The fields of each graph besides its structure -> columns of Graphs: name, target, split, group.

Targets are classes or real values: what a file holds decides, unless the settings do.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import ReadConfig, Task
from egocnn.data.arrays import LARGEST, Ints
from egocnn.data.schema import PARTS
from egocnn.data.sources.text import check_texts, listed, short
from egocnn.errors import DataError, MissingColumnError

TARGET_FIELDS = ("target", "label", "class", "y")
NAME_FIELDS = ("name", "id")
PART_WORDS = {
    **dict.fromkeys(("train", "training"), PARTS.index("train")),
    **dict.fromkeys(("validation", "valid", "val", "dev"), PARTS.index("validation")),
    **dict.fromkeys(("test",), PARTS.index("test")),
}
MOST_CLASSES = 20  # more distinct whole numbers than this are taken for values to predict

log = logging.getLogger("egocnn")

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,300}", re.ASCII)


@dataclass(slots=True)
class GraphFields:
    """The fields of the graphs of one source besides their structure, collected while the graphs are read one by one.

    ``typed`` fields distinguish the number 1 from the text 1, which those of a CSV cannot.
    """

    where: str
    config: ReadConfig
    typed: bool = True
    places: list[str] = field(default_factory=list)  # for error messages
    names: list[str] = field(default_factory=list)  # of graphs without a name: the numbers of their lines or rows
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    smiles: list[Any] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)  # of molecules: copies of one molecule share a number
    available: dict[str, None] = field(default_factory=dict)

    def add(self, place: str, name: str, row: Mapping[str, Any], smiles: Any = None) -> None:
        """Add one graph; of its fields only those are stored that may be read: a table may have a thousand others."""
        config = self.config
        named = (config.name, config.target, config.split, config.group)
        self.places.append(place)
        self.names.append(name)
        self.rows.append({k: v for k, v in row.items() if k in named or k.lower() in (*NAME_FIELDS, *TARGET_FIELDS)})
        self.smiles.append(smiles)
        self.available.update(dict.fromkeys(row))

    def columns(self) -> dict[str, Any]:
        """Names, target, class_names, part, group and smiles of Graphs, once all graphs are added."""
        config, available = self.config, list(self.available)
        name = choose_field(available, config.name, NAME_FIELDS, self.where)
        target = choose_field(available, config.target, TARGET_FIELDS, self.where)
        split = choose_field(available, config.split, (), self.where)
        group = choose_field(available, config.group, (), self.where)
        columns: dict[str, Any] = {"names": tuple(self.names)}
        if name is not None:
            columns["names"] = tuple(own or other for own, other in zip(self._texts(name), self.names, strict=True))
        if target is not None:
            values = [row.get(target) for row in self.rows] if self.typed else self._texts(target)
            encode = encode_values if self.typed else encode_targets
            columns["target"], columns["class_names"] = encode(values, config.task, self.where, self.places)
        if split is not None:
            columns["part"] = encode_parts(self._texts(split), self.places)
        if group is not None:
            columns["group"] = encode_groups(self._texts(group))
        elif self.groups:
            columns["group"] = np.array(self.groups, np.int64)
        if self.smiles and all(isinstance(text, str) for text in self.smiles):
            columns["smiles"] = tuple(self.smiles)
        for kind in ("names", "smiles", "class_names"):
            check_texts(self.where, columns.get(kind, ()))
        return columns

    def _texts(self, name: str) -> list[str]:
        return ["" if (value := row.get(name)) is None else str(value).strip() for row in self.rows]


def choose_field(available: Sequence[str], wanted: str | None, defaults: Sequence[str], where: str) -> str | None:
    """The field that the user named, else the first of the defaults that there is, in capitals or not."""
    there_are = f"there are {listed(available)}" if available else "there are none"
    if wanted is not None:
        if wanted not in available:
            raise MissingColumnError(f"{where}: no column or field is called {short(wanted)}; {there_are}")
        return wanted
    for default in defaults:
        found = [default] if default in available else [name for name in available if name.lower() == default]
        if len(found) > 1:
            raise DataError(f"{where}: {' and '.join(found)} differ only in capitals; say which one to use")
        if found:
            return found[0]
    return None


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas has for them."""
    is_nan = isinstance(value, (float, np.floating)) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def encode_labels(values: Sequence[str | None]) -> tuple[Ints, tuple[str, ...]]:
    """Labels -> their positions in the sorted list of names, and that list; None, a label not known, is -1."""
    names = sort_names([name for name in dict.fromkeys(values) if name is not None])
    position: dict[str | None, int] = {name: number for number, name in enumerate(names)}
    position[None] = -1
    return np.fromiter((position[value] for value in values), np.int32, len(values)), names


def encode_parts(values: Sequence[str], places: Sequence[str]) -> Ints:
    """Words for training, validation and test -> positions in ``PARTS``."""
    codes = np.empty(len(values), np.int64)
    for row, (value, place) in enumerate(zip(values, places, strict=True)):
        part = PART_WORDS.get(value.strip().lower())
        if part is None:
            raise DataError(f"{place}: split {short(value)} must be one of {', '.join(PARTS)}")
        codes[row] = part
    return codes


def encode_groups(values: Sequence[str]) -> Ints:
    """Equal texts get one number; a graph with an empty text is a group of its own."""
    number: dict[object, int] = {}
    keys: list[object] = [value.strip() or row for row, value in enumerate(values)]
    return np.array([number.setdefault(key, len(number)) for key in keys], np.int64)


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
    if task == "classification" or (task == "auto" and _look_like_classes(known)):
        target, names = _encode_classes(texts)
        shown = listed(names[:5]) + (", ..." if len(names) > 5 else "")
        guess = f"{len(names)} classes to predict ({shown}); --task regression for numbers"
    else:
        target, names = _encode_numbers(texts, where, places), ()
        guess = "numbers to predict; --task classification for classes"
    if task == "auto":
        log.info("%s: %s", where, guess)
    return target, names


def encode_values(
    values: Sequence[object], task: Task, where: str, places: Sequence[str]
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Values with a type -> as :func:`encode_targets`, which alone judges whole numbers.

    Left to itself (``task="auto"``), a text or a boolean is a class and a number with a point a value to predict.
    """
    texts = [_target_text(value, place) for value, place in zip(values, places, strict=True)]
    if task == "auto":
        if any(isinstance(value, (str, bool, np.bool_)) for value in values):
            task = "classification"
        elif any(isinstance(value, (float, np.floating)) for value in values):
            task = "regression"
    return encode_targets(texts, task, where, places)


def _target_text(value: object, place: str) -> str | None:
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
        place = f"{where}, row {row + 1}" if places is None else places[row]
        if number is None:
            raise DataError(f"{place}: target {short(text)} is not a finite number; leave unknown values empty")
        if abs(number) > LARGEST:
            raise DataError(f"{place}: target {short(text)} is too large; at most {LARGEST:.2g} is read: rescale them")
        numbers[row] = number
    return numbers
