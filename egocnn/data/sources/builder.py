"""Fields of graphs that are given one at a time -> their names, targets, splits and groups, as columns of Graphs."""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from egocnn.config import IF_THERE, ReadConfig, Task, split_names
from egocnn.data.arrays import LARGEST, Ints
from egocnn.data.schema import PARTS, rule
from egocnn.data.sources.text import listed, one_line, short
from egocnn.errors import DataError, MissingColumnError

MOST_INVALID = 0.05  # share of the rows of a file that may be left out without being asked
MOST_NUMBERS = 0.95  # a column with this share of numbers, or more, holds values to predict
UNKNOWN = ("?", "<na>", "#n/a", "#na", "#value!", "#div/0!", "#num!", "#ref!", "#name?", "#null!")
MISSING = ("", "na", "n/a", "nan", "null", "none", "-", *UNKNOWN)  # how tables say that a value is not known
AMONG_NUMBERS = (".", "..", "--", "n.a.", "nd", "n.d.", "n/d", *UNKNOWN)
"""The same where all else in the column are numbers: SAS, R and assays; elsewhere a class."""
TARGET_FIELDS = ("target", "label", "class", "y")
NAME_FIELDS = ("name", "id")
PART_WORDS = {"training": "train", "valid": "validation", "val": "validation", "dev": "validation"}
MOST_CLASSES = 20  # more distinct whole numbers than this are taken for values to predict
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
INTEGER = re.compile(r"[+-]?\d{1,300}", re.ASCII)
BOUND = re.compile(rf"(>|<|>=|<=|≥|≤|~)\s*({NUMBER.pattern})", re.ASCII | re.IGNORECASE)  # beyond an assay's range

log = logging.getLogger("egocnn")

SkippedRow: TypeAlias = tuple[int, str, str]  # number, SMILES if it is a text, and why it has no graph


