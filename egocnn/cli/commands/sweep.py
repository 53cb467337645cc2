"""``egocnn sweep``: a data set and values to try -> the settings in order of merit, and their table."""

import shlex
from dataclasses import asdict
from typing import Any

from egocnn.cli.arguments import COUNT, add_out, add_study_options, chosen_protocol
from egocnn.cli.data import open_graphs, read_with
from egocnn.cli.options import Options, Parser, from_options
from egocnn.cli.output import print_result, progress_and_log
from egocnn.config import ModelConfig, ReadConfig, TrainConfig
from egocnn.errors import ConfigError


def add_arguments(parser: Parser) -> None:
    parser.epilog = (
        "Every combination of the values is trained on every fold and scored by the fold's validation part; a share "
        "of the training part, split off once more, chooses the epoch. The test folds are not touched, so they are "
        "as good as new for the one setting that wins: --test-chosen looks at them once. All other settings are as "
        "typed (--epochs 30, --preset paper). Values of switches are yes and no; one value per layer is joined by "
        "x (width=128x64x32). Finished trainings are kept in OUT at once: the same command goes on after a crash, "
        "and one with further values computes only what is new. With a learning rate too large a training diverges; "
        "that setting comes last. Examples: egocnn sweep MUTAG --over width=32,64,128 --over depth=2,3 -o "
        "sweeps/mutag; egocnn sweep MUTAG --over learning_rate=3e-3,1e-3,3e-4 --over readout=max,mean+max --over "
        "dropout=0,0.1,0.5 --sample 8 --folds 5 --jobs 2 --test-chosen -o sweeps/drawn"
    )
    over = "a setting of the network or the training and the values to try; may be given several times"
    parser.add_option("sweep", "--over", action="append", default=[], metavar="FIELD=V,V…", help=over)
    parser.add_option("sweep", "--sample", rare=True, **COUNT, help="try N combinations drawn by the seed [all]")
    parser.add_switch("sweep", "--test-chosen", "in the end, the best setting's one look at the test folds")
    add_study_options(
        parser,
        trainings="trainings per fold and setting",
        jobs="trainings at a time, in processes of their own [1]",
        stack="train all folds of a setting as one model (default: where a GPU computes)",
        ray="every training as one task with one CPU on a Ray cluster; local starts Ray on this machine",
        rare_jobs=True,
    )
    add_out(parser, "OUT", "folder for sweep.json, sweep.csv and what is kept")
    parser.add_switch("output", "--overwrite", "forget what an earlier sweep left in OUT", rare=True)


def sweep(options: Options) -> None:
    """Try the settings, print their table and save it in the folder."""
    from egocnn.study.sweep.grid import draw_settings, parse_axis

    axes = [parse_axis(text) for text in options.over]
    model, train = from_options(options, ModelConfig), from_options(options, TrainConfig)
    points = draw_settings(axes, model, train, sample=options.sample, seed=options.seed)
    if options.stack and (options.jobs or 1) > 1:
        raise ConfigError("--stack trains the folds of a setting as one model in one process; leave --jobs out")

    from egocnn.study.crossval.training import Execution
    from egocnn.study.sweep.search import check_folder, sweep

    check_folder(options.out)
    protocol = chosen_protocol(options)
    with progress_and_log(options, "sweeping", len(points) * protocol.folds) as callbacks:
        graphs = open_graphs(options)
        reading = ReadConfig(**read_with(options, graphs))
        record = sweep(
            graphs.whole() if options.stack else graphs, *(points, axes, protocol, options.out),
            execution=Execution(jobs=options.jobs, ray=options.ray, stack=options.stack, **callbacks),
            sampled=len(points) if options.sample is not None else None, test_chosen=options.test_chosen,
            overwrite=options.overwrite, data=options.data, reading=reading,
            command=same_command(options, reading, model, train),
        )  # fmt: skip
    tables = f"tables: {options.out / 'sweep.csv'}, sweep.json"
    print_result(options, asdict(record), [*record.lines(), tables])


def same_command(options: Options, reading: ReadConfig, *settings: Any) -> str:
    """A command that does the same again: what is at its usual value is left out."""
    from egocnn.study.sweep.grid import changed, flags

    words = ["egocnn", "sweep", options.data, *(word for over in options.over for word in ("--over", over))]
    for name in ("limit", "sample", "protocol", "folds", "restarts", "splits", "metric", "split"):
        # what is drawn of a store is not among the settings that it was read with
        if (typed := getattr(options, name)) not in (None, "plain") and (name != "split" or typed != reading.split):
            words += [f"--{name}", str(typed)]
    last = [*(["--test-chosen"] if options.test_chosen else []), "-o", str(options.out)]
    return " ".join(filter(None, [shlex.join(words), flags(changed(reading, *settings)), shlex.join(last)]))
