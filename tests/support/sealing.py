"""Run folders changed on purpose: the checksums are made anew, so that what comes after them is tested too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

from egocnn.files import digest_of_file
from egocnn.model import DIGESTS, MODEL, sealed


def write_config(folder: Path, plain: dict[str, Any]) -> None:
    """Write config.json with the checksums of what is there."""
    (folder / "config.json").write_text(json.dumps(sealed(plain, digest_of_file(folder / MODEL))), encoding="utf-8")


def without_checksums(folder: Path) -> None:
    """As older versions wrote it."""
    plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del plain[DIGESTS]
    (folder / "config.json").write_text(json.dumps(plain), encoding="utf-8")


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    edit(plain)
    write_config(folder, plain)


def reseal(folder: Path) -> None:
    """Let config.json hold the checksums of what is there."""
    change(folder, lambda _: None)


def change_arrays(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    arrays = load_file(folder / "model.safetensors")
    edit(arrays)
    save_file(arrays, folder / "model.safetensors")
    reseal(folder)