@dataclass(slots=True)
class GraphFields:
    """The fields of the graphs of one source besides their structure, collected while the graphs are read one by one.

    ``typed`` fields distinguish the number 1 from the text 1, which those of a CSV cannot."""

    where: str
    config: ReadConfig
    typed: bool = True
    places: list[str] = field(default_factory=list)  # for error messages
    names: list[str] = field(default_factory=list)  # of graphs without a name: the numbers of their lines or rows
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    smiles: list[Any] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)  # of molecules: copies of one molecule share a number
    available: dict[str, None] = field(default_factory=dict)
    skipped: list[SkippedRow] = field(default_factory=list)  # invalid rows
    first_error: DataError | None = None  # of these
    way_out: str = ""  # how to leave out however many of them, for the error
    lenient: bool = False  # whether a target that is not a number where numbers are predicted counts as unknown

    def add(self, place: str, name: str, row: Mapping[str, Any], smiles: Any = None) -> None:
        """Add one graph; of its fields only those are stored that may be read: a table may have a thousand others."""
        config = self.config
        named = (config.name, config.target, *split_names(config.target), config.split, config.group)
        self.places.append(place)
        self.names.append(name)
        self.rows.append({k: v for k, v in row.items() if k in named or k.lower() in (*NAME_FIELDS, *TARGET_FIELDS)})
        self.smiles.append(smiles)
        self.available.update(dict.fromkeys(row))

    def skip(self, place: str, number: int, smiles: object, error: DataError) -> None:
        """Note an invalid row and why it has no graph, or raise that where the settings are strict."""
        self.first_error = self.first_error or DataError(f"{place}: {error}")
        self.skipped.append((number, smiles if isinstance(smiles, str) else "", one_line(str(error))))
        if self.config.strict:
            self._refuse()

    def conclude(self, what: str) -> None:
        """Once all rows are read: log how many are left out, or raise the first error where they are too many, or where
        nothing is left of what they are called."""
        left_out, every = len(self.skipped), len(self.skipped) + len(self.places)
        if not self.config.skip_invalid and left_out > MOST_INVALID * every:
            self._refuse()
        if self.first_error is not None:
            count = f"{left_out} of {every} rows left out"
            log.warning("%s: %s; the first is %s", one_line(self.where), count, one_line(str(self.first_error)))
        why = f"; the first is {self.first_error}" if self.skipped else ""
        rule(self.places, f"{self.where}: no {what} in it{why}")

    def _refuse(self) -> NoReturn:
        raise DataError(f"{self.first_error}{self.way_out}") from None

    def columns(self) -> dict[str, Any]:
        """Names, target, class_names, part, group and smiles of Graphs, once all graphs are added."""
        config, available = self.config, list(self.available)
        targets, is_several = choose_targets(available, config.target, self.where)
        wanted = ((config.name, NAME_FIELDS), (config.split, ()), (config.group, ()))
        name, split, group = (choose_field(available, one, usual, self.where) for one, usual in wanted)
        columns: dict[str, Any] = {"names": tuple(self.names)}
        if name is not None:
            columns["names"] = tuple(own or other for own, other in zip(self._texts(name), self.names, strict=True))
        encoded = {target: self._encoded(target, several=is_several) for target in targets}
        if is_several:
            found = {one: (values, names) for one, (values, names) in encoded.items() if values is not None}
            several = [np.where(values < 0, np.nan, values) if names else values for values, names in found.values()]
            columns["target"] = np.stack(several, axis=1).astype(np.float64) if several else None
            columns["targets"] = tuple((one, names) for one, (_, names) in found.items())
            if config.task == "auto":
                log.info("%s: %s", one_line(self.where), _told_kinds(columns["targets"]))
        elif targets:
            columns["target"], columns["class_names"] = encoded[targets[0]]
        if split is not None:
            columns["part"] = encode_parts(self._texts(split), self.places)
        if group is not None or self.groups:
            columns["group"] = np.array(self.groups, np.int64) if group is None else encode_groups(self._texts(group))
        if self.smiles and all(isinstance(text, str) for text in self.smiles):
            columns["smiles"] = tuple(self.smiles)
        return columns

    def _encoded(self, target: str, *, several: bool) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
        values = [row.get(target) for row in self.rows] if self.typed else self._texts(target)
        if self.lenient:  # what is no target is not known
            is_fine = is_value if self.config.task == "regression" else is_plain
            values = [value if is_fine(value) else None for value in values]
        encode = encode_values if self.typed else encode_targets
        try:
            return encode(values, self.config.task, "" if several else self.where, self.places)
        except DataError as error:
            raise DataError(f"target {target}: {error}" if several else str(error)) from None

    def _texts(self, name: str) -> list[str]:
        return ["" if (value := row.get(name)) is None else str(value).strip() for row in self.rows]


def choose_targets(available: Sequence[str], wanted: str | None, where: str) -> tuple[list[str], bool]:
    """The fields to predict, and whether they are several, named with commas between; else it is one, or none."""
    names = [] if wanted in available else split_names(wanted)
    if len(names) < 2:
        target = choose_field(available, wanted, TARGET_FIELDS, where)
        return [] if target is None else [target], False
    if names[-1] == IF_THERE:
        return [name for name in names if name in available], True
    for name in names:
        choose_field(available, name, (), where)
    rule(len(set(names)) == len(names), f"{where}: the targets {listed(names)} name a column twice")
    return names, True


