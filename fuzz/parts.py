"""Several files in one: bytes <-> {name: content}, so that a fuzzer, which knows but one input, can break a folder."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

MARK = re.compile(rb"(?:\A|\n)%%% ([^\n]{0,120})\n")
PLAIN = re.compile(r"(?:[\w-][\w.-]{0,40}/)?[\w-][\w.-]{0,60}", re.ASCII)


def join(files: Mapping[str, bytes]) -> bytes:
    return b"\n".join(b"%%% " + name.encode() + b"\n" + content for name, content in files.items())


def cut(data: bytes) -> dict[str, bytes]:
    """The files of :func:`join`; what stands before the first mark belongs to none."""
    pieces = MARK.split(data)
    return {name.decode("latin-1"): content for name, content in zip(pieces[1::2], pieces[2::2], strict=True)}


def lay_out(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files; names that would lead elsewhere are left to the zips."""
    for name, content in files.items():
        if PLAIN.fullmatch(name):
            path = folder / name
            if not path.parent.exists():
                path.parent.mkdir()
            if path.parent.is_dir() and not path.is_dir():
                path.write_bytes(content)


def pack(files: Mapping[str, bytes]) -> bytes:
    """A zip with these members, whatever their names; ``NAME|12`` asks for another method, ``NAME>`` for a link."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
        warnings.simplefilter("ignore")  # of names that are there twice, which is the point
        for name, content in files.items():
            plain, _, method = name.partition("|")
            member = zipfile.ZipInfo(plain.removesuffix(">"))
            member.compress_type = {"0": 0, "12": 12, "14": 14}.get(method, zipfile.ZIP_DEFLATED)
            if plain.endswith(">"):
                member.external_attr = 0o120777 << 16
            opened.writestr(member, content)
    return stream.getvalue()
