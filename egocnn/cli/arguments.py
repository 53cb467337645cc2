"""The table of commands -> one parser with its subparsers; options that several commands share -> groups of these."""

import argparse
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from egocnn import __version__
from egocnn.cli.commands import COMMANDS, find_command
from egocnn.cli.options import SHOWN, Parser, add_options
from egocnn.config import PRESET_NAMES, SCORES, Device, ExplainConfig, ModelConfig, ReadConfig, TrainConfig
from egocnn.errors import ConfigError

if TYPE_CHECKING:
    from egocnn.study.crossval import Protocol

DATA_HELP = (
    "a TU set by name (MUTAG), a TU folder or zip, a CSV with SMILES, an SDF, one SMILES, JSON lines, GraphML or "
    "GEXF, a STORE, or generated compounds (compounds:alcohols)"
)
READ_AS_TRAINED = "Where nothing else is said here, columns, hydrogens and salts are read as for the training."
PRESET_HELP = (
    "settings by name, all below: default (best in our search), paper (2018); what else is typed goes before them "
    "[default]"
)


def build_parser(words: Sequence[str] | None = None, defaults: Mapping[str, Any] | None = None) -> Parser:
    """The parser for these words, in which only the command that they call has its options; for all without words.
    ``defaults``: values that take the place of the usual ones."""
    parser = Parser(prog="egocnn", description="Train Ego-CNNs on graphs and see which part of a graph decided.")
    parser.add_argument("--version", action="version", version=f"egocnn {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    called = None if words is None else next((word for word in words if not word.startswith("-")), "")
    for name, sentence in COMMANDS.items():
        command = subparsers.add_parser(name, help=sentence, description=sentence[0].upper() + sentence[1:] + ".")
        command.set_defaults(command=name)
        if called in (None, name):
            with suppress(ConfigError) if called is None else nullcontext():  # of the lab, where there is none
                find_command(name)[0](command)
            every = "every random choice follows from it [0]"
            command.add_option("run", "--seed", type=int, default=0, metavar="N", help=every)
            where = "where to compute [auto]"
            command.add_option("run", "--device", choices=get_args(Device), default="auto", help=where)
            command.add_switch("output", "--json", "print one JSON object for machines")
            command.add_switch("output", "--quiet", "print nothing but errors, and what --json prints")
            command.add_switch("output", "--debug", "show the whole traceback of an error", rare=True)
            command.set_defaults(**(defaults or {}))
            command.put_last("run", "output")
            command.usage = command.short_usage()
    return parser


def command_parsers() -> dict[str, Parser]:
    """The parser of every command by its name."""
    (subparsers,) = (each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction))
    return dict(subparsers.choices)


def add_data_options(command: Parser, *, everyday: Sequence[str] = (*SHOWN[ReadConfig][1], "limit")) -> None:
    """DATA, and how to read it; ``everyday``: what ``--help`` shows of that"""
    command.add_argument("data", metavar="DATA", help=DATA_HELP)
    add_options(command, ReadConfig, everyday=everyday)
    add_offline(command)
    command.add_option("data", "--limit", rare="limit" not in everyday, **GRAPHS, help="use the first N graphs only")


def add_offline(command: Parser) -> None:
    """``--offline``, for commands that may download a data set."""
    command.add_switch("data", "--offline", "download nothing; EGOCNN_OFFLINE=1 says so for good", rare=True)


def add_run_and_data(command: Parser) -> None:
    """RUN and DATA, which is read as the training data were where nothing else is typed."""
    command.epilog = READ_AS_TRAINED
    add_run_folder(command)
    add_data_options(command)
    command.set_defaults(**dict.fromkeys(asdict(ReadConfig())))  # None: not typed


def add_run_folder(command: Parser) -> None:
    """RUN, the folder of a trained model."""
    command.add_argument("run_folder", metavar="RUN", type=path_of, help="a run folder that train wrote")


def add_out(command: Parser, name: str, meaning: str, *, required: bool = True, default: str | None = None) -> None:
    """``-o``, the file or folder to write."""
    place = {"required": required} if default is None else {"default": Path(default)}
    command.add_option("output", "-o", "--out", type=path_of, metavar=name, help=meaning, **place)


def add_shard_options(command: Parser) -> None:
    """``--shard``, ``--jobs`` and ``--ray``, for DATA that is a folder of files or a pattern."""
    share, jobs = "of a folder of shards, the i-th of n shares (array jobs)", "processes for shards [the cores]"
    command.add_option("run", "--ray", rare=True, metavar="ADDRESS", help="a Ray cluster to take shards to, or: local")
    command.add_option("run", "--shard", rare=True, type=share_of, default=(1, 1), metavar="I/N", help=share)
    command.add_option("run", "--jobs", rare=True, **JOBS, help=jobs)


