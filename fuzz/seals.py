"""Files whose checksums are wrong -> the same files with the checksums that fit them, as somebody hostile would do."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save_file

from egocnn import model as predictors
from egocnn.data.store.manifest import CHUNK, NAME
from egocnn.files import digest_of_plain
from egocnn.model import Model
from egocnn.train import checkpoint as checkpoints
from egocnn.train.checkpoint import Checkpoint

BROKEN = (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError)


def _plain(path: Path) -> Any:
    return json.loads(path.read_bytes())


def fit_header(data: bytes) -> bytes:
    """A safetensors file whose first eight bytes give the length of its header again."""
    start = data.find(b"{", 8)
    try:
        text = data[start:].decode("latin-1")
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return data
    header = data[start : start + end]
    return len(header).to_bytes(8, "little") + header + data[start + end :].lstrip(b" ")


def seal_store(folder: Path) -> None:
    with suppress(*BROKEN):
        plain = _plain(folder / NAME)
        plain.pop("digest", None)
        for name, column in plain["columns"].items():
            with suppress(*BROKEN):
                data = (folder / f"{name}.bin").read_bytes()
                starts = range(0, len(data), CHUNK)
                column["digests"] = [hashlib.sha256(data[start : start + CHUNK]).hexdigest() for start in starts]
        (folder / NAME).write_text(json.dumps({**plain, "digest": digest_of_plain(plain)}), encoding="utf-8")


def seal_run(folder: Path) -> None:
    for name in ("model.safetensors", "checkpoint.safetensors"):
        with suppress(*BROKEN):
            path = folder / name
            path.write_bytes(fit_header(path.read_bytes()))
    with suppress(*BROKEN, SafetensorError):
        path = folder / "checkpoint.safetensors"
        tensors = load(path.read_bytes())
        tensors.pop("digest", None)
        save_file(checkpoints.sealed(tensors), path)
    with suppress(*BROKEN):
        plain = _plain(folder / "config.json")
        model = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        (folder / "config.json").write_text(json.dumps(predictors.sealed(plain, model)), encoding="utf-8")


def checkpoint(folder: Path, fingerprint: str) -> Checkpoint:
    return Checkpoint(folder / "checkpoint.safetensors", fingerprint)


def load_run(folder: Path) -> Model:
    return Model.load(folder)
