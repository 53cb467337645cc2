"""Folders and zips -> chunks of bytes; what a zip must not do."""

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.sources.tu import archive
from egocnn.data.sources.tu.archive import Archive, Folder, open_files
from egocnn.errors import DataError

TEXT = b"".join(b"%d, %d\n" % (i, i + 1) for i in range(2000))


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return stream.getvalue()


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    path.write_bytes(packed(members))
    return path


def refusal(path: Path) -> str:
    """What reading the whole zip is refused with."""
    with pytest.raises(DataError) as error, Archive(path) as opened:
        opened.verify()
    assert "\n" not in str(error.value)
    assert path.name in str(error.value)
    return str(error.value)


def test_members_are_read_in_chunks_without_a_file_on_disk(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "set.zip", {"set/a.txt": TEXT, "set/b.txt": b"", "set/": b""})
    with Archive(path) as opened:
        assert opened.paths == ("set/a.txt", "set/b.txt")
        assert b"".join(opened.chunks("set/a.txt")) == TEXT
        assert b"".join(opened.chunks("set/b.txt")) == b""
        opened.verify()
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_shows_its_files_and_those_of_the_folders_in_it(tmp_path: Path) -> None:
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    for name in ("a.txt", "inner/b.txt", "inner/deep/c.txt"):
        (tmp_path / name).write_bytes(TEXT)
    folder = Folder(tmp_path)
    assert folder.paths == ("a.txt", "inner/b.txt")
    assert b"".join(folder.chunks("inner/b.txt")) == TEXT


def test_names_that_cannot_be_printed_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a\nb.txt").write_bytes(b"")
    assert Folder(tmp_path).paths == ()
    with Archive(write_zip(tmp_path / "x.zip", {"a\nb.txt": b""})) as opened:
        assert opened.paths == ()


@pytest.mark.parametrize(
    "name", ["/etc/a.txt", "../a.txt", "set/../../a.txt", "..\\a.txt", "C:/a.txt", "\\\\host\\a.txt"]
)
def test_a_path_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = write_zip(tmp_path / "set.zip", {"ok.txt": b"1", name: b"1"})
    assert f"{name!r} points outside the zip" in refusal(path)


def with_bytes(data: bytes, *changes: tuple[int, bytes]) -> bytes:
    """A zip with some of its bytes replaced."""
    changed = bytearray(data)
    for start, new in changes:
        changed[start : start + len(new)] = new
    return bytes(changed)


PLAIN, STORED = packed({"a.txt": TEXT}), packed({"set/a.txt": TEXT}, zipfile.ZIP_STORED)
DIRECTORY = PLAIN.index(b"PK\x01\x02")  # the list of members at the end
LARGE = packed({"a.txt": bytes(1 << 20)})
HIDDEN = [
    (LARGE.index(mark) + at, (10).to_bytes(4, "little")) for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22))
]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_bytes(PLAIN, (DIRECTORY + 8, bytes([PLAIN[DIRECTORY + 8] | 1]))), "'a.txt' is encrypted"),
        (packed({"a.txt": TEXT}, zipfile.ZIP_BZIP2), f"'a.txt' is compressed by method {zipfile.ZIP_BZIP2}"),
        (packed({"a.txt": TEXT}, zipfile.ZIP_LZMA), f"'a.txt' is compressed by method {zipfile.ZIP_LZMA}"),
        (packed({"a.txt": TEXT, "b.txt": TEXT}).replace(b"b.txt", b"a.txt"), "'a.txt' is in it twice"),
        (with_bytes(STORED, (STORED.index(b"100, 101"), b"2")), "'set/a.txt' is damaged (Bad CRC-32"),
        *((PLAIN[:keep], "not a zip file, or a damaged one") for keep in (0, 10, 1000, -1)),
        # a member that hides its size, in the directory and before the member, yields no more than it states
        (with_bytes(LARGE, *HIDDEN), "'a.txt' is damaged"),
    ],
)
def test_a_zip_that_is_damaged_or_not_plain_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "set.zip"
    path.write_bytes(data)
    assert message in refusal(path)


def test_a_bomb_is_refused_before_it_is_read_and_so_is_a_zip_that_holds_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_zip(tmp_path / "bomb.zip", {"a.txt": bytes(archive.SMALL // 2), "b.txt": bytes(archive.SMALL)})
    expands = f"expands from {path.stat().st_size} bytes to {archive.SMALL * 3 // 2}"
    assert f"bomb.zip: {expands}; a zip that holds over 1048576 bytes may expand 100 times" in refusal(path)
    write_zip(path, {"a.txt": TEXT, "b.txt": TEXT, "c.txt": bytes(archive.SMALL - 2 * len(TEXT))})
    with Archive(path) as opened:
        opened.verify()
    monkeypatch.setattr(archive, "MOST_BYTES", archive.SMALL - 1)
    assert "a zip may hold at most" in refusal(path)


@pytest.mark.parametrize("name", ["absent", "x" * 5000])
def test_a_path_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"no such folder or zip file|cannot be read"), open_files(tmp_path / name):
        pass


def test_a_member_without_a_name_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "set.zip"
    path.write_bytes(packed({"a.txt": TEXT, "b.txt": TEXT}).replace(b"b.txt", b"\0.txt"))
    with Archive(path) as opened:
        assert b"".join(opened.chunks("a.txt")) == TEXT


@given(st.integers(0, 3000), st.integers(0, 255), st.booleans())
def test_a_changed_byte_gives_the_same_texts_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int, cut: bool
) -> None:
    data = bytearray(packed({"set/a.txt": TEXT[:3000], "set/b.txt": b"1\n"}))
    place %= len(data)
    data[place : place + 1] = b"" if cut else bytes([byte])
    path = tmp_path_factory.mktemp("zip") / "set.zip"
    path.write_bytes(data)
    try:
        with Archive(path) as opened:
            texts = [b"".join(opened.chunks(name)) for name in opened.paths]
    except DataError as error:
        message = str(error)
    else:
        message = "set.zip"
        assert set(texts) <= {TEXT[:3000], b"1\n"}
    assert "set.zip" in message
    assert "\n" not in message