def choose_field(available: Sequence[str], wanted: str | None, defaults: Sequence[str], where: str) -> str | None:
    """The field that the user named, else the first of the defaults that there is, in capitals or not."""
    if wanted is not None and wanted not in available:
        there_are = f"there are {listed(available)}" if available else "there are none"
        raise MissingColumnError(f"{where}: no column or field is called {short(wanted)}; {there_are}")
    for default in defaults if wanted is None else ():
        found = [default] if default in available else [name for name in available if name.lower() == default]
        rule(len(found) <= 1, f"{where}: {' and '.join(found)} differ only in capitals; say which one to use")
        if found:
            return found[0]
    return wanted


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas has for them."""
    is_nan = isinstance(value, (float, np.floating)) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def encode_labels(values: Sequence[str | None]) -> tuple[Ints, tuple[str, ...]]:
    """Labels -> their positions in the sorted list of names, and that list; None, a label not known, is -1."""
    names = sort_names([name for name in dict.fromkeys(values) if name is not None])
    position: dict[str | None, int] = {None: -1, **{name: number for number, name in enumerate(names)}}
    return np.fromiter((position[value] for value in values), np.int32, len(values)), names


def encode_parts(values: Sequence[str], places: Sequence[str]) -> Ints:
    """Words for training, validation and test -> positions in ``PARTS``."""
    words = [PART_WORDS.get(word, word) for word in (value.strip().lower() for value in values)]
    for word, value, place in zip(words, values, places, strict=True):
        if word not in PARTS:
            raise DataError(f"{place}: split {short(value)} must be one of {', '.join(PARTS)}")
    return np.array([PARTS.index(word) for word in words], np.int64)


def encode_groups(values: Sequence[str]) -> Ints:
    """Equal texts get one number; a graph with an empty text is a group of its own."""
    number: dict[object, int] = {}
    keys: list[object] = [value.strip() or row for row, value in enumerate(values)]
    return np.array([number.setdefault(key, len(number)) for key in keys], np.int64)


def encode_targets(
    values: Sequence[str | None], task: Task, where: str, places: Sequence[str], missing: Sequence[str] = MISSING
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Texts -> (class numbers, class names), or (real values, ()); without a single value (None, ()).

    None and what MISSING lists are missing: class -1, value NaN; among numbers also what AMONG_NUMBERS lists.
    ``task="auto"`` reads classes where more than one text in twenty is not a number, where all are whole and only two
    differ, and where all are whole with at most 20 different ones and fewer than half as many as there are graphs;
    anything else is to be predicted as a number. Numbers that are equal name one class, however they are written;
    classes are sorted by number where all are numbers, else by name. ``where`` begins the line in the log that tells
    the guess, if any; ``places`` says where each value stands, for error messages."""
    texts = known_texts(values, missing)
    known = [text for text in texts if text is not None]
    if not known:
        return None, ()
    target: NDArray[Any]
    if task == "classification" or (task == "auto" and look_like_classes(known)):
        name_of = _class_names(sorted(set(known)))
        target, names = encode_labels([None if text is None else name_of[text] for text in texts])
        shown = listed(names[:5]) + (", ..." if len(names) > 5 else "")
        guess = f"{len(names)} classes to predict ({shown}); --task regression for numbers"
        target = target.astype(np.int64)
    else:
        pairs = [(text, place) for text, place in zip(texts, places, strict=True) if text is not None]
        _check_numbers(pairs, task)
        target = np.array([math.nan if text is None else number_of(text) for text in texts], np.float64)
        guess, names = "numbers to predict; --task classification for classes", ()
    if task == "auto" and where:
        log.info("%s: %s", one_line(where), guess)
    return target, names


def _told_kinds(targets: Sequence[tuple[str, Sequence[str]]]) -> str:
    """What several targets were taken for, those of both kinds by name."""
    values, classes = ([one for one, names in targets if bool(names) == is_class] for is_class in (False, True))
    if values and classes:
        return f"numbers to predict: {listed(values)}; classes to predict: {listed(classes)}"
    kind, way_out = ("classes", "regression for numbers") if classes else ("numbers", "classification for classes")
    return f"{len(targets)} targets are {kind}; --task {way_out}"


