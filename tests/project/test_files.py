from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from egocnn.errors import DataError
from egocnn.files import replacing, write_json, write_text
from tests.support.tiny import names_in


def test_text_is_written_as_it_is_once_it_is_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "to be" / "made"
    write_text(folder / "note.txt", "größer\n")
    assert (folder / "note.txt").read_bytes() == "größer\n".encode()
    with replacing(folder / "note.txt") as temporary:
        temporary.write_text("new")
        assert (folder / "note.txt").read_bytes() == "größer\n".encode()
    assert (folder / "note.txt").read_text() == "new"
    assert names_in(folder) == ["note.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path: Path, error: type[BaseException]) -> None:
    def write_half() -> None:
        with replacing(tmp_path / "note.txt") as temporary:
            temporary.write_text("ne")
            raise error

    write_text(tmp_path / "note.txt", "old")
    with pytest.raises(error):
        write_half()
    assert (tmp_path / "note.txt").read_text() == "old"
    assert names_in(tmp_path) == ["note.txt"]


def test_a_file_gets_the_permissions_of_an_ordinary_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "note.txt", "x")
        assert os.umask(0o027) == 0o027  # it has not been changed
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "note.txt").stat().st_mode) == 0o640


def test_json_is_read_back_equal_and_ends_with_a_newline(tmp_path: Path) -> None:
    value = {"names": ["größer", "a"], "number": 1.5, "none": None}
    write_json(tmp_path / "value.json", value)
    text = (tmp_path / "value.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert text.endswith("}\n")
    assert "größer" in text


def test_numbers_that_json_does_not_know_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="JSON"):
        write_json(tmp_path / "value.json", {"loss": float("nan")})
    assert names_in(tmp_path) == []
