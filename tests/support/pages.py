"""Pages whose code runs: Markdown -> its blocks, run from top to bottom, and what they print beside what is shown.

A block marked ``python`` or ``console`` runs; a block marked ``text`` after it shows what it prints.

python -m tests.support.pages docs/tutorials/molecules.md                        run it, write what it prints into it
python -m tests.support.pages docs/start.md --after docs/tutorials/molecules.md  on the table that the other page makes
"""

import argparse
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CRITICAL = "  critical:"
"""Nodes by importance: rounding may let two that are nearly alike change places, or let one pass the threshold."""


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    text: str
    start: int  # where its text begins on the page


@dataclass(frozen=True, slots=True)
class Shown:
    """What a block printed, and the block of the page that shows it, if there is one."""

    printed: str
    block: Block | None


def blocks(page: str) -> list[Block]:
    return [Block(found[1], found[2], found.start(2)) for found in FENCE.finditer(page)]


def run(page: str, folder: Path) -> Iterator[Shown]:
    """Run the blocks in the folder, names living on from one to the next."""
    found = blocks(page)
    names: dict[str, Any] = {"__name__": "page"}
    with chdir(folder):
        for block, after in pairwise([*found, None]):
            if block is not None and block.kind != "text":
                printed = _run_python(block.text, names) if block.kind == "python" else _run_commands(block.text)
                yield Shown(printed, after if after is not None and after.kind == "text" else None)


def _run_python(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "page", "exec"), names)
    return printed.getvalue()


def _run_commands(lines: str) -> str:
    from egocnn.cli import main

    printed, said = io.StringIO(), io.StringIO()
    for line in lines.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line)
        with redirect_stdout(printed), redirect_stderr(said):
            code = main(words)
        assert (program, code) == ("egocnn", 0), f"{line}: {said.getvalue()}"
    return printed.getvalue()


def differences(printed: str, shown: str) -> list[str]:
    """Lines that say something else: other words, or numbers farther apart than another processor may put them."""
    lines, wanted = printed.rstrip().splitlines(), shown.rstrip().splitlines()
    if len(lines) != len(wanted):
        return [f"{len(lines)} lines are printed, {len(wanted)} are shown"]
    return [
        f"{one!r} is printed, {other!r} is shown"
        for one, other in zip(lines, wanted, strict=True)
        if _differ(one, other)
    ]


def _differ(one: str, other: str) -> bool:
    if one.startswith(CRITICAL) and other.startswith(CRITICAL):
        ours, theirs = (set(line.removeprefix(CRITICAL).split(",")) for line in (one, other))
        return 2 * len(ours & theirs) < len(ours | theirs)
    if NUMBER.split(one) != NUMBER.split(other):
        return True
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return any(abs(_value(a) - _value(b)) > 0.1 * max(_value(a), _value(b), 1) for a, b in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def refreshed(page: str, folder: Path) -> str:
    """The page with what its blocks print now."""
    new, at = "", 0
    for shown in run(page, folder):
        if shown.block is not None:
            new += page[at : shown.block.start] + shown.printed.rstrip("\n") + "\n"
            at = shown.block.start + len(shown.block.text)
    return new + page[at:]


def main() -> None:
    parser = argparse.ArgumentParser(description="run pages, and write what they print into them")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument(
        "--after", type=Path, metavar="PAGE", help="run the first block of this page before each of them"
    )
    options = parser.parse_args()
    first = blocks(options.after.read_text(encoding="utf-8"))[0].text if options.after else ""
    for path in map(Path.resolve, options.pages):
        with tempfile.TemporaryDirectory() as folder:
            with chdir(folder):
                _run_python(first, {})
            text = refreshed(path.read_text(encoding="utf-8"), Path(folder))
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the tests have it
    main()
