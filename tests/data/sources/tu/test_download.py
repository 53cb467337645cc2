"""Names of sets -> files: where they are looked for, downloads from a server on this machine, what is never sent."""

import hashlib
import io
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import egocnn
from egocnn.config import ReadConfig
from egocnn.data.read import read
from egocnn.data.sources.smiles import parse_smiles
from egocnn.data.sources.tu import download, read_tu
from egocnn.data.sources.tu.archive import Archive
from egocnn.data.sources.tu.download import CONTENT, PUBLISHED, content_digest, fetch_set, find_set, similar_names
from egocnn.errors import DataError
from tests.support.commands import Run, check_refused, printed
from tests.support.samples import refusal
from tests.support.tiny import ALCOHOLS, FLAGS

TABLES = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "1\n-1\n"}


def packed(name: str = "KKI", folder: str = "KKI/", change: tuple[str, str] = ("", "")) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        opened.writestr(f"{folder}README.txt", f"about {name}")
        for table, text in TABLES.items():
            opened.writestr(f"{folder}{name}_{table}.txt", text.replace(*change) if change[0] else text)
    return stream.getvalue()


class Server:
    """What is served under which path, and what was requested for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.missing_bytes = 0
        self.requested: list[str] = []


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A collection on this machine, an empty cache and no other data."""
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requested.append(self.path)
            content = served.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) - served.missing_bytes])

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the tests look at stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("EGOCNN_TU_URL", f"http://127.0.0.1:{running.server_port}/sets/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("EGOCNN_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("EGOCNN_DATA", raising=False)
        yield served
        running.shutdown()
        thread.join()


def stored(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_a_set_is_downloaded_once_with_its_checksum_beside_it(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/sets/KKI.zip"] = packed()
    assert find_set("KKI") is None
    with caplog.at_level(logging.INFO, "egocnn"):
        path = fetch_set("KKI")
    assert path == tmp_path / "cache" / "tu" / "KKI.zip"
    assert path.read_bytes() == packed()
    assert "no checksum is known" in caplog.text
    assert caplog.messages[0].startswith("downloading KKI from http://127.0.0.1:")
    assert sum("downloading" in message for message in caplog.messages) == 1
    written = path.with_name("KKI.zip.sha256").read_text(encoding="ascii")
    assert written == f"{hashlib.sha256(packed()).hexdigest()}  KKI.zip\n"
    assert stored(tmp_path) == ["KKI.zip", "KKI.zip.sha256"]
    monkeypatch.setenv("EGOCNN_OFFLINE", "1")
    assert find_set("KKI") == fetch_set("KKI") == path
    assert server.requested == ["/sets/KKI.zip"]
    assert len(read_tu(path, ReadConfig())) == 2


def test_a_known_set_is_compared_with_its_texts_not_with_its_packing_and_another_is_not_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "KKI.zip"
    path.write_bytes(packed())
    with Archive(path) as archive:
        monkeypatch.setitem(CONTENT, "KKI", content_digest(archive))
    for change in (("2, 1", "1, 1"), ("-1", "1"), ("1\n1\n2\n", "1\n1\n1\n")):
        server.files["/sets/KKI.zip"] = packed(change=change)
        assert "KKI.zip: not the KKI that egocnn knows" in refusal(fetch_set, "KKI")
        assert stored(tmp_path) == []
    server.files["/sets/KKI.zip"] = packed(folder="", change=("\n", "\r\n"))
    assert fetch_set("KKI").is_file()


def test_a_set_that_the_server_does_not_have_lists_what_was_tried(server: Server, tmp_path: Path) -> None:
    message = refusal(fetch_set, "OHSU")
    assert message.startswith("no folder, file or set called 'OHSU'; EGOCNN_DATA is not set, not in the cache (")
    assert message.endswith("/sets/OHSU.zip gives: HTTP 404 Not Found")
    assert server.requested == ["/sets/OHSU.zip"]
    assert stored(tmp_path) == []


def test_a_name_that_is_not_published_is_not_requested_for_and_still_found_here(server: Server, tmp_path: Path) -> None:
    """A server of one's own is a server too: what is typed may be a molecule."""
    server.files["/sets/CCO.zip"] = packed("CCO")
    with pytest.raises(DataError, match="CCO: is neither a file or folder nor the name of a published TU data set"):
        fetch_set("CCO")
    assert server.requested == []
    path = tmp_path / "cache" / "tu" / "CCO.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(packed("CCO"))
    assert fetch_set("CCO") == path


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1", r"no folder, file or set called 'KKI'; not in EGOCNN_DATA \(.*refused"),
        *((url, ".") for url in ("file:///etc", "ftp://127.0.0.1", "elsewhere", "http://[", "http://")),
    ],
)
def test_without_a_server_the_message_is_as_clear_and_what_is_no_address_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path))
    monkeypatch.setenv("EGOCNN_TU_URL", url)
    with pytest.raises(DataError, match=message):
        fetch_set("KKI")
    assert server.requested == []


