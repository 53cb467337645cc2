"""Commands as processes of their own, in places where something is wrong."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commands import SHORT as QUICK
from tests.support.tiny import ALCOHOLS

SHORT = (*QUICK, "--device", "cpu")
PATIENCE = 600.0


def commands(run: Path, out: Path) -> dict[str, list[str]]:
    """Every command that writes, with a place to write to inside ``out``."""
    return {
        "train": ["train", ALCOHOLS, "-o", str(out / "run"), *SHORT],
        "crossval": ["crossval", ALCOHOLS, "--folds", "2", "-o", str(out / "crossval.json"), *SHORT],
        "prepare": ["prepare", ALCOHOLS, "-o", str(out / "store"), "--overwrite"],
        "predict": ["predict", str(run), ALCOHOLS, "-o", str(out / "predictions.csv"), "--device", "cpu"],
        "explain": ["explain", str(run), ALCOHOLS, "-o", str(out / "report"), "--quiet", "--device", "cpu"],
        "export": ["export", str(run), "-o", str(out / "model.onnx")],
    }


PROGRAM = """
import contextlib, io, json, sys, traceback
SCRIPT
from egocnn.cli import main
done = []
for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(words)
        except BaseException:
            code = 1
            traceback.print_exc()
    done.append([code, said.getvalue()])
print(json.dumps(done))
"""


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    said: str
    """on stderr"""

    def check_refused(self, *wanted: str) -> None:
        """Exit code 2, and one line on stderr that says all of this."""
        assert self.code == 2, self
        assert self.said.count("\n") == 1, self.said
        assert self.said.startswith("egocnn"), self.said
        for each in wanted:
            assert each in self.said


def egocnn(*commands: Sequence[str], before: Sequence[str] = (), script: str = "") -> list[Done]:
    """Run commands one after the other in one process: ``before`` starts it, ``script`` is executed in it first."""
    program, words = PROGRAM.replace("SCRIPT", script), json.dumps([list(map(str, each)) for each in commands])
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    start = [*before, sys.executable, "-c", program, words]
    done = subprocess.run(start, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True, env=environment)
    return [Done(*each) for each in json.loads(done.stdout)]


def obeying_permissions() -> list[str]:
    """What a command is started by so that it may not do what the permission bits forbid: root may do everything."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root disregards permissions, and there is no setpriv to make it obey them")
    start = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    if subprocess.run([*start, sys.executable, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("root disregards permissions, and may not give that up here")
    return start


def mounted(options: str, folder: Path) -> list[str]:
    """What a command is started by to have something else mounted on the folder, which no one else sees."""
    start = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    start += ["sh", "-c", f'mount {options} "$0" && exec "$@"', str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*start, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing may be mounted here")
    return start
