"""Options that several commands share -> groups of a parser: data, settings, network, training, folds, run, output."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from egocnn.cli.options import EVERYDAY, Parser, add_options
from egocnn.config import PRESET_NAMES, ExplainConfig, ModelConfig, ReadConfig, TrainConfig

DATA_HELP = (
    "a TU set by name (MUTAG), a TU folder or zip, a CSV with SMILES, JSON lines, GraphML or GEXF, a STORE, "
    "or generated compounds (compounds:alcohols, compounds:isomers, compounds:methylalkanes)"
)
READ_AS_TRAINED = "Where nothing else is said here, columns and hydrogens are read as they were for the training."


def add_common_options(command: Parser) -> None:
    """What every command has."""
    command.add_option(
        "run", "--seed", type=int, default=0, metavar="N", help="every random choice follows from it [0]"
    )
    command.add_option(
        "run", "--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute [auto]"
    )
    command.add_option("output", "--json", action="store_true", help="print one JSON object for machines")
    command.add_option("output", "--quiet", action="store_true", help="no progress, no remarks")
    command.add_option("output", "--debug", rare=True, action="store_true", help="show the whole traceback of an error")


def add_data_options(command: Parser, *, everyday: Sequence[str] = (*EVERYDAY[ReadConfig], "limit")) -> None:
    """DATA, and how to read it; ``everyday``: what ``--help`` shows of that"""
    command.add_argument("data", metavar="DATA", help=DATA_HELP)
    add_options(command, ReadConfig, everyday=everyday)
    command.add_option(
        "data",
        "--limit",
        rare="limit" not in everyday,
        type=graph_count,
        metavar="N",
        help="use the first N graphs only",
    )


def add_run_and_data(command: Parser) -> None:
    """RUN and DATA, which is read as the training data were where nothing else is typed."""
    command.epilog = READ_AS_TRAINED
    add_run_folder(command)
    add_data_options(command)
    command.set_defaults(**dict.fromkeys(asdict(ReadConfig())))  # None: not typed


def add_run_folder(command: Parser) -> None:
    command.add_argument("run_folder", metavar="RUN", type=Path, help="a run folder that train wrote")


def add_training_options(command: Parser) -> None:
    """Where settings come from, the network and the training."""
    add_settings_files(command, "read", "model", "train")
    command.add_option(
        "settings",
        "--preset",
        choices=PRESET_NAMES,
        help="settings by name, all below: default, paper (2018), accurate (best in our search); what else is typed "
        "goes before them [default]",
    )
    add_options(command, ModelConfig)
    add_options(command, TrainConfig, skip=("seed", "device"))


def add_explanation_options(command: Parser) -> None:
    """Where settings come from, which class to explain and how."""
    add_settings_files(command, "read", "explain")
    command.add_option(
        "explanation",
        "--class",
        dest="explained",
        metavar="NAME",
        help="the class to explain (default: the predicted one)",
    )
    add_options(command, ExplainConfig)


def add_settings_files(command: Parser, *sections: str) -> None:
    """``--config``, and ``--like`` for a command that trains; ``sections``: those of the file that it heeds."""
    command.add_option(
        "settings",
        "--config",
        type=Path,
        metavar="FILE.toml",
        help="settings from a file; what is typed goes before them",
    )
    if "train" in sections:
        command.add_option(
            "settings",
            "--like",
            type=Path,
            metavar="RUN",
            help="settings of a run; what is typed or in --config goes before them",
        )
    command.set_defaults(sections=sections)


def add_fold_options(command: Parser, *, trainings: str) -> None:
    """The folds of a cross-validation; ``trainings``: what ``--restarts`` counts"""
    command.add_option(
        "folds",
        "--protocol",
        choices=("plain", "paper", "fair"),
        default="plain",
        help="what is trained, and what chooses [plain]",
    )
    command.add_option("folds", "--folds", type=positive_number, metavar="N", help="parts to test on in turn [10]")
    command.add_option(
        "folds", "--restarts", rare=True, type=positive_number, metavar="N", help=f"{trainings} [1; paper: 5]"
    )
    command.add_option(
        "folds",
        "--splits",
        rare=True,
        type=Path,
        metavar="FILE.json",
        help="fair: the splits [splits/DATA.json in EGOCNN_DATA]",
    )


# ── types of values ───────────────────────────────────────────────────────────────────────────────


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"a share must be at least 0 and below 1, got {text!r}")
    return value


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number, 0 or more, got {text!r}")
    return int(text)


def positive_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number, 1 or more, got {text!r}")
    return int(text)


def graph_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of graphs must be 1 or more, got {text!r}")
    return int(text)
