"""The folder of a run: who may write there, and how a new run takes the place of an earlier one. A run that is to
replace another grows beside it, in ``.NAME.new``, and changes names with it when it is complete. Until then the earlier
run stays as it is. One training at a time writes into a folder: a lock that goes when its process does keeps all others
out."""

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from egocnn.encode.batch import PREFIX
from egocnn.errors import RunError
from egocnn.files import check_is_no_file, check_writable, is_left, is_still_at, lock, put_folder, remove

FILES: tuple[str, ...] = ("metrics.json", "model.safetensors", "config.json", "history.csv", "checkpoint.safetensors")
FILES += ("settings.toml", "split.csv", "test_predictions.csv", "invalid.csv")
"""What a run folder may hold, the one that makes it complete first."""
LOG = "tensorboard"
EVENTS = "events.out.tfevents."
LOCK = ".lock"  # Names its holder; it stays behind where that was killed, and then keeps nobody out.


def growing_place(folder: Path) -> Path:
    """Where a run grows that is to take the place of the one in ``folder``."""
    place = Path(os.path.realpath(folder))
    return place.parent / f".{place.name}.new"


def check_free(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that cannot be written, or that holds an earlier run which the user does not give up."""
    check_is_no_file(folder, RunError)
    if any((folder / name).exists() for name in FILES) and not resume and not overwrite:
        raise RunError(f"{folder}: holds a run already; --resume continues it, --overwrite replaces it")
    check_writable(folder)
    if overwrite:
        if os.path.ismount(folder):
            raise RunError(f"{folder}: is the top of a disk, which no other folder can replace; name a folder in it")
        if Path.cwd().is_relative_to(os.path.realpath(folder)):
            raise RunError(f"{folder}: is the working folder, which cannot be replaced under your feet; go elsewhere")
        check_writable(growing_place(folder).parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other trainings out of the folder, which is made; in the end it goes again if it is new and still empty."""
    folder = Path(os.path.realpath(folder))
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    handle = _take_lock(folder)
    try:
        yield
    finally:
        if is_still_at(folder / LOCK, handle):  # the folder may have been replaced, and the lock gone with it
            (folder / LOCK).unlink(missing_ok=True)
        os.close(handle)
        with suppress(OSError):  # not empty
            for place in made:
                place.rmdir()


def _take_lock(folder: Path) -> int:
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:  # the last holder has just removed the folder, which was new and empty
            continue
        if lock(handle) is False:  # where the system has no locks, nobody is kept out
            holder = os.read(handle, 200).decode(errors="replace").strip()
            os.close(handle)
            who = holder if holder.isprintable() and holder else "another process"
            raise RunError(f"{folder}: {who} is training into this folder; wait for it, or name another folder")
        if is_still_at(folder / LOCK, handle):  # its last holder may have removed it before we had it
            since = datetime.now().isoformat(sep=" ", timespec="seconds")
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {platform.node()}, since {since},\n".encode())
            return handle
        os.close(handle)


def clear(place: Path, *, all_of_it: bool) -> None:
    """Remove what writers have left half-written, or all but the lock; only who holds that may do so."""
    for name in FILES:
        for left in place.glob(f".{name}.*.tmp"):
            left.unlink(missing_ok=True)
    for entry in list(place.iterdir()) if all_of_it else ():
        if entry.name != LOCK:
            remove(entry)


def restore(folder: Path) -> None:
    """Put back a run that was out of its place for a moment, where folders cannot change names in one step."""
    old = growing_place(folder).with_suffix(".old")
    if old.is_dir() and not folder.exists():
        old.rename(Path(os.path.realpath(folder)))


def put_in_place(folder: Path) -> None:
    """Let the run that has grown beside ``folder`` take its place, and keep there what is no part of the earlier run.
    Both are locked. Killed at any moment, this leaves one whole run in the folder, the old one or the new one, and in
    either case all files of others."""
    grown, place = growing_place(folder), Path(os.path.realpath(folder))
    shutil.rmtree(grown.with_suffix(".old"), ignore_errors=True)
    for entry in _of_others(place):
        target = grown / entry.relative_to(place)
        target.parent.mkdir(exist_ok=True)
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, target, symlinks=True, copy_function=_copy_file, dirs_exist_ok=True)
        else:
            _copy_file(entry, target)
    shutil.copymode(place, grown)
    put_folder(grown, place)
    if grown.exists():  # what was in the folder before: no complete run any more, whatever happens now
        (grown / FILES[0]).unlink(missing_ok=True)
        shutil.rmtree(grown, ignore_errors=True)
    (place / LOCK).unlink(missing_ok=True)  # held until now: from here on others may come


def _of_others(place: Path) -> list[Path]:
    found: list[Path] = []
    for entry in place.iterdir():
        if entry.name == LOG and entry.is_dir():
            found += [file for file in entry.iterdir() if not file.name.startswith(EVENTS)]
        elif not (entry.name in (*FILES, LOCK) or entry.name.startswith(PREFIX) or is_left(entry.name, *FILES)):
            found.append(entry)
    return found


def _copy_file(source: str | Path, target: str | Path) -> None:
    """A second name for the file, or a copy where the file system has no second names; links stay links."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
