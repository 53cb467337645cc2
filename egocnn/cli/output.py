"""Results -> JSON on stdout and remarks on stderr; paths to write to are checked before anything is computed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os.path import realpath
from pathlib import Path
from typing import Any

from egocnn.cli.options import Options
from egocnn.errors import DataError, rule
from egocnn.files import exists, isdir


def print_result(options: Options, plain: Any, lines: Iterable[str]) -> None:
    """On stdout, at once: for machines one line of JSON, for people lines of text, fit for a terminal, or none: with
    --quiet a script gets errors and what it asks for, nothing to throw away."""
    from egocnn.data.sources.text import one_line
    from egocnn.files import finite_json

    if options.quiet and not options.json:
        return
    clean = (one_line(part, 100_000) for line in lines for part in line.split("\n"))
    print(finite_json(plain) if options.json else "\n".join(clean), flush=True)


def print_remark(text: str) -> None:
    """On stderr, at once, fit for a terminal: names of files may hold escape codes, too."""
    from egocnn.data.sources.text import one_line
    from egocnn.train.progress import print_line

    print_line(one_line(text, 2000))


def remarks(options: Options) -> Callable[[str], None]:
    """:func:`print_remark`, or nothing where the user wants it quiet."""
    return (lambda _: None) if options.quiet else print_remark


@contextmanager
def progress_and_log(options: Options, title: str, total: int) -> Iterator[dict[str, Any]]:
    """The callbacks ``progress`` and ``log`` as arguments: a bar on a terminal, remarks elsewhere, none if quiet."""
    from egocnn.train.progress import counting_report

    with counting_report(title, total, visible=not options.quiet) as progress:
        yield {"log": remarks(options)} if progress is None else {"progress": progress}


def check_file(path: Path, data: str) -> None:
    """Refuse, before anything is computed, a path that no file can be written to, or that is the data itself."""
    from egocnn.files import check_is_no_file, check_writable

    if path.exists() and exists(data) and path.samefile(data):
        raise DataError(f"{path}: is the data to be read; name another file to write")
    rule(not path.is_dir(), f"{path}: is a folder; name the file to write")
    check_is_no_file(path.parent)
    check_writable(path)


def check_table(path: Path, data: str) -> None:
    """The same for a table of results, which no folder of ours may hold, nor one that is mistyped be made for."""
    from egocnn.show.tables import check_format

    check_file(path, data)
    check_format(path)
    rule(path.parent.exists(), f"{path.parent}: no such folder; make it, or name another file to write")
    if isdir(data) and Path(realpath(data)) in Path(realpath(path)).parents:
        raise DataError(f"{path}: is in the folder of the data to be read; name another file to write")


def check_out(options: Options) -> None:
    """Refuse to write into a run folder or a store: what is there is sealed, and may be replaced as a whole."""
    from egocnn.data.store import is_store

    if getattr(options, "out", None) is None:
        return
    out = Path(realpath(options.out))
    for place in (out, *out.parents):
        rule(not place.is_symlink(), f"{options.out}: leads through a link that leads back to itself")
        is_run = all((place / name).is_file() for name in ("config.json", "model.safetensors"))
        kind = "store" if is_store(place) else "run folder" if is_run else None
        own = {"train": "run folder", "prepare": "store"}.get(options.command) if place == out else None
        rule(kind in (None, own), f"{place}: is a {kind}; write to another folder")
