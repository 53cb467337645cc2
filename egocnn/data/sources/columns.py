"""The rows of a table -> what each of its columns could be, and the names of all that could be targets."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from egocnn.config import ALL, ReadConfig
from egocnn.data.schema import PARTS, rule
from egocnn.data.sources.builder import BOUND, NAME_FIELDS, PART_WORDS, known_texts, look_like_classes, number_of
from egocnn.data.sources.smiles import OTHER_NAMES, parse_smiles
from egocnn.data.sources.text import MOLECULE, listed, one_line
from egocnn.errors import DataError, MissingExtraError

MOST_ROWS = 100_000  # Of a table, the rows from which its columns are told.
TRIED = 20  # Values of a column that are parsed to tell whether they are SMILES.
MOST_LISTED = 50  # More classes than these are texts.
ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__")  # What pandas calls them in CSV and Parquet.

log = logging.getLogger("egocnn")


def all_targets(rows: Iterable[Mapping[str, Any]], config: ReadConfig, where: str) -> str | None:
    """The columns that could be targets, commas between them; refused where that cannot be told. A column called all is
    meant itself. Left out are those that the settings name, SMILES, names, splits, and what is constant. Where all are
    not asked for, the only one that there is, if any; several are refused."""
    columns, is_all = describe_columns(rows), config.target == ALL
    if config.target in columns:
        return config.target
    other = {config.smiles, config.name, config.split, config.group, ""}
    unclear = [name for name, column in columns.items() if is_all and name not in other and _is_unclear(column)]
    rule(not unclear, f"{where}: {listed(unclear)} could be a target or not; name the targets, commas between them")
    found = [name for name, column in columns.items() if name not in other and could_be_target(column)]
    rule(found or not is_all, f"{where}: no column could be a target; there are {listed(columns)}")
    which = f"{where}: {listed(found)} could be the target; name it with --target (all: all of them)"
    rule(is_all or len(found) < 2, which)
    is_clear = len(found) < 2 or not any("," in name for name in found)
    rule(is_clear, f"{where}: a target has a comma in its name, so that {listed(found)} cannot be told apart")
    left = listed(name for name in columns if name not in found)
    kept = f"{len(found)} targets, {listed(found)}; left out: {left}"
    only = f"{listed(found)} is taken for the target, the only column that could be one"
    if found:
        log.info("%s: %s", one_line(where), kept if is_all else only)
    return ",".join(found) or None


def _is_unclear(column: Mapping[str, Any]) -> bool:
    """Whether it holds texts most of which stand there once or twice."""
    counts = column.get("counts", {}) if column["kind"] == "classes" else {}
    return column["kind"] == "texts" or bool(2 * len(counts) >= max(sum(counts.values()), 5))


def could_be_target(column: Mapping[str, Any]) -> bool:
    """Whether it holds classes, or values, that are not all the same."""
    is_class = column["kind"] == "classes" and len(column["counts"]) > 1
    return is_class or (column["kind"] == "values" and bool(column["least"] < column["most"]))


def describe_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What every column of a table could be: its ``kind``, how many values are ``missing``, and what goes with it."""
    first = [{name: value for name, value in row.items() if name != MOLECULE} for row in islice(rows, MOST_ROWS)]
    names = dict.fromkeys(name for row in first for name in row)
    several = {name: [str("" if row.get(name) is None else row[name]).strip() for row in first] for name in names}
    return {name: _column(name, texts) for name, texts in several.items()}


def _column(name: str, texts: Sequence[str]) -> dict[str, Any]:
    known = [text for text in known_texts(texts) if text is not None]
    counts, is_word = Counter(known), bool(known) and look_like_classes(known)
    numbers = [number for text in counts if (number := number_of(text)) is not None]
    if {PART_WORDS.get(word, word) for word in map(str.lower, counts)} <= set(PARTS):
        found: dict[str, Any] = {"kind": "split" if known else "empty", "counts": dict(counts)}
    elif _are_smiles(name, list(counts)[:TRIED]):
        found = {"kind": "SMILES"}
    elif is_word and len(counts) <= min(MOST_LISTED, len(known) - 1):
        found = {"kind": "classes", "counts": dict(counts.most_common())}
    elif is_word or not numbers or _tell_rows(name, known):
        found = {"kind": "names" if len(counts) == len(known) else "texts", "different": len(counts)}
    else:
        found = {"kind": "values", "least": float(min(numbers)), "most": float(max(numbers))}
        beyond = sum(bool(BOUND.fullmatch(text)) for text in known)
        found |= {"only known to lie beyond a limit": beyond} if beyond else {}
    return {**found, "missing": len(texts) - len(known)}


def _tell_rows(name: str, texts: Sequence[str]) -> bool:
    """Whether they name the rows, or number them as pandas does, here or in the table that they were chosen from."""
    is_name = bool(ROW_NUMBERS.fullmatch(name)) or name.lower().endswith(NAME_FIELDS)
    count = any(texts == [str(n + first) for n in range(len(texts))] for first in (0, 1))
    return (is_name and len(set(texts)) == len(texts)) or (count and len(texts) > 2)


def _are_smiles(name: str, texts: Sequence[str]) -> bool:
    """By the name of the column, or because RDKit parses them and most are too long for words."""
    is_likely = name.lower() in OTHER_NAMES or 2 * sum(len(text) > 4 for text in texts) > len(texts)
    try:
        return "smiles" in name.lower() or (is_likely and all(map(parse_smiles, texts)))
    except (DataError, MissingExtraError):
        return False
