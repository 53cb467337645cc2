"""The table of commands: a name -> one sentence for the help, and the module of that name that has its options."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import egocnn
from egocnn.errors import ConfigError

COMMANDS = {
    "demo": "train on generated alcohols, explain sizes never seen, write a report: no data needed",
    "info": "what is in a data set, and what is wrong with it",
    "prepare": "write graphs as a store: checked, and read in portions, however large",
    "train": "train a model and write a run folder",
    "crossval": "score a model by training and testing on every fold in turn",
    "sweep": "try settings on every fold, and choose without the test",
    "predict": "predict with a trained model",
    "explain": "find the critical structure behind every prediction and write a report",
    "patterns": "find the critical structures that recur across a data set, per class",
    "pairs": "find molecules that differ by one group, and what that did to prediction and truth",
    "export": "write a trained model as an ONNX file, and check it",
    "serve": "open a page in the browser to try a trained model",
    "scale-free": "do the degrees follow a power law, and should layers be tied?",
    "reproduce": "run a named experiment over several seeds, or draw a figure",
    "bench": "measure speed and memory beside named peers, or chart what was measured",
    "completion": "print a script that completes commands and options in your shell",
}

FOLDERS = {"info": "data", "prepare": "data", "scale-free": "data", "patterns": "across", "pairs": "across"}
"""Where the module of a command is, if not here."""
IN_THE_LAB = {"reproduce": "tables.command", "bench": "bench.command"}  # commands whose options are the lab's own
ROOT = Path(egocnn.__file__).resolve().parent.parent
"""The folder that holds the package: of a checkout, where there is one."""


def find_command(name: str) -> tuple[Any, Any]:
    """The functions ``add_arguments`` and, called like the command, the command itself; only its module is imported.
    Refused where it is a command of the lab and there is no lab."""
    word = name.replace("-", "_")
    own = ".".join(filter(None, (__name__, FOLDERS.get(name), word)))
    module = find_lab(IN_THE_LAB[name]) if name in IN_THE_LAB else import_module(own)
    return module.add_arguments, getattr(module, word)


def find_lab(part: str = "") -> ModuleType:
    """The lab of this checkout, or a module of it (``find_lab("bench.named")``); refused where there is none. A module
    that is called lab by chance (in site-packages, or first on the path) is not taken for it."""
    home = ROOT / "lab"
    if not (home / "__main__.py").is_file() or not (ROOT / "pyproject.toml").is_file():
        what = "rivals, tables and benchmarks are in the lab, which is not installed with egocnn"
        raise ConfigError(f"{what}: clone its repository and call python -m lab there")
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    lab = import_module("lab")
    if lab.__file__ is None or Path(lab.__file__).resolve().parent != home:
        raise ConfigError(f"another module called lab hides {home}: {lab.__file__ or list(lab.__path__)}")
    return import_module(f"lab.{part}") if part else lab
