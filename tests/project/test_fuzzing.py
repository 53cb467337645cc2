"""The harnesses against hostile input: they catch what they must, and some inputs for each find nothing."""

import json
import os
import pickle
import socket
import subprocess
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from egocnn.errors import DataError, EgoCNNError
from fuzz import __main__ as command
from fuzz import markup, parts
from fuzz.blind import CORPORA, feed, kept
from fuzz.guard import Limits, ViolationError, check_refusal, watched
from fuzz.mutations import LARGE, mutate
from fuzz.targets import TARGETS, Target, try_input
from tests.support.tiny import contents

for library in ("rdkit", "networkx"):
    pytest.importorskip(library)

LOOSE = Limits(seconds=30, base=1 << 30)
"""Tests share the machine, and the process, with others."""
INPUTS = 60


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found_among_valid_kept_and_broken_inputs(tmp_path: Path, name: str) -> None:
    target = replace(TARGETS[name], limits=replace(LOOSE, multiple=TARGETS[name].limits.multiple))
    tried, accepted = feed(target, tmp_path, most=INPUTS, seed=1)
    assert tried == INPUTS > len(target.seeds()) + len(kept(target))
    assert accepted > 0


def test_kept_inputs_belong_to_a_target_and_stay_small_and_findings_say_what_became_of_them() -> None:
    assert {folder.name for folder in CORPORA.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPORA.rglob("*") if path.is_file()) < 300_000
    found = json.loads(command.FINDINGS.read_text(encoding="utf-8"))
    assert found
    for finding in found:
        assert set(finding) == {"target", "found", "fix", "shown_by"}
        assert finding["target"] in TARGETS
        assert (Path(__file__).parents[2] / finding["shown_by"]).exists()


class _Harmful:
    def __reduce__(self) -> Any:
        return print, ("unpickled",)


HARM: dict[str, Callable[[Path], object]] = {
    "writes": lambda folder: (folder / "new").write_bytes(b""),
    "makes a folder": lambda folder: (folder / "new").mkdir(),
    "renames": lambda folder: (folder / "input").rename(folder / "other"),
    "removes": lambda folder: (folder / "input").unlink(),
    "reads elsewhere": lambda folder: (folder.parent / "secret").read_bytes(),
    "follows a link": lambda folder: (folder / "link").read_bytes(),
    "runs a program": lambda _: subprocess.run(["true"], check=False),
    "runs a shell": lambda _: os.system("true"),
    "evaluates": lambda _: eval("1 + 1"),
    "unpickles": lambda _: pickle.loads(pickle.dumps(_Harmful())),
    "connects": lambda _: socket.create_connection(("127.0.0.1", 9), 0.1),
    "takes its time": lambda _: [None for _ in iter(int, 1)],
    "fills the memory": lambda _: len(bytearray(300 << 20)),
}


@pytest.mark.parametrize("what", HARM)
@pytest.mark.parametrize("hidden", [False, True])
def test_the_guard_notices_harm_even_where_the_error_is_swallowed(tmp_path: Path, what: str, hidden: bool) -> None:
    if what == "fills the memory" and not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of memory cannot be measured anew on this system")
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "input").write_bytes(b"")
    (tmp_path / "secret").write_bytes(b"")
    (folder / "link").symlink_to(tmp_path / "secret")
    limits = Limits(seconds=0.2, base=100 << 20)
    swallowed = suppress(BaseException) if hidden else nullcontext()
    with pytest.raises(ViolationError), watched(folder, 0, limits), swallowed:
        HARM[what](folder)


def test_the_guard_lets_pass_what_readers_do(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"1")
    with watched(tmp_path, 1, LOOSE):
        assert (tmp_path / "input").read_bytes() == b"1"
        import xml.dom.minidom  # an import reads and runs code of Python's own library

        assert xml.dom.minidom.parseString(b"<a/>")
    with watched(tmp_path, 1, LOOSE, writable=True):
        (tmp_path / "new").write_bytes(b"2")
    (tmp_path.parent / "outside").unlink(missing_ok=True)
    with pytest.raises(ViolationError), watched(tmp_path, 1, LOOSE, writable=True):
        (tmp_path.parent / "outside").write_bytes(b"3")


@pytest.mark.parametrize("message", ["", "two\nlines", "\x1b[2J", "\u202eevil", "x" * 2000])
def test_a_refusal_must_be_one_short_printable_line(tmp_path: Path, message: str) -> None:
    check_refusal(DataError(f"{tmp_path}/file.csv: no graphs in it"), tmp_path)
    with pytest.raises(ViolationError):
        check_refusal(DataError(message), tmp_path)


