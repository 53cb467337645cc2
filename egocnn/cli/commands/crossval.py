"""``egocnn crossval``: a data set and a model by name -> its scores on graphs never seen."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from egocnn.cli.arguments import COUNT, add_out, add_study_options, chosen_protocol, path_of
from egocnn.cli.commands import find_lab
from egocnn.cli.data import open_graphs
from egocnn.cli.options import Options, Parser, from_options
from egocnn.cli.output import check_file, print_result, progress_and_log
from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import ConfigError, rule

if TYPE_CHECKING:
    from egocnn.study.crossval import OtherModel
FOR_ALL_MODELS = ("validation", "seed", "device")  # Settings of the training that hold for every model.


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        "Every graph is tested once, by a model that has not seen it. In each fold a part of the training graphs "
        "(--validation) chooses the best epoch and the best restart; the test fold is looked at once. Classes have "
        "equal shares in all folds, groups (--group, or scaffolds with --split scaffold) are never torn apart, and a "
        "split of the data's own is set aside. The paper's protocol has 10 folds and 5 restarts; the fair one takes "
        "the splits of Errica et al. and gives the mean of 3 runs a fold. On a GPU all trainings of an Ego-CNN run "
        "together as one model. With -o, finished folds are kept in FILE.json.partial, and the same command goes on "
        "from them. Example: egocnn crossval MUTAG --protocol paper -o mutag.json"
    )
    named = "ego-cnn, or a rival by name [%(default)s]"
    parser.add_option("folds", "--model", default="ego-cnn", metavar="NAME", help=named)
    combine = "of the restarts, test the best in validation, or all with their probabilities averaged [best]"
    parser.add_option("folds", "--combine", rare=True, choices=("best", "average"), default="best", help=combine)
    parser.add_option("folds", "--runs", rare=True, **COUNT, help="scores per fold, their mean counts [1; fair: 3]")
    add_study_options(
        parser,
        trainings="trainings per run, which --combine makes one",
        jobs="folds at a time, each in a process of its own [1], or in one stack [all]",
        stack="train all folds and restarts as one model (default: where a GPU computes)",
        ray="every fold as one task with one CPU on a Ray cluster, not stacked; auto, HOST:PORT, ray://HOST:PORT, or "
        "local to start Ray on this machine; --jobs then limits the folds at a time [as many as CPUs]",
        rare_jobs=False,
    )
    add_out(parser, "FILE.json", "also write the whole record", required=False)
    parser.add_switch("output", "--overwrite", "replace what is in FILE.json, once there is a new record", rare=True)
    against = "compare with this record of another model on the same folds"
    parser.add_option("output", "--against", rare=True, type=path_of, metavar="FILE.json", help=against)


def crossval(options: Options) -> None:
    """Cross-validate, print the table and save the record; all that can be checked is checked before graphs are read"""
    from egocnn.study.crossval import compare, cross_validate, read_record, sentence

    if options.out is not None:
        check_file(options.out, options.data)
    model, train = find_model(options), from_options(options, TrainConfig)
    protocol = chosen_protocol(options)
    against = None if options.against is None else read_record(options.against)
    rule(options.against is None or against is not None, f"{options.against}: no such file")
    with progress_and_log(
        options, "cross-validating", protocol.folds * protocol.runs * protocol.restarts * train.networks * train.epochs
    ) as callbacks:
        graphs = open_graphs(options)
        graphs = graphs if isinstance(model, ModelConfig) and not options.stack else graphs.whole()
        typed = {name: getattr(options, name) for name in ("stack", "jobs", "ray", "data", "out", "overwrite")}
        result = cross_validate(graphs, model, train, protocol=protocol, against=against, **typed, **callbacks)
    plain, lines = asdict(result), list(result.lines())
    if against is not None:
        plain["comparison"] = compare(result, against).to_plain()
        lines.append(sentence(result, against))
    print_result(options, plain, lines)


def find_model(options: Options) -> "ModelConfig | OtherModel":
    """The settings of an Ego-CNN, or the rival that ``--model`` names."""
    from egocnn.study.crossval import EGO_CNN

    config = from_options(options, ModelConfig)
    if options.model == EGO_CNN:
        return config
    rival: OtherModel = find_lab("rivals.names").find_rival(options.model)
    rule(options.preset is None, f"--preset names settings of the Ego-CNN; {rival.name} has its own", ConfigError)
    for name, usual in (asdict(ModelConfig()) | asdict(TrainConfig())).items():
        if name not in FOR_ALL_MODELS and getattr(options, name) != usual:
            raise ConfigError(f"--{name.replace('_', '-')} is a setting of the Ego-CNN; {rival.name} has its own")
    return rival
