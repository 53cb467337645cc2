"""Settings <-> command-line options: the fields of a record become flags, and flags become the record again.

argparse and not a larger library: the training path must run from a bare checkout where only torch, numpy,
scikit-learn and safetensors are installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, fields
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args, get_type_hints

from egocnn.config import field_help

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")


class Parser(argparse.ArgumentParser):
    """An argparse parser that refuses with one line and exit code 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)  # --val for --validation would break with the next option

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see {self.prog} --help\n")


def add_options(parser: argparse.ArgumentParser, config: type[Any], *, skip: Sequence[str] = ()) -> None:
    """One flag for every field, with its line of meaning and its default as help."""
    group = parser.add_argument_group(f"{(config.__doc__ or '').strip().rstrip('.').lower()}")
    meaning = field_help(config)
    types = get_type_hints(config)
    for field in fields(config):
        if field.name in skip:
            continue
        flag = "--" + field.name.replace("_", "-")
        text = meaning[field.name].replace("%", "%%")
        default = None if field.default is MISSING else field.default
        if types[field.name] is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
            continue
        if words := _words_of_switch(types[field.name]):
            group.add_argument(
                flag,
                nargs="?",
                const=True,
                type=_switch,
                choices=(True, *words),
                default=default,
                metavar="|".join(words),
                help=text,
            )
            group.add_argument(
                f"--no{flag[1:]}", dest=field.name, action="store_false", default=default, help=f"Not {flag}."
            )
            continue
        shown = f"{text} [{default}]" if default is not None and "default:" not in text else text
        group.add_argument(flag, help=shown, default=default, **_kind(types[field.name]))


def from_options(options: argparse.Namespace, config: type[Config]) -> Config:
    """The record that the flags describe; its own checks apply. What is None has not been said."""
    named = {f.name: getattr(options, f.name, None) for f in fields(config)}
    return config(**{name: value for name, value in named.items() if value is not None})


def spell_out(words: Sequence[str], config: type[Any]) -> list[str]:
    """Command-line words in which a switch that may take a word does not swallow the next one that is none of its own.

    ``--tie MUTAG`` is a switch and a data set; argparse alone would take the set for what to tie.
    """
    types = get_type_hints(config)
    own = {"--" + f.name.replace("_", "-"): _words_of_switch(types[f.name]) for f in fields(config)}
    spelt = []
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        is_bare = own.get(word) and after not in own[word]
        spelt.append(f"{word}=yes" if is_bare else word)
    return spelt


def _words_of_switch(annotation: Any) -> tuple[str, ...]:
    """('auto',) for bool | Literal['auto']: a switch that can also be left to the data"""
    kinds = get_args(annotation)
    return tuple(word for kind in kinds if kind is not bool for word in get_args(kind)) if bool in kinds else ()


def _switch(text: str) -> bool | str:
    return True if text == "yes" else text


def _kind(annotation: Any) -> dict[str, Any]:
    """The argparse words for a field's type."""
    if annotation in (int, float):
        return {"type": annotation, "metavar": "N" if annotation is int else "X"}
    choices = get_args(annotation)
    if choices and all(isinstance(choice, str) for choice in choices):
        return {"choices": choices}
    if int in choices:
        return {"type": _whole_numbers, "metavar": "N[,N…]"}
    return {"metavar": "COLUMN"}


def _whole_numbers(text: str) -> int | tuple[int, ...]:
    """'16' -> 16, '16,8,4' -> (16, 8, 4)"""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a whole number nor a comma-separated list of them"
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers
