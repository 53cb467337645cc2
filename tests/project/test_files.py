"""Files are written whole or not at all; what killed writers leave is removed by the next one."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from egocnn.errors import DataError
from egocnn.files import check_writable, replacing, replacing_in, write_json, write_text
from egocnn.show.report.folder import check_folder
from tests.support.tiny import contents, names_in

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


def test_text_is_written_as_it_is_once_it_is_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder, before = tmp_path / "to be" / "made", os.umask(0o027)
    try:
        write_text(folder / "note.txt", "größer\n")
        assert os.umask(0o027) == 0o027  # it has not been changed
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "note.txt").stat().st_mode) == 0o640
    with replacing(folder / "note.txt") as temporary:
        temporary.write_text("new")
        assert (folder / "note.txt").read_bytes() == "größer\n".encode()
    assert contents(folder) == {"note.txt": b"new"}
    for place in (Path("/dev/null"), tmp_path / "a" / "b" / "c.txt", Path("in-the-working-folder.txt")):
        check_writable(place)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path: Path, error: type[BaseException]) -> None:
    def write_half() -> None:
        with replacing(tmp_path / "note.txt") as temporary:
            temporary.write_text("ne")
            raise error

    write_text(tmp_path / "note.txt", "old")
    with pytest.raises(error):
        write_half()
    assert contents(tmp_path) == {"note.txt": b"old"}


def test_json_is_read_back_equal_and_numbers_that_it_does_not_know_are_refused(tmp_path: Path) -> None:
    value = {"names": ["größer", "a"], "number": 1.5, "none": None}
    write_json(tmp_path / "value.json", value)
    text = (tmp_path / "value.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert text.endswith("}\n")
    assert "größer" in text
    with pytest.raises(DataError, match="JSON"):
        write_json(tmp_path / "other.json", {"loss": float("nan")})
    assert names_in(tmp_path) == ["value.json"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [name.split(".")[1] for name in names_in(tmp_path) if name != "report"] == ["note"]
    assert [name.split(".")[1] for name in names_in(tmp_path / "report")] == ["egocnn"]
    check_folder(tmp_path / "report")  # it counts as empty
    with pytest.raises(DataError, match="is not empty"):
        check_folder(tmp_path)
    write_text(tmp_path / "note.txt", "whole")
    with replacing_in(tmp_path / "report", first="a", last="z"):
        pass
    assert names_in(tmp_path) == ["note.txt", "report"]
    assert names_in(tmp_path / "report") == []


def test_files_of_others_and_what_is_still_being_written_are_left_alone(tmp_path: Path) -> None:
    others = [".note.txt", ".other.txt.abc.tmp", "note.txt.tmp"]
    for name in others:
        (tmp_path / name).write_text("x")
    with replacing(tmp_path / "note.txt") as slow:
        slow.write_text("slow")
        write_text(tmp_path / "note.txt", "fast")
        with replacing_in(tmp_path, first="a", last="z") as several, replacing_in(tmp_path, first="a", last="z"):
            (several / "a").write_text("x")
        assert slow.read_text() == "slow"
    assert (tmp_path / "note.txt").read_text() == "slow"
    assert names_in(tmp_path) == sorted([*others, "a", "note.txt"])


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


def test_several_files_take_their_places_together_or_all_stays_as_it_was(tmp_path: Path) -> None:
    def write_half() -> None:
        with replacing_in(tmp_path, first="b.txt", last="a.html") as temporary:
            write_text(temporary / "a.html", "half")
            raise OSError(28, os.strerror(28))

    write_text(tmp_path / "z.html", "old")
    with replacing_in(tmp_path, first="b.txt", last="a.html") as temporary:
        for name in ("a.html", "b.txt", "figures/1.svg", "figures/2.svg"):
            write_text(temporary / name, name)
        assert names_in(tmp_path, hidden=False) == ["z.html"]
    whole = contents(tmp_path)
    assert sorted(whole) == ["a.html", "b.txt", "figures/1.svg", "figures/2.svg", "z.html"]
    with pytest.raises(OSError, match="No space left on device") as failure:
        write_half()
    assert failure.value.filename == str(tmp_path)
    assert contents(tmp_path) == whole


def test_what_an_earlier_writer_left_by_the_pattern_goes_and_all_else_stays(tmp_path: Path) -> None:
    for several in (("page", "figures/1.svg", "figures/2.svg"), ("page", "figures/2.svg")):
        with replacing_in(tmp_path, first="mark", last="page", patterns=["figures/[0-9].svg"]) as temporary:
            for name in several:
                write_text(temporary / name, name)
        write_text(tmp_path / "figures/mine.svg", "of the user")
    assert sorted(contents(tmp_path)) == ["figures/2.svg", "figures/mine.svg", "page"]
