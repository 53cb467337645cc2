"""Stores changed behind their backs: a manifest rewritten with a valid checksum, a bit flipped in a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from egocnn.data.store.manifest import NAME
from egocnn.files import digest_of_plain

Change = Callable[[dict[str, Any]], None]


def rewrite(store: Path, change: Change) -> None:
    """Change the manifest and give it the checksum of its new content, as somebody hostile would."""
    plain = json.loads((store / NAME).read_text(encoding="utf-8"))
    del plain["digest"]
    change(plain)
    (store / NAME).write_text(json.dumps({**plain, "digest": digest_of_plain(plain)}), encoding="utf-8")


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