def add_chosen_rows(command: Parser) -> None:
    """Options of shards, and which rows are explained, by what is predicted of them."""
    add_shard_options(command)
    group = command.group("explanation").add_mutually_exclusive_group()
    some, best = "explain rows whose prediction is so: 'p_toxic > 0.9'", "explain the N rows predicted highest"
    command._rare.append(group.add_argument("--where", metavar="CONDITION", help=some))
    command._rare.append(group.add_argument("--highest", **COUNT, help=best))
    by = "with --highest: the column that counts [the value, or the last p_CLASS]"
    command.add_option("explanation", "--by", rare=True, metavar="COLUMN", help=by)


def add_training_options(command: Parser) -> None:
    """Where settings come from, the network and the training."""
    add_settings_files(command, "read", "model", "train")
    command.add_option("settings", "--preset", choices=PRESET_NAMES, help=PRESET_HELP)
    add_options(command, ModelConfig)
    add_options(command, TrainConfig, skip=("seed", "device"))


def add_explanation_options(
    command: Parser, which: str = "the class to explain (default: the predicted one)", *, skip: Sequence[str] = ()
) -> None:
    """Where settings come from, which class to explain and how; with some options left out no section of a file."""
    add_settings_files(command, *(("read",) if skip else ("read", "explain")))
    command.add_option("explanation", "--class", dest="explained", metavar="NAME", help=which)
    asked = "of several targets, the one to explain (default: the first)"
    command.add_option("explanation", "--explain-target", metavar="NAME", help=asked)
    add_options(command, ExplainConfig, skip=skip)


def add_settings_files(command: Parser, *sections: str) -> None:
    """``--config``, and ``--like`` for a command that trains; ``sections``: those of the file that it reads."""
    from_file = "settings from a file; what is typed goes before them"
    command.add_option("settings", "--config", type=path_of, metavar="FILE.toml", help=from_file)
    if "train" in sections:
        from_run = "settings of a run; what is typed or in --config goes before them"
        command.add_option("settings", "--like", type=path_of, metavar="RUN", help=from_run)
    command.set_defaults(sections=sections)


def add_study_options(command: Parser, *, trainings: str, jobs: str, stack: str, ray: str, rare_jobs: bool) -> None:
    """Folds, data, settings, and how many trainings run at a time; ``trainings``: what ``--restarts`` counts. ``jobs``,
    ``stack`` and ``ray``: the help of these options"""
    meaning = "what is trained, and what chooses [plain]"
    command.add_option("folds", "--protocol", choices=("plain", "paper", "fair"), default="plain", help=meaning)
    command.add_option("folds", "--folds", **COUNT, help="parts to test on in turn [10]")
    command.add_option("folds", "--restarts", rare=True, **COUNT, help=f"{trainings} [1; paper: 5]")
    given = "fair: the splits [splits/DATA.json in EGOCNN_DATA]"
    command.add_option("folds", "--splits", rare=True, type=path_of, metavar="FILE.json", help=given)
    scored = "the score to report and compare [accuracy; r2 of values]"
    command.add_option("folds", "--metric", rare=True, choices=SCORES, help=scored)
    add_data_options(command, everyday=("smiles", "target"))
    add_training_options(command)
    command.add_option("run", "--jobs", rare=rare_jobs, **JOBS, help=jobs)
    command.add_option("run", "--stack", rare=True, action=argparse.BooleanOptionalAction, help=stack)
    command.add_option("run", "--ray", rare=True, metavar="ADDRESS", help=ray)


def chosen_protocol(options: argparse.Namespace) -> "Protocol":
    """The protocol that the options of the folds describe."""
    from egocnn.study.crossval import choose_protocol

    names = ("data", "folds", "restarts", "runs", "combine", "splits")
    found = choose_protocol(options.protocol, **{name: vars(options)[name] for name in names if name in options})
    return replace(found, metric=options.metric)


def path_of(text: str) -> Path:
    """The path; an empty one, of an unset variable of the shell say, would be the folder that one stands in."""
    if not text:
        raise argparse.ArgumentTypeError("a path is needed, got ''")
    return Path(text)


def share_of(text: str) -> tuple[int, int]:
    """2/8: the second of eight shares."""
    numbers = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]):
        raise argparse.ArgumentTypeError(f"a share is I/N with I from 1 to N, got {text!r}")
    return int(numbers[1]), int(numbers[2])


def whole_number(text: str, least: int = 0, most: float = inf, rule: str = "a whole number, 0 or more") -> int:
    """A whole number in decimal digits, from ``least`` to ``most``."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{rule}, got {text!r}")
    return int(text)


COUNT: dict[str, Any] = {"type": partial(whole_number, least=1, rule="a whole number, 1 or more"), "metavar": "N"}
JOBS = COUNT | {"type": partial(whole_number, least=1, most=1000, rule="a whole number from 1 to 1000")}
GRAPHS = COUNT | {"type": partial(whole_number, least=1, rule="a number of graphs must be 1 or more")}
