"""The lab beside the package, with its experiments, benchmarks and rivals; an installed package has none."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import egocnn
from egocnn.errors import ConfigError

ROOT = Path(egocnn.__file__).resolve().parent.parent
"""The folder that holds the package: of a checkout, where there is one."""


def find_lab(part: str = "") -> ModuleType:
    """The lab of this checkout, or a module of it (``find_lab("bench.named")``); refused where there is none. A module
    that is called lab by chance (in site-packages, or first on the path) is not taken for it."""
    home = ROOT / "lab"
    if not (home / "__main__.py").is_file() or not (ROOT / "pyproject.toml").is_file():
        raise ConfigError(
            "rivals, tables and benchmarks are in the lab, which is not installed with egocnn: "
            "clone its repository and call python -m lab there"
        )
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    lab = importlib.import_module("lab")
    if lab.__file__ is None or Path(lab.__file__).resolve().parent != home:
        raise ConfigError(f"another module called lab hides {home}: {lab.__file__ or list(lab.__path__)}")
    return importlib.import_module(f"lab.{part}") if part else lab
