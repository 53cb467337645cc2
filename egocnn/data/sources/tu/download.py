"""The name of a TU set -> its folder or zip on this machine, downloaded once where it is not there yet. Only published
names are ever sent to a server; others are looked for here alone. ``EGOCNN_OFFLINE=1`` forbids downloads."""

import hashlib
import http.client
import json
import logging
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from egocnn.data.schema import rule
from egocnn.data.sources.text import reason, short
from egocnn.data.sources.tu.archive import Archive
from egocnn.data.sources.tu.reader import TABLES, whole_lines
from egocnn.errors import DataError
from egocnn.files import digest_of_file, replacing, write_text

logger = logging.getLogger("egocnn")
COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"
SECONDS = 30  # without a byte for this long a download is given up
CHUNK = 1 << 18
ENDINGS = tuple(f"_{table}.txt" for table in TABLES)

SETS = json.loads(files(__package__).joinpath("sets.json").read_text(encoding="utf-8"))
CONTENT: dict[str, str] = SETS["content"]  # content_digest of the sets of the paper: a name means the same everywhere
# the list of https://chrsmrrs.github.io/datasets/docs/datasets: no other name is ever sent to a server, as one that
# is mistyped may be that of a file or a confidential molecule
PUBLISHED = set(SETS["published"])


def find_set(name: str) -> Path | None:
    """The set where ``EGOCNN_DATA`` or the cache has it; never downloads."""
    if not _is_name(name):
        return None
    data = os.environ.get("EGOCNN_DATA")
    for inside in (f"tu/{name}.zip", f"{name}.zip", name, f"tu/{name}") if data else ():
        if os.path.exists(path := Path(data or "", inside)):  # noqa: PTH110 — pathlib's raises where it may not look
            return path
    if not os.path.exists(cached := _cache_path(name)):  # noqa: PTH110
        return None
    _check_cached(cached)
    return cached


def fetch_set(name: str) -> Path:
    """The set where it is on this machine, else, if it is a published one, downloaded into the cache."""
    rule(_is_name(name), f"{short(name)} cannot be the name of a set: letters, digits, - and _ are all it may have")
    if (found := find_set(name)) is not None:
        return found
    if name not in PUBLISHED:
        similar = similar_names(name)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        raise DataError(f"{name}: is neither a file or folder nor the name of a published TU data set{hint}")
    base = os.environ.get("EGOCNN_TU_URL") or COLLECTION
    is_address = base.startswith(("http://", "https://"))
    rule(is_address, f"EGOCNN_TU_URL is {base!r}; it must begin with http:// or https://")
    url, path, data = f"{base.rstrip('/')}/{name}.zip", _cache_path(name), os.environ.get("EGOCNN_DATA")
    looked = f"not in EGOCNN_DATA ({data})" if data else "EGOCNN_DATA is not set"
    looked = f"{looked}, not in the cache ({path.parent}), and"
    is_online = os.environ.get("EGOCNN_OFFLINE", "0") in ("", "0")
    rule(is_online, f"{name}: {looked} downloads are forbidden (--offline or EGOCNN_OFFLINE)")
    # a warning: what goes over a network is said on stderr, also where remarks are not asked for
    logger.warning("downloading %s from %s to %s", name, url, path)
    try:
        response = urllib.request.urlopen(url, timeout=SECONDS)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        given = f"HTTP {error.code} {error.reason}" if isinstance(error, urllib.error.HTTPError) else reason(error)
        raise DataError(f"no folder, file or set called {name!r}; {looked} {url} gives: {given}") from None
    with response:
        try:
            _store(name, url, response, path)
        except OSError as error:
            why = f"cannot be written ({reason(error)}); EGOCNN_CACHE names another folder"
            raise DataError(f"{path}: {why}") from None
    return path


def similar_names(name: str) -> list[str]:
    """Up to three published names that are spelled much like this one, the most similar first."""
    by_small_letters = {each.lower(): each for each in sorted(PUBLISHED)}
    return [by_small_letters[each] for each in get_close_matches(name.lower(), by_small_letters, n=3, cutoff=0.75)]


def content_digest(archive: Archive) -> str:
    """SHA-256 of the texts that are read, by name; how they are packed, blanks and line ends do not matter."""
    digest = hashlib.sha256()
    tables = [(PurePosixPath(path).name, path) for path in archive.paths if path.endswith(ENDINGS)]
    for name, path in sorted(tables):
        digest.update(f"{name}\n".encode())
        for piece in whole_lines(archive.chunks(path), name):
            digest.update(piece.translate(None, b" \t\r"))
    return digest.hexdigest()


def _is_name(name: str) -> bool:
    return re.fullmatch("[A-Za-z0-9_-]+", name) is not None and len(name) <= 100


def _cache_path(name: str) -> Path:
    if os.environ.get("EGOCNN_CACHE"):
        return Path(os.environ["EGOCNN_CACHE"], "tu", f"{name}.zip")
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise DataError("no home folder to keep downloads in; set EGOCNN_CACHE to a folder") from None
    return Path(cache, "egocnn", "tu", f"{name}.zip")


def _store(name: str, url: str, response: Any, path: Path) -> None:
    """Write what the server sends under a temporary name, check it, and only then give it its own."""
    with replacing(path) as temporary:
        length = response.headers.get("Content-Length", "")
        expected = int(length) if length.isdecimal() else None
        size, digest = 0, hashlib.sha256()
        with temporary.open("wb") as file, _progress(name, expected) as advance:
            for chunk in _received(url, response):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                advance(len(chunk))
        rule(expected in (None, size), f"{url}: broke off after {size} of {expected} bytes; try again")
        _check_content(name, url, temporary)
        # before the zip takes its name: a downloaded zip always has its sum beside it
        write_text(_sum_path(path), f"{digest.hexdigest()}  {path.name}\n")


def _received(url: str, response: Any) -> Iterator[bytes]:
    try:
        while chunk := response.read(CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{url}: broke off ({reason(error)}); try again") from None


def _check_content(name: str, url: str, path: Path) -> None:
    with Archive(path, url) as archive:
        if name not in CONTENT:
            archive.verify()
            logger.info("%s: no checksum is known for this set; the one of this download is kept", name)
        elif content_digest(archive) != CONTENT[name]:
            raise DataError(f"{url}: not the {name} that egocnn knows (the checksum of its texts differs); not kept")


def _check_cached(path: Path) -> None:
    """Compare a file of the cache with the sum that its download left; one put there by hand has none."""
    try:
        expected = _sum_path(path).read_text(encoding="ascii", errors="replace").split()[:1]
        found = digest_of_file(path)
    except FileNotFoundError:
        logger.info("%s: no checksum beside it; taken as it is", path)
        return
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from None
    rule([found] == expected, f"{path}: damaged (its checksum has changed); delete it, and it is downloaded again")


def _sum_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


@contextmanager
def _progress(name: str, length: int | None) -> Iterator[Callable[[int], object]]:
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"downloading {name}", total=length)
        yield lambda size: bar.advance(task, size)
