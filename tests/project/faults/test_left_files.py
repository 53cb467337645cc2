"""What killed writers leave: removed by the next one, unless its writer is still at work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from egocnn.errors import DataError
from egocnn.files import check_writable, replacing, replacing_in, write_text
from egocnn.show.report.folder import check_folder
from tests.support.tiny import names_in

KILLED = """
import os, signal, sys
from pathlib import Path
from egocnn.files import replacing, replacing_in
place = Path(sys.argv[1])
with replacing(place / "note.txt") as one, replacing_in(place / "report", first="a", last="z") as several:
    one.write_text("half")
    (several / "a").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def leave(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [name.split(".")[1] for name in names_in(folder) if name != "report"] == ["note"]
    assert [name.split(".")[1] for name in names_in(folder / "report")] == ["egocnn"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    leave(tmp_path)
    check_folder(tmp_path / "report")  # it counts as empty
    with pytest.raises(DataError, match="is not empty"):
        check_folder(tmp_path)
    write_text(tmp_path / "note.txt", "whole")
    with replacing_in(tmp_path / "report", first="a", last="z"):
        pass
    assert names_in(tmp_path) == ["note.txt", "report"]
    assert names_in(tmp_path / "report") == []


def test_what_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    with replacing(tmp_path / "note.txt") as slow:
        slow.write_text("slow")
        write_text(tmp_path / "note.txt", "fast")
        with replacing_in(tmp_path, first="a", last="z") as several, replacing_in(tmp_path, first="a", last="z"):
            (several / "a").write_text("x")
        assert slow.read_text() == "slow"
    assert (tmp_path / "note.txt").read_text() == "slow"
    assert names_in(tmp_path) == ["a", "note.txt"]


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    others = [".note.txt", ".other.txt.abc.tmp", "note.txt.tmp"]
    for name in others:
        (tmp_path / name).write_text("x")
    write_text(tmp_path / "note.txt", "whole")
    assert names_in(tmp_path) == sorted([*others, "note.txt"])


def test_many_writers_of_one_file_do_not_harm_each_other(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            for _ in range(30):
                write_text(tmp_path / "note.txt", str(number) * 100)
        except Exception as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert len(set((tmp_path / "note.txt").read_text())) == 1
    assert names_in(tmp_path) == ["note.txt"]


def test_several_files_take_their_places_together_and_the_last_one_last(tmp_path: Path) -> None:
    write_text(tmp_path / "z.html", "old")
    with replacing_in(tmp_path, first="b.txt", last="a.html") as temporary:
        for name in ("a.html", "b.txt", "figures/1.svg", "figures/2.svg"):
            write_text(temporary / name, name)
        assert names_in(tmp_path, hidden=False) == ["z.html"]
    seen = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file())
    assert seen == ["a.html", "b.txt", "figures/1.svg", "figures/2.svg", "z.html"]


def test_several_files_that_fail_leave_all_as_it_was(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "old")

    def write_half() -> None:
        with replacing_in(tmp_path, first="a", last="z") as temporary:
            write_text(temporary / "a", "new")
            raise OSError(28, os.strerror(28))

    with pytest.raises(OSError, match="No space left on device") as failure:
        write_half()
    assert failure.value.filename == str(tmp_path)
    assert names_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_devices_and_folders_to_be_made_can_be_written(tmp_path: Path) -> None:
    check_writable(Path("/dev/null"))
    check_writable(tmp_path / "a" / "b" / "c.txt")
    check_writable(Path("in-the-working-folder.txt"))
