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
from typing import Any

import pytest

from fuzz import __main__ as command
from fuzz import markup
from fuzz.blind import CORPORA, feed, kept
from fuzz.guard import Limits, ViolationError, watched
from fuzz.targets import TARGETS

for library in ("rdkit", "networkx", "fastapi", "h11"):
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
    "{{DATA}} {{SCRIPTS}}",
    "\x00\x1b[2J\u2028\u202e\ud800",
    "<a href='javascript:alert(1)'>x</a>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>&x;",
    "<sub>$x_1^{$ 日本 العربية 🧪\na\x07\x7f\uffff",
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_of_the_data_becomes_markup_in_any_output(tmp_path: Path, payload: str) -> None:
    path = tmp_path / "texts"
    path.write_bytes("|".join([payload] * len(markup.HARMLESS)).encode("utf-8", "surrogatepass"))
    for number in (16, 0):
        markup.check_outputs(path, number)