def encode_values(
    values: Sequence[object], task: Task, where: str, places: Sequence[str]
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Values with a type -> as :func:`encode_targets`, which alone judges whole numbers.

    Left to itself (``task="auto"``), texts and booleans are classes and a number with a point is a value to predict."""
    for value, place in zip(values, places, strict=True):
        rule(value is None or is_plain(value), f"{place}: target {short(value)} must be a text or a number")
    exact = (float(value) if isinstance(value, np.floating) else value for value in values)  # as Python writes it
    texts = [None if value is None else str(value) for value in exact]
    known = [value for value, text in zip(values, known_texts(texts), strict=True) if text is not None]
    if task == "auto":
        words = sum(isinstance(value, (str, bool, np.bool_)) for value in known)
        if words > (1 - MOST_NUMBERS) * len(known) and not _have_bounds([str(value).strip() for value in known]):
            task = "classification"
        elif any(isinstance(value, (float, np.floating)) for value in known):
            task = "regression"
    # among classes that are texts by their type, none is one like the others
    return encode_targets(texts, task, where, places, ("", "nan") if task == "classification" else MISSING)


def is_plain(value: object) -> bool:
    """Whether it is a text, a number or a truth value."""
    return isinstance(value, (str, bool, np.bool_, int, np.integer, float, np.floating))


def is_value(value: object) -> bool:
    """Whether it is a number, or spells one, that networks can compute with."""
    number = number_of(str(value).strip())
    return number is not None and abs(number) <= LARGEST


def sort_names(names: Sequence[str]) -> tuple[str, ...]:
    """By number where all are numbers, else by name."""
    if all(number_of(name) is not None for name in names):
        return tuple(sorted(names, key=lambda name: (number_of(name), name)))
    return tuple(sorted(names))


def number_of(text: str) -> float | None:
    """The finite number that the text spells; whole numbers exactly."""
    if INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _check_numbers(targets: Sequence[tuple[str, str]], task: Task) -> None:
    """Refuse texts, each with its place, that are no numbers or too large: the first few by name."""
    bad = [(text, place) for text, place in targets if number_of(text) is None]
    if bad:
        (text, place), *others = bad
        more = ", ".join(f"{short(other, 20)} in {where.rpartition(', ')[2]}" for other, where in others[:2])
        more = f" (nor {more}{f' and {len(others) - 2} more' if len(others) > 2 else ''})" if others else ""
        way_out = "write the limit itself, or leave it empty" if BOUND.fullmatch(text) else "leave unknown values empty"
        way_out += ", or use --task classification" if task == "auto" else ""
        raise DataError(f"{place}: target {short(text)} is not a finite number{more}; {way_out}")
    for text, place in targets:
        if abs(number_of(text) or 0) > LARGEST:
            raise DataError(f"{place}: target {short(text)} is too large; at most {LARGEST:.2g} is read: rescale them")


def _have_bounds(texts: Sequence[str]) -> bool:
    """Whether these are numbers but for some that are only known to lie above or below one: no classes, then."""
    numbers, bounds = (sum(bool(kind.fullmatch(text)) for text in texts) for kind in (NUMBER, BOUND))
    return min(numbers, bounds) > 0 and numbers + bounds >= MOST_NUMBERS * len(texts)


def known_texts(texts: Sequence[str | None], missing: Sequence[str] = MISSING) -> list[str | None]:
    """The texts without blanks around them, None where one says that nothing is known."""
    found = [None if text is None or text.strip().lower() in missing else text.strip() for text in texts]
    others = [text for text in found if text is not None and text.lower() not in AMONG_NUMBERS]
    numbers = sum(bool(NUMBER.fullmatch(text)) for text in others)
    if numbers >= MOST_NUMBERS * len(others) or _have_bounds(others):
        return [None if text is None or text.lower() in AMONG_NUMBERS else text for text in found]
    return found


def look_like_classes(texts: Sequence[str]) -> bool:
    if _have_bounds(texts):
        return False
    written = [text for text in texts if NUMBER.fullmatch(text)]
    if len(written) < MOST_NUMBERS * len(texts):
        return True
    numbers = {number_of(text) for text in written}
    if not all(number is not None and number == int(number) for number in numbers):
        return False
    return len(numbers) <= 2 or (len(numbers) <= MOST_CLASSES and 2 * len(numbers) < len(texts))


def _class_names(distinct: Sequence[str]) -> dict[str, str]:
    """What to call the class that each text means: 1 and 1.0 are one in the file of today and in that of tomorrow."""
    numbers = {text: number_of(text) for text in distinct}
    if None in numbers.values():
        return {text: text for text in distinct}
    shortest: dict[float | None, str] = {}
    for text, number in numbers.items():
        plain = re.sub(r"(?<=\d)\.0*$", "", text)
        shortest[number] = min(plain, shortest.get(number, plain), key=lambda name: (len(name), name))
    return {text: shortest[number] for text, number in numbers.items()}
