"""The command line: words typed -> one command, and an exit code."""

from __future__ import annotations

import argparse
import io
import logging
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from egocnn import __version__, commands
from egocnn.config import ExplainConfig, ModelConfig, ReadConfig, TrainConfig
from egocnn.distributed.world import only_for_train
from egocnn.errors import EgoCNNError
from egocnn.options import Parser, add_options, spell_out
from egocnn.presets import PRESET_NAMES, PRESETS, PresetName
from egocnn.serve import command as serve
from egocnn.sweep import command as sweep

DATA_HELP = (
    "a TU set by name (MUTAG), a TU folder or zip, a CSV with SMILES, JSON lines, GraphML or GEXF, a STORE, "
    "or generated compounds (compounds:alcohols, compounds:isomers, compounds:methylalkanes)"
)

READ_AS_TRAINED = "Where nothing else is said here, columns and hydrogens are read as they were for the training."


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 2 refused with one line on stderr, 130 stopped by Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may be in any script, terminals may not
    options = _parse(spell_out(sys.argv[1:] if words is None else words, ModelConfig))
    _talk(options)
    try:
        if options.run is not commands.train:
            only_for_train(options.run.__name__.replace("_", "-"))
        options.run(options)
        print(end="", flush=True)
    except BrokenPipeError:  # the reader of our output has gone: not our error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as stop:
        print(f"egocnn: {stop.args[0] if stop.args else 'stopped'}", file=sys.stderr)
        return 130
    except Exception as error:
        reason = _one_line(error)
        if reason is None:  # a defect of ours: the traceback helps to find it
            raise
        if options.debug:
            traceback.print_exc()
        print(f"egocnn: {reason}", file=sys.stderr)
        return 2
    return 0


# ── the parser ────────────────────────────────────────────────────────────────────────────────────


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """The options; where a preset is named, its settings take the place of the usual ones, not of what is typed."""
    options = _parser().parse_args(words)
    name: PresetName | None = getattr(options, "preset", None)
    return options if name is None else _parser(PRESETS[name].options()).parse_args(words)