@pytest.mark.parametrize(
    ("content", "missing_bytes", "message"),
    [(packed(), 10, "KKI.zip: broke off"), (b"<html>Sorry</html>", 0, "KKI.zip: not a zip file, or a damaged one")],
)
def test_a_body_that_breaks_off_or_is_no_zip_leaves_nothing_behind(
    server: Server, tmp_path: Path, content: bytes, missing_bytes: int, message: str
) -> None:
    server.files["/sets/KKI.zip"] = content
    server.missing_bytes = missing_bytes
    assert message in refusal(fetch_set, "KKI")
    assert stored(tmp_path) == []


def test_an_interrupted_download_leaves_nothing_behind(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    server.files["/sets/KKI.zip"] = packed()
    monkeypatch.setattr(download, "_check_content", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_set("KKI")
    assert stored(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/sets/KKI.zip"] = packed()
    (tmp_path / "file").write_text("in the way", encoding="ascii")
    monkeypatch.setenv("EGOCNN_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"KKI\.zip: cannot be written \(.*EGOCNN_CACHE names another folder"):
        fetch_set("KKI")


def test_a_file_of_the_cache_that_changed_is_refused(server: Server) -> None:
    server.files["/sets/KKI.zip"] = packed()
    path = fetch_set("KKI")
    path.write_bytes(packed(change=("-1", "1")))
    for look in (find_set, fetch_set):
        with pytest.raises(DataError, match=r"KKI\.zip: damaged \(its checksum has changed\); delete it"):
            look("KKI")
    path.unlink()
    assert fetch_set("KKI").read_bytes() == packed()


@pytest.mark.parametrize("place", ["tu/KKI.zip", "KKI.zip", "KKI", "tu/KKI"])
def test_the_data_folder_goes_before_the_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    server.files["/sets/KKI.zip"] = packed()
    fetch_set("KKI")
    path = tmp_path / "data" / place
    path.parent.mkdir(parents=True)
    if path.suffix:
        path.write_bytes(packed())
    else:
        path.mkdir()
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path / "data"))
    assert find_set("KKI") == path
    assert fetch_set("KKI") == path


def test_the_cache_is_in_the_users_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("EGOCNN_DATA", "EGOCNN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (".cache", "other"):
        path = tmp_path / folder / "egocnn" / "tu" / "KKI.zip"
        path.parent.mkdir(parents=True)
        path.write_bytes(packed())
        assert find_set("KKI") == path
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))


@pytest.mark.parametrize("name", ["", "..", "../KKI", "a/b", "a b", "KKI.zip", "ÄÖ", "a\n", "x" * 5000])
def test_only_plain_names_are_looked_for(server: Server, name: str) -> None:
    assert find_set(name) is None
    with pytest.raises(DataError, match="cannot be the name of a set") as error:
        fetch_set(name)
    assert len(str(error.value)) < 200
    assert server.requested == []


@pytest.mark.parametrize("name", sorted(CONTENT))
def test_the_digests_are_those_of_the_sets(data_folder: Path, name: str) -> None:
    with Archive(data_folder / "tu" / f"{name}.zip") as archive:
        assert content_digest(archive) == CONTENT[name]


SECRETS = ("OCC1", "NOSUCH", "MUTAGS", "some_name", "c1ccc")
MOLECULES = ("CCO", "c1ccccc1O", "CC-O", "N", "CC(=O)O", "OC[C@@H](N)C", "F/C=C/F", "C" * 300)


@pytest.fixture
def hosts_requested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """Hosts whose address anybody has looked up; no address is given."""
    hosts: list[object] = []

    def refuse(host: object, *_: object, **__: object) -> Any:
        hosts.append(host)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("EGOCNN_CACHE", str(tmp_path / "cache"))
    for name in ("EGOCNN_DATA", "EGOCNN_TU_URL", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return hosts


def test_what_is_not_published_is_refused_and_a_molecule_read_without_a_request(hosts_requested: list[object]) -> None:
    for text in SECRETS:
        assert "is neither a file or folder nor the name of a published TU data set" in refusal(read, text)
    assert hosts_requested == []
    pytest.importorskip("rdkit")
    for text in MOLECULES:
        assert read(text).smiles == (text,)
    assert hosts_requested == []


def test_a_text_that_nearly_is_a_molecule_is_refused_with_the_reason(hosts_requested: list[object]) -> None:
    pytest.importorskip("rdkit")
    for text in ("c1ccc", "CC(=O", "CN(C)(C)C"):
        assert re.search(r"; read as a molecule: SMILES '.*' does not parse \(", refusal(read, text))
    for text in ("mutag", "missing.csv", "no/such/folder"):
        assert "molecule" not in refusal(read, text)
    assert hosts_requested == []


def test_a_file_goes_before_a_molecule_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "CCO"
    folder.mkdir()
    for table, text in TABLES.items():
        (folder / f"CCO_{table}.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert len(read("CCO")) == 2


def test_no_command_and_no_model_asks_for_a_molecule(tmp_path: Path, hosts_requested: list[object], run: Run) -> None:
    assert run("train", ALCOHOLS, "-o", tmp_path / "run", *FLAGS, "--epochs", "1", "--quiet")[0] == 0
    wanted = "OCC1: is neither a file or folder nor the name of a published TU data set"
    for text, ask in (("OCC1", partial(check_refused, run, wanted)), ("CCO", partial(printed, run))):
        ask("info", text)
        ask("predict", tmp_path / "run", text, "-o", tmp_path / "p.csv")
        ask("explain", tmp_path / "run", text, "-o", tmp_path / "report")
    check_refused(run, "training needs at least 2 graphs, got 1", "train", "CCO", "-o", tmp_path / "other")
    model = egocnn.load(tmp_path / "run")
    for use in (model.predict, model.predict_proba, model.explain):
        assert len(use("CCO")) == 1
        with pytest.raises(DataError, match=wanted):
            use("OCC1")
    assert hosts_requested == []


def test_nothing_is_downloaded_where_that_is_forbidden_in_python_and_in_a_command(
    hosts_requested: list[object], monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    for value in ("1", "yes"):
        monkeypatch.setenv("EGOCNN_OFFLINE", value)
        found = refusal(read, "KKI")
        assert found.startswith("KKI: EGOCNN_DATA is not set, not in the cache (")
        assert found.endswith("and downloads are forbidden (--offline or EGOCNN_OFFLINE)")
    monkeypatch.setenv("EGOCNN_OFFLINE", "0")  # so that it is put back afterwards
    check_refused(run, "downloads are forbidden", "info", "KKI", "--offline")
    monkeypatch.setenv("EGOCNN_OFFLINE", "")
    check_refused(run, "downloads are forbidden", "train", "KKI", "-o", tmp_path / "run", "--offline")
    assert hosts_requested == []


def test_a_download_is_announced_in_one_line_on_stderr_also_where_no_log_is_set_up(
    server: Server, tmp_path: Path
) -> None:
    server.files["/sets/KKI.zip"] = packed()
    script = "import egocnn; egocnn.read('KKI')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    place = tmp_path / "cache" / "tu" / "KKI.zip"
    assert done.stderr == f"downloading KKI from {os.environ['EGOCNN_TU_URL']}KKI.zip to {place}\n"
    assert done.stdout == ""


def test_a_published_name_is_asked_for(hosts_requested: list[object]) -> None:
    """Else the tests above would pass with any reader that never asks."""
    with pytest.raises(DataError, match="no network in this test"):
        read("KKI")
    assert hosts_requested == ["www.chrsmrrs.com"]


def test_a_name_that_is_nearly_right_is_put_right(hosts_requested: list[object]) -> None:
    for name, wanted in (("mutag", "MUTAG"), ("PTC-MR", "PTC_MR"), ("IMDB_BINARY", "IMDB-BINARY"), ("NCI", "NCI1")):
        assert wanted in similar_names(name)
    with pytest.raises(DataError, match="did you mean MUTAG"):
        read("Mutag")
    assert similar_names("CCO") == []
    assert hosts_requested == []


def test_all_sets_of_the_paper_are_published_and_no_name_is_a_molecule() -> None:
    pytest.importorskip("rdkit")
    assert set(CONTENT) < PUBLISHED
    assert len(PUBLISHED) == 128
    for name in sorted(PUBLISHED):
        with pytest.raises(DataError):
            parse_smiles(name)
