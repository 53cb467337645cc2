"""``egocnn sweep DATA --over width=32,64``: options -> a sweep, and its table."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import ConfigError
from egocnn.options import from_options
from egocnn.sweep.space import changed, draw_settings, flags, parse_axis

if TYPE_CHECKING:
    from egocnn.graphs import Graphs
    from egocnn.store import Stored

EPILOG = (
    "Every combination of the values is trained on every fold and scored by the fold's validation part; a share of the "
    "training part, split off once more, chooses the epoch. The test folds are not touched, so they are as good as new "
    "for the one setting that wins: --test-chosen looks at them once. All other settings are as typed (--epochs 30, "
    "--preset accurate). Values of switches are yes and no; one value per layer is joined by x (width=128x64x32). "
    "Finished trainings are kept in OUT at once: the same command goes on after a crash, and one with further values "
    "computes only what is new. With a learning rate too large a training diverges; that setting comes last. "
    "Examples: egocnn sweep MUTAG --over width=32,64,128 --over depth=2,3 -o sweeps/mutag; "
    "egocnn sweep MUTAG --over learning_rate=3e-3,1e-3,3e-4 --over readout=max,mean+max --over dropout=0,0.1,0.5 "
    "--sample 8 --folds 5 --jobs 2 --test-chosen -o sweeps/drawn"
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.epilog = EPILOG
    command.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="FIELD=V,V…",
        help="a setting of the network or the training and the values to try; may be given several times",
    )
    command.add_argument("--sample", type=_times, metavar="N", help="try N combinations drawn by the seed [all]")
    command.add_argument(
        "-o", "--out", type=Path, required=True, metavar="OUT", help="folder for sweep.json, .csv, .md and what is kept"
    )
    command.add_argument("--overwrite", action="store_true", help="forget what an earlier sweep left in OUT")
    command.add_argument(
        "--test-chosen", action="store_true", help="in the end, the best setting's one look at the test folds"
    )
    command.add_argument(
        "--protocol", choices=("plain", "paper", "fair"), default="plain", help="the folds, as in crossval [plain]"
    )
    command.add_argument("--folds", type=_times, metavar="N", help="folds [10]")
    command.add_argument("--restarts", type=_times, metavar="N", help="trainings per fold and setting [1; paper: 5]")
    command.add_argument(
        "--splits", type=Path, metavar="FILE.json", help="fair: the splits [splits/DATA.json in EGOCNN_DATA]"
    )
    command.add_argument("--jobs", type=_times, metavar="N", help="trainings at a time, in processes of their own [1]")
    command.add_argument(
        "--stack",
        action=argparse.BooleanOptionalAction,
        help="train all folds of a setting as one model (default: where a GPU computes)",
    )
    command.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="every training as one task with one CPU on a Ray cluster; local starts Ray on this machine",
    )


def run(options: argparse.Namespace, read: Callable[[argparse.Namespace], Graphs | Stored]) -> None:
    """``read``: options -> the graphs of DATA, as all commands read them"""
    axes = [parse_axis(text) for text in options.over]
    model, train = from_options(options, ModelConfig), from_options(options, TrainConfig)
    settings = draw_settings(axes, model, train, sample=options.sample, seed=options.seed)
    if options.stack and (options.jobs or 1) > 1:
        raise ConfigError("--stack trains the folds of a setting as one model in one process; leave --jobs out")

    from egocnn.crossval import choose_protocol
    from egocnn.progress import counting_report
    from egocnn.sweep.kept import check_folder
    from egocnn.sweep.run import How, sweep

    check_folder(options.out)
    protocol = choose_protocol(
        options.protocol,
        data=options.data,
        folds=options.folds,
        restarts=options.restarts,
        splits=options.splits,
    )
    with counting_report("sweeping", len(settings) * protocol.folds, visible=not options.quiet) as report:
        silent = options.quiet or report is not None
        record = sweep(
            read(options),
            settings,
            axes,
            protocol,
            options.out,
            how=How(jobs=options.jobs, ray=options.ray, stack=options.stack),
            sampled=len(settings) if options.sample is not None else None,
            test_chosen=options.test_chosen,
            overwrite=options.overwrite,
            data=options.data,
            command=typed(options, model, train),
            report=report,
            say=None if silent else _to_stderr,
        )
    if options.json:
        print(json.dumps(record.to_plain(), allow_nan=False))
        return
    for line in record.lines():
        print(line)
    print(f"tables: {options.out / 'sweep.md'}, sweep.csv, sweep.json")


def typed(options: argparse.Namespace, model: ModelConfig, train: TrainConfig) -> str:
    """A command that does the same again: what is at its usual value is left out."""
    words = ["egocnn", "sweep", options.data]
    for over in options.over:
        words += ["--over", over]
    usual = {"sample": None, "protocol": "plain", "folds": None, "restarts": None, "splits": None}
    for name, value in usual.items():
        if (said := getattr(options, name)) != value:
            words += [f"--{name}", str(said)]
    settings = flags(changed(model, train))
    last = ["--test-chosen"] if options.test_chosen else []
    return " ".join(filter(None, [shlex.join(words), settings, *last, "-o", shlex.quote(str(options.out))]))


def _times(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number, 1 or more, got {text!r}")
    return int(text)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