def _parser(usual: Mapping[str, Any] | None = None) -> argparse.ArgumentParser:
    """``usual``: what the settings of a training are where nothing is typed"""
    parser = Parser(prog="egocnn", description="Train Ego-CNNs on graphs and see which part of a graph decided.")
    parser.add_argument("--version", action="version", version=f"egocnn {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = _command(
        subparsers,
        "demo",
        commands.demo,
        "train on generated alcohols, explain sizes never seen, write a report: no data needed",
    )
    command.add_argument(
        "-o", "--out", type=Path, default=Path("runs/demo"), help="folder for the results [%(default)s]"
    )
    _set_defaults(command, ModelConfig, TrainConfig, ExplainConfig)
    command.set_defaults(explained=None)

    command = _command(subparsers, "info", commands.info, "what is in a data set, and what is wrong with it")
    _data_options(command)

    command = _command(
        subparsers, "prepare", commands.prepare, "write graphs as a store: checked, and read in portions, however large"
    )
    command.epilog = (
        "A store is a DATA like any other. JSON lines, tables of SMILES and other stores are read in portions, all "
        "else whole. The layout: docs/store.md. Example: egocnn prepare molecules.csv -o molecules.store"
    )
    _data_options(command)
    command.add_argument("-o", "--out", type=Path, required=True, metavar="STORE", help="the folder to write")
    command.add_argument("--overwrite", action="store_true", help="replace the store that is there, in one step")

    command = _command(subparsers, "train", commands.train, "train a model and write a run folder")
    _data_options(command)
    command.add_argument("-o", "--out", type=Path, required=True, metavar="RUN", help="the run folder to write")
    command.add_argument(
        "--test",
        type=_share,
        default=0.2,
        metavar="X",
        help="share held out for the test, where the data has no split of its own; 0 for none [0.2]",
    )
    existing = command.add_mutually_exclusive_group()
    existing.add_argument(
        "--resume", action="store_true", help="continue a run that was killed or stopped, from its last epoch"
    )
    existing.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the run that is there once the new one is complete; after a kill the same command goes on",
    )
    command.add_argument("--tensorboard", action="store_true", help="also log to RUN/tensorboard")
    _training_options(command, usual or {})

    command = _command(
        subparsers, "crossval", commands.crossval, "score a model by training and testing on every fold in turn"
    )
    command.epilog = (
        "Every graph is tested once, by a model that has not seen it. In each fold a part of the training graphs "
        "(--validation) chooses the best epoch and the best restart; the test fold is looked at once. Classes have "
        "equal shares in all folds, groups (--group) are never torn apart, and a split of the data's own is set aside. "
        "The paper's protocol has 10 folds and 5 restarts; the fair one takes the splits of Errica et al. and gives "
        "the mean of 3 runs a fold. On a GPU all trainings of an Ego-CNN run together as one model. With -o, finished "
        "folds are kept in FILE.json.partial, and the same command goes on from them. "
        "Example: egocnn crossval MUTAG --protocol paper -o mutag.json"
    )
    _data_options(command)
    command.add_argument("--model", default="ego-cnn", metavar="NAME", help="ego-cnn, or a rival by name [%(default)s]")
    command.add_argument(
        "--protocol",
        choices=("plain", "paper", "fair"),
        default="plain",
        help="what is trained, and what chooses [plain]",
    )
    command.add_argument("--folds", type=_times, metavar="N", help="parts to test on in turn [10]")
    command.add_argument(
        "--restarts", type=_times, metavar="N", help="trainings per run, which --combine makes one [1; paper: 5]"
    )
    command.add_argument(
        "--combine",
        choices=("best", "average"),
        default="best",
        help="of the restarts, test the best in validation, or all with their probabilities averaged [best]",
    )
    command.add_argument("--runs", type=_times, metavar="N", help="scores per fold, their mean counts [1; fair: 3]")
    command.add_argument(
        "--splits", type=Path, metavar="FILE.json", help="fair: the splits [splits/DATA.json in EGOCNN_DATA]"
    )
    command.add_argument("-o", "--out", type=Path, metavar="FILE.json", help="also write the whole record")
    command.add_argument("--overwrite", action="store_true", help="replace what is in FILE.json, finished folds too")
    command.add_argument(
        "--against", type=Path, metavar="FILE.json", help="compare with this record of another model on the same folds"
    )
    command.add_argument(
        "--jobs",
        type=_times,
        metavar="N",
        help="folds at a time, each in a process of its own [1], or in one stack [all]",
    )
    command.add_argument(
        "--stack",
        action=argparse.BooleanOptionalAction,
        help="train all folds and restarts as one model (default: where a GPU computes)",
    )
    command.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="every fold as one task with one CPU on a Ray cluster, not stacked; auto, HOST:PORT, ray://HOST:PORT, or "
        "local to start Ray on this machine; --jobs then limits the folds at a time [as many as CPUs]",
    )
    _training_options(command, usual or {})

    command = _command(subparsers, "sweep", commands.sweep, "try settings on every fold, and choose without the test")
    _data_options(command)
    sweep.add_arguments(command)
    _training_options(command, usual or {})

    command = _command(subparsers, "predict", commands.predict, "predict with a trained model")
    command.epilog = READ_AS_TRAINED
    command.add_argument("run_folder", metavar="RUN", type=Path, help="a run folder that train wrote")
    _data_options(command)
    command.set_defaults(**dict.fromkeys(asdict(ReadConfig())))  # to know what has been said
    command.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("predictions.csv"),
        metavar="FILE.csv",
        help="where to write [%(default)s]",
    )

    for name, run, text in (
        ("explain", commands.explain, "find the critical structure behind every prediction and write a report"),
        ("patterns", commands.patterns, "find the critical structures that recur across a data set, per class"),
    ):
        command = _command(subparsers, name, run, text)
        command.epilog = READ_AS_TRAINED
        command.add_argument("run_folder", metavar="RUN", type=Path, help="a run folder that train wrote")
        _data_options(command)
        command.set_defaults(**dict.fromkeys(asdict(ReadConfig())))
        command.add_argument(
            "-o", "--out", type=Path, required=True, metavar="REPORT", help="the folder for the report"
        )
        command.add_argument(
            "--class", dest="explained", metavar="NAME", help="the class to explain (default: the predicted one)"
        )
        add_options(command, ExplainConfig)
        if name == "explain":
            command.add_argument(
                "--figures", type=_number, default=24, metavar="N", help="pictures to write to figures/ [24]"
            )
            command.add_argument("--show", type=_number, default=5, metavar="N", help="structures to print [5]")
        else:
            command.add_argument(
                "--min-support", type=_count, default=5, metavar="N", help="graphs that must share a pattern [5]"
            )
            command.add_argument("--most", type=_count, default=20, metavar="N", help="patterns per class [20]")

    command = _command(subparsers, "export", commands.export, "write a trained model as an ONNX file, and check it")
    command.epilog = "What the file reads and answers: docs/interchange.md. Example: egocnn export RUN -o model.onnx"
    command.add_argument("run_folder", metavar="RUN", type=Path, help="a run folder that train wrote")
    command.add_argument("-o", "--out", type=Path, required=True, metavar="FILE.onnx", help="the file to write")

    serve.add_arguments(_command(subparsers, "serve", serve.run, "open a page in the browser to try a trained model"))

    command = _command(
        subparsers, "scale-free", commands.scale_free, "do the degrees follow a power law, and should layers be tied?"
    )
    command.epilog = (
        "The rule behind the answer: docs/scale-free.md. Example: egocnn scale-free REDDIT-BINARY -o it.svg"
    )
    _data_options(command)
    command.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="draw the degrees on log-log axes: .svg or .png"
    )
    command.add_argument(
        "--samples", type=_number, default=100, metavar="N", help="bootstrap samples for the p-value; 0 for none [100]"
    )
    command.add_argument("--powerlaw", action="store_true", help="ask the powerlaw library for a second opinion")

    command = _command(
        subparsers, "reproduce", commands.reproduce, "run a named experiment over several seeds, or draw a figure"
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="which one; --list shows them")
    command.add_argument("--list", action="store_true", help="name the experiments")
    command.add_argument("-o", "--out", type=Path, default=Path("results"), help="folder for the tables [%(default)s]")
    command.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N-1 [the experiment's own number]")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time [1]")
    command.add_argument("--tasks", metavar="NAME[,NAME…]", help="explain: only these tasks (default: all)")
    command.add_argument(
        "--quick",
        action="store_true",
        help="tables: a rough answer, from 200 graphs a set, 3 folds and few epochs; table1: small sizes",
    )
    command.add_argument(
        "--protocol",
        choices=("paper", "fair"),
        default="fair",
        help="tables: folds; fair is the paper's for sets without published splits [%(default)s]",
    )
    command.add_argument(
        "--minutes", type=float, metavar="X", help="tables: say so where a cell is not done after as many [no limit]"
    )
    command.add_argument(
        "--kept-only", action="store_true", help="tables: write what is in runs/tables, run no further cell"
    )
    command.add_argument("--data", metavar="NAME[,NAME…]", help="tables: only these data sets (default: all)")
    command.add_argument("--models", metavar="ROW[;ROW…]", help="tables: only these rows (default: all)")
    command.add_argument("--ray", metavar="ADDRESS", help="tables: the folds on a Ray cluster, as in crossval")

    command = _command(
        subparsers, "bench", commands.bench, "measure speed and memory beside named peers, or chart what was measured"
    )
    command.epilog = (
        "A full run is kept in results/bench/; a quick one is only shown, unless -o names a file. "
        "'chart' draws all that is kept and writes the tables of docs/benchmarks.md."
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="which one, or chart; --list shows them")
    command.add_argument("--list", action="store_true", help="name the benchmarks")
    command.add_argument("-o", "--out", type=Path, metavar="FILE", help="the JSON to write; chart: the SVG or PNG")
    command.add_argument("--quick", action="store_true", help="small sizes: a minute or two on two cores")
    command.add_argument(
        "--results", type=Path, default=Path("results/bench"), help="chart: folder of the records [%(default)s]"
    )
    return parser


def _command(
    subparsers: Any, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = subparsers.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + "."
    )
    command.set_defaults(run=run)
    command.add_argument("--seed", type=int, default=0, metavar="N", help="every random choice follows from it [0]")
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute [auto]")
    command.add_argument("--json", action="store_true", help="print one JSON object for machines")
    command.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    command.add_argument("--debug", action="store_true", help="show the whole traceback of an error")
    return command


def _training_options(command: argparse.ArgumentParser, usual: Mapping[str, Any]) -> None:
    command.add_argument(
        "--preset",
        choices=PRESET_NAMES,
        help="settings by name, all below: default, paper (2018), accurate (best in our search); what else is typed "
        "goes before them [default]",
    )
    add_options(command, ModelConfig)
    add_options(command, TrainConfig, skip=("seed", "device"))
    command.set_defaults(**{name: value for name, value in usual.items() if name not in ("seed", "device")})


def _data_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", metavar="DATA", help=DATA_HELP)
    add_options(command, ReadConfig)
    command.add_argument("--limit", type=_count, metavar="N", help="use the first N graphs only")


def _set_defaults(command: argparse.ArgumentParser, *configs: type[Any]) -> None:
    """Settings that a command uses but does not offer, at their defaults; ``--seed`` and ``--device`` stay."""
    for config in (*configs, ReadConfig):
        settings = asdict(config())
        command.set_defaults(**{name: value for name, value in settings.items() if name not in ("seed", "device")})


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"a share must be at least 0 and below 1, got {text!r}")
    return value


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number, 0 or more, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of graphs must be 1 or more, got {text!r}")
    return int(text)


def _times(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number, 1 or more, got {text!r}")
    return int(text)


def _talk(options: argparse.Namespace) -> None:
    """The library's remarks go to stderr, plainly."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("egocnn").setLevel(logging.WARNING if options.quiet or options.json else logging.INFO)


def _one_line(error: Exception) -> str | None:
    """What the user can do something about; None for anything else."""
    text = " ".join(str(error).split())
    signs = ("allocate memory", "out of memory", "size calculation overflowed")  # torch has no exception of its own
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(sign in text for sign in signs)):
        return "out of memory; try a smaller --width, --slots, --batch-size or --limit"
    if isinstance(error, OSError) and error.strerror:
        place = error.filename2 or error.filename
        return f"{place}: {error.strerror}" if place else error.strerror
    return text if isinstance(error, (EgoCNNError, OSError)) else None
