"""What a served model accepts, and where it listens; nothing heavy is imported here, so that ``--help`` is quick."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from egocnn.config import check_fields
from egocnn.errors import ConfigError, DataError, rule

MOST_GRAPHS = 200  # Graphs in one request; more are a matter for ``egocnn explain``.
MOST_NODES = 20_000  # Nodes of all graphs in one request.
MOST_EDGES = 100_000  # Edges of all graphs in one request.
MOST_RINGS = 200  # That one SMILES may close: RDKit takes minutes to lay several hundreds out against each other.
MOST_QUICK = 300  # Characters of a line up to which it is answered with others, and by a worker kept free for such.
MOST_DRAWN = 500  # Nodes of a graph that is drawn, and laid out as chemists do: RDKit takes minutes for thousands.
MOST_CHARACTERS = 5_000  # Of one line: a SMILES, and the name after it.
MOST_AT_ONCE = 16  # SMILES of one request that are explained in one batch; those of other requests come in between.
MOST_IN_BATCH = 64  # SMILES of several requests that are explained together, so that the first need not wait long.
OF_MOLECULES = (".csv", ".tsv", ".tab", ".smi", ".sdf")
FILE_SUFFIXES = (*OF_MOLECULES, ".jsonl", ".ndjson", ".json", ".graphml", ".gexf")  # no archives
BRACKETS = re.compile(r"\[[^\[\]]*\]")  # An atom with isotope, hydrogens or charge: its digits close no ring.
CLOSURE = re.compile(r"%\(\d+\)|%\d\d|\d")
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Where to listen, and the limits of a request."""

    port: int = 8000  # Port to listen on; 0 for any that is free.
    workers: int = 2
    """Processes that answer, each with its own copy of the model; files, reports and long SMILES leave one free."""
    megabytes: float = 4.0  # Largest request that is read.
    seconds: float = 30.0  # Time after which a request is given up.
    work_seconds: float = 15.0  # Time that a worker may spend on a request; then it is killed and replaced.
    receive_seconds: float = 10.0  # Time in which a request must have arrived, first its headers, then its body.
    worker_gigabytes: float = 2.0  # Memory that a worker may take beside the model.
    waiting: int = 128  # Requests at a time; further ones are sent away.
    connections: int = 512  # Connections at a time; further ones are closed.
    host: str = "127.0.0.1"  # Address to listen on; all but this machine are kept out unless it says otherwise.
    token: str | None = None
    """Password of every request but /health (default: EGOCNN_TOKEN); needed where --host lets others in."""
    log: bool = False  # One line on stderr for every request.

    def __post_init__(self) -> None:
        check_fields(self)
        if self.host not in LOCAL and not self.secret:
            raise ConfigError(f"host {self.host} lets others in: set a token, with --token or EGOCNN_TOKEN")

    @property
    def secret(self) -> str:
        """The token, '' where none is asked for."""
        return self.token or os.environ.get("EGOCNN_TOKEN", "")

    @property
    def most_bytes(self) -> int:
        """The largest request in bytes."""
        return int(self.megabytes * 1e6)


Plain: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplainJob:
    """Molecules as lines of text, or a file whose bytes come beside the job, and what is wished about them."""

    lines: tuple[str, ...] = ()  # SMILES, each with the name after it, if it has one
    first: int = 1  # number of the first line, for the message about a line that is no molecule
    file: str | None = None  # name of the file that is read instead of lines
    report: bool = False  # a whole page, not an answer for each graph
    explained: str | None = None  # the class to explain; None: the predicted one
    target: str | None = None  # of several the one to explain; None: the first
    fidelity: bool = True
    picture: bool = True

    def portions(self, most: int) -> "Iterator[ExplainJob]":
        """The same job in several, each of ``most`` lines or fewer."""
        for start in range(0, len(self.lines), most):
            yield replace(self, lines=self.lines[start : start + most], first=start + 1)

    @property
    def is_quick(self) -> bool:
        """Whether nothing in it is so long that others should not be made to wait for it."""
        is_short = max(map(len, self.lines), default=0) <= MOST_QUICK
        return is_short and self.file is None and not self.report

    @property
    def wishes(self) -> tuple[str | None, str | None, bool, bool]:
        """Jobs of which these are equal can be explained in one call."""
        return self.explained, self.target, self.fidelity, self.picture


def rings(smiles: str) -> int:
    """How many rings a SMILES closes: every number outside brackets is one end of one."""
    return len(CLOSURE.findall(BRACKETS.sub("", smiles))) // 2


def check_lines(lines: Sequence[str]) -> None:
    """Refuse what is more than a line, and a SMILES that closes more rings than are read."""
    for number, line in enumerate(lines, 1):
        place = f"line {number}: " if len(lines) > 1 else ""
        rule(len(line.splitlines()) < 2, f"{place}several lines in one text; give a list, a text for every molecule")
        if (count := rings((line.split(maxsplit=1) or [""])[0])) > MOST_RINGS:
            raise DataError(f"{place}a SMILES that closes {count} rings; {MOST_RINGS} are read at most")


def typed_lines(text: str) -> list[str]:
    """The lines of a text that are not blank; refused where there are none, too many, or too long ones."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST_GRAPHS:
        raise DataError(f"{len(lines)} molecules; a report takes 1 to {MOST_GRAPHS}, one a line, or a file")
    if (longest := max(map(len, lines))) > MOST_CHARACTERS:
        raise DataError(f"a line of {longest} characters; {MOST_CHARACTERS} are read at most")
    check_lines(lines)
    return lines
