"""Predictions -> the rows to be explained: those of which a condition (``p_toxic > 0.9``) holds, or the highest."""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from egocnn.data.sources.builder import NUMBER
from egocnn.data.sources.text import arrow, listed, short
from egocnn.errors import ConfigError

TERM = re.compile(r"""\s*([^<>=!]+?)\s*(<=|>=|==|!=|<|>)\s*("[^"]*"|'[^']*'|[^\s<>=!"']+)\s*(and\s|$)""")
COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
RULE = "a condition is COLUMN, < <= > >= == or !=, and a number, or a text after == or !=; more of these after and"


@dataclass(frozen=True, slots=True)
class Choice:
    """Rows of which all terms are true, each a column, a sign and a value; of these those with the highest values."""

    terms: tuple[tuple[str, str, float | str], ...] = ()
    highest: int | None = None
    by: str = ""

    @staticmethod
    def parse(text: str, columns: Mapping[str, Any]) -> "Choice":
        """By a condition on these columns; of each is said what it holds."""
        terms: list[tuple[str, str, float | str]] = []
        at, goes_on = 0, "and"
        while goes_on:
            found = TERM.match(text, at)
            column, sign, value, goes_on = found.groups() if found else ("", "", "", "")
            is_number = columns.get(column) == "double"
            fits = NUMBER.fullmatch(value) if is_number else column in columns and sign in ("==", "!=")
            if found is None or not fits:
                raise ConfigError(f"--where {short(text)}: {RULE}; the columns are {listed(columns)}")
            terms.append((column, sign, float(value) if is_number else value.strip("\"'")))
            at = found.end()
        return Choice(tuple(terms))

    def __call__(self, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        """The numbers of these rows, ascending; of equals the first, and none of which something asked is not known."""
        terms, by = self.terms, self.by if self.highest else None
        known = (
            (row[by] if by else 0, -n)
            for n, row in enumerate(rows)
            if all((own := row.get(column)) is not None and COMPARE[sign](own, v) for column, sign, v in terms)
        )
        return sorted(-n for _, n in (heapq.nlargest(self.highest, known) if self.highest else known))

    def cut(self, tables: Sequence[Any]) -> Any:
        """Of tables of Arrow, one after the other, the rows with the highest values."""
        together = arrow().concat_tables(tables, promote_options="permissive")
        return together.take(self(together.select([self.by]).to_pylist()))
