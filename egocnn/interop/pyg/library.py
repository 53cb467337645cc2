"""PyTorch Geometric, imported when it is first needed: names of its classes -> the classes, and ours that inherit."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from egocnn.errors import MissingExtraError


def class_of(module: str, name: str) -> Any:
    """``torch_geometric.MODULE.NAME``; an error names the extra to install where it is missing."""
    try:
        return getattr(import_module(f"torch_geometric.{module}"), name)
    except ImportError:
        raise MissingExtraError("torch-geometric", "pyg") from None


@cache
def inheriting(ours: type, module: str, name: str) -> Any:
    """A class of ours, named with a leading underscore -> the public one that inherits from ``MODULE.NAME`` too"""
    about = {"__module__": "egocnn.interop.pyg", "__doc__": ours.__doc__}
    return type(ours.__name__.removeprefix("_"), (ours, class_of(module, name)), about)
