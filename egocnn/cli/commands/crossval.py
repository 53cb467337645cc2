"""``egocnn crossval``: a data set and a model by name -> its scores on graphs never seen."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from egocnn.cli.arguments import add_data_options, add_fold_options, add_training_options, positive_number
from egocnn.cli.data import read_graphs, read_or_open_graphs
from egocnn.cli.lab import find_rival
from egocnn.cli.options import Parser, from_options
from egocnn.cli.output import check_file, print_json, print_remark
from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import ConfigError, DataError

if TYPE_CHECKING:
    from egocnn.study.crossval import Builder, CrossValidation, Protocol

EPILOG = (
    "Every graph is tested once, by a model that has not seen it. In each fold a part of the training graphs "
    "(--validation) chooses the best epoch and the best restart; the test fold is looked at once. Classes have "
    "equal shares in all folds, groups (--group) are never torn apart, and a split of the data's own is set aside. "
    "The paper's protocol has 10 folds and 5 restarts; the fair one takes the splits of Errica et al. and gives "
    "the mean of 3 runs a fold. On a GPU all trainings of an Ego-CNN run together as one model. With -o, finished "
    "folds are kept in FILE.json.partial, and the same command goes on from them. "
    "Example: egocnn crossval MUTAG --protocol paper -o mutag.json"
)
FOR_ALL_MODELS = ("validation", "seed", "device")
"""Settings of the training that hold for every model."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to cross-validate, how, and what to compare it with."""

    model: ModelConfig | Builder
    train: TrainConfig
    protocol: Protocol
    against: CrossValidation | None

    @property
    def epochs(self) -> int:
        """of all trainings together, at most"""
        return self.protocol.trainings * self.train.epochs


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_option(
        "folds", "--model", default="ego-cnn", metavar="NAME", help="ego-cnn, or a rival by name [%(default)s]"
    )
    add_fold_options(parser, trainings="trainings per run, which --combine makes one")
    parser.add_option(
        "folds",
        "--combine",
        rare=True,
        choices=("best", "average"),
        default="best",
        help="of the restarts, test the best in validation, or all with their probabilities averaged [best]",
    )
    parser.add_option(
        "folds",
        "--runs",
        rare=True,
        type=positive_number,
        metavar="N",
        help="scores per fold, their mean counts [1; fair: 3]",
    )
    add_data_options(parser, everyday=("smiles", "target"))
    add_training_options(parser)
    _add_run_options(parser)
    parser.add_option("output", "-o", "--out", type=Path, metavar="FILE.json", help="also write the whole record")
    parser.add_option(
        "output", "--overwrite", rare=True, action="store_true", help="replace what is in FILE.json, finished folds too"
    )
    parser.add_option(
        "output",
        "--against",
        rare=True,
        type=Path,
        metavar="FILE.json",
        help="compare with this record of another model on the same folds",
    )


def _add_run_options(parser: Parser) -> None:
    parser.add_option(
        "run",
        "--jobs",
        type=positive_number,
        metavar="N",
        help="folds at a time, each in a process of its own [1], or in one stack [all]",
    )
    parser.add_option(
        "run",
        "--stack",
        rare=True,
        action=argparse.BooleanOptionalAction,
        help="train all folds and restarts as one model (default: where a GPU computes)",
    )
    parser.add_option(
        "run",
        "--ray",
        rare=True,
        metavar="ADDRESS",
        help="every fold as one task with one CPU on a Ray cluster, not stacked; auto, HOST:PORT, ray://HOST:PORT, or "
        "local to start Ray on this machine; --jobs then limits the folds at a time [as many as CPUs]",
    )


def crossval(options: argparse.Namespace) -> None:
    from egocnn.study.crossval import compare, cross_validate, sentence
    from egocnn.train.progress import counting_report

    if options.out is not None:
        check_file(options.out, options.data)
    request = make_request(options)
    can_stay = isinstance(request.model, ModelConfig) and not options.stack
    with counting_report("cross-validating", request.epochs, visible=not options.quiet) as report:
        silent = options.quiet or report is not None
        result = cross_validate(
            read_or_open_graphs(options) if can_stay else read_graphs(options),
            request.model,
            request.train,
            protocol=request.protocol,
            stack=options.stack,
            jobs=options.jobs,
            ray=options.ray,
            data=options.data,
            out=options.out,
            overwrite=options.overwrite,
            report=report,
            say=None if silent else print_remark,
        )
    against = request.against
    if options.json:
        compared = {"comparison": compare(result, against).to_plain()} if against else {}
        print_json({**result.to_plain(), **compared})
    else:
        print("\n".join([*result.lines(), *([sentence(result, against)] if against else [])]))


def make_request(options: argparse.Namespace) -> Request:
    """Check all that can be checked before graphs are read."""
    from egocnn.study.crossval import choose_protocol, read_record

    model = find_model(options)
    protocol = choose_protocol(
        options.protocol,
        data=options.data,
        folds=options.folds,
        restarts=options.restarts,
        runs=options.runs,
        combine=options.combine,
        splits=options.splits,
    )
    against = None if options.against is None else read_record(options.against)
    if options.against is not None and against is None:
        raise DataError(f"{options.against}: no such file")
    return Request(model, from_options(options, TrainConfig), protocol, against)


def find_model(options: argparse.Namespace) -> ModelConfig | Builder:
    """The settings of an Ego-CNN, or the rival that ``--model`` names."""
    from egocnn.study.crossval import EGO_CNN

    config = from_options(options, ModelConfig)
    if options.model == EGO_CNN:
        return config
    rival: Builder = find_rival(options.model)
    _check_untouched(options, rival.name)
    return rival


def _check_untouched(options: argparse.Namespace, rival: str) -> None:
    """Refuse settings of the Ego-CNN for a model that would not heed them."""
    if options.preset is not None:
        raise ConfigError(f"--preset names settings of the Ego-CNN; {rival} has its own")
    for config in (ModelConfig, TrainConfig):
        for name, usual in asdict(config()).items():
            if name not in FOR_ALL_MODELS and getattr(options, name) != usual:
                raise ConfigError(f"--{name.replace('_', '-')} is a setting of the Ego-CNN; {rival} has its own")