@pytest.mark.parametrize("error", [ValueError("raw"), MemoryError(), RecursionError(), KeyError("x"), AssertionError()])
def test_any_other_error_than_a_refusal_is_a_finding(tmp_path: Path, error: Exception) -> None:
    def act(path: Path, _: int) -> None:
        if not path.read_bytes():
            raise error
        raise EgoCNNError("refused")

    target = Target("made up", lambda: (b"a",), TARGETS["csv"].lay, act, limits=LOOSE)
    assert try_input(target, b"a", tmp_path) == "refused"
    with pytest.raises(ViolationError, match=type(error).__name__):
        try_input(target, b"", tmp_path)


def test_mutations_follow_from_the_seed_and_stay_small_and_files_come_out_as_they_went_in(tmp_path: Path) -> None:
    data = TARGETS["csv"].seeds()[0]
    made = [mutate(data, Random(seed), (b"[Fe]",), 5000) for seed in range(300)]
    assert made == [mutate(data, Random(seed), (b"[Fe]",), 5000) for seed in range(300)]
    assert len(set(made)) > 250
    assert max(map(len, made)) <= 5000 < LARGE
    assert mutate(b"", Random(0)) is not None
    files = {"a.txt": b"1\n2", "b/c.bin": b"\x00%%%\n", "d": b""}
    assert parts.cut(parts.join(files)) == files
    evil = ("d/under-a-file", "b", "../evil", "/evil", "x/../../evil")
    parts.lay_out({**files, **dict.fromkeys(evil, b"")}, tmp_path)
    assert contents(tmp_path) == files
    assert not (tmp_path.parent / "evil").exists()


PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</title></style><svg onload=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "]]><script/>",
    "--><script/><!--",
    "&lt;script&gt;&#60;script>",
    "{{DATA}}{{SCRIPTS}}",
    "\x00\x1b[2J\u2028\u202e\ud800",
    "<a href='javascript:alert(1)'>x</a>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>&x;",
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_of_the_data_becomes_markup_in_any_output(tmp_path: Path, payload: str) -> None:
    path = tmp_path / "texts"
    path.write_bytes("|".join([payload] * len(markup.HARMLESS)).encode("utf-8", "surrogatepass"))
    for number in (16, 0):
        markup.check_outputs(path, number)


@pytest.mark.parametrize("kind", ["network svg", "molecule svg", "report html", "patterns html"])
def test_markup_that_came_from_the_data_would_be_noticed(kind: str) -> None:
    (text,) = [text for each, text in markup.outputs(markup.HARMLESS, with_molecule=True) if each == kind]
    judge = markup._check_html if kind.endswith("html") else markup._check_xml
    judge(kind, text)
    evil = text.replace("caption", "<b onclick='x'>caption</b>").replace("title<", "<i>title</i><")
    assert evil != text
    with pytest.raises(ViolationError, match=r"came from the data|is not XML"):
        judge(kind, evil)
    if kind == "report html":
        with pytest.raises(ViolationError, match="other scripts"):
            judge(kind, text.replace("</body>", "<script>alert(1)</script></body>"))
        with pytest.raises(ViolationError, match="addresses"):
            judge(kind, text.replace('href="#gallery"', 'href="//evil"'))


def test_without_atheris_a_finding_is_kept_told_and_can_be_fed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act(path: Path, _: int) -> None:
        if b"C" in path.read_bytes():
            raise ValueError("a defect")

    target = replace(TARGETS["csv"], act=act, seeds=lambda: (b"A",), limits=LOOSE)
    monkeypatch.setitem(TARGETS, "csv", target)
    monkeypatch.setattr(command, "_version", lambda _: None)
    out, found = tmp_path / "record.json", tmp_path / "found"
    assert command.main(["csv", "--each", "5", "-o", str(out), "--findings", str(found)]) == 1
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["open_findings"] == 1
    assert "ValueError: a defect" in record["targets"][0]["open"][0]["what"]
    with pytest.raises(ViolationError, match="a defect"):
        command.main(["--again", str(found / "csv-1")])
    assert command.main(["absent"]) == 2
    assert "no target is called absent" in capsys.readouterr().err
    # what libFuzzer tells last counts
    log = b"#2\tINITED cov: 3 ft: 4 corp: 1/2b exec/s: 0 rss: 90Mb\n#4096\tpulse  cov: 30 ft: 40 corp: 9/2b exec/s: 400"
    log += b" rss: 304Mb\nDone 4189 runs in 11 second(s)\n"
    figures = [command._last(log, each) for each in (command.PROGRESS, command.END, command.MEMORY)]
    assert figures == [(b"4096", b"30", b"40"), (b"11",), (b"304",)]
    assert command._last(b"Traceback", command.END) is None
