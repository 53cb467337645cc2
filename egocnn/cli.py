"""The command line: words typed -> calls of the library, results -> text or JSON. It only translates.

torch and the rest are imported inside the commands, so that ``egocnn --help`` answers at once.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn import __version__
from egocnn.config import ModelConfig, ReadConfig, TrainConfig
from egocnn.errors import DataError, EgoCNNError, MissingColumnError
from egocnn.options import Parser, add_options, from_options

if TYPE_CHECKING:
    from egocnn.graphs import Graphs
    from egocnn.predictor import Predictor

DATA_HELP = (
    "a TU set by name (MUTAG), a TU folder or zip, a CSV with SMILES, JSON lines, GraphML or GEXF, "
    "or generated compounds (compounds:alcohols, compounds:isomers, compounds:methylalkanes)"
)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 2 refused with one line on stderr, 130 stopped by Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may be in any script, terminals may not
    options = _parser().parse_args(words)
    _talk(options)
    try:
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


# ── commands ──────────────────────────────────────────────────────────────────────────────────────


def info(options: argparse.Namespace) -> None:
    from egocnn.describe import describe

    facts = describe(_read(options))
    problems = facts["problems"]
    if options.json:
        _print_json(facts)
        return
    for name, value in facts.items():
        if name != "problems" and value not in ({}, None):
            shown = ", ".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else value
            print(f"{name.replace('_', ' '):16}{f'{shown:.2f}' if isinstance(shown, float) else shown}")
    for problem in problems:
        print(f"note            {problem}")


def train(options: argparse.Namespace) -> None:
    _train(options, _read(options), options.data)


def _train(options: argparse.Namespace, graphs: Graphs, source: str) -> dict[str, Any]:
    from egocnn.progress import tensorboard_report, training_report
    from egocnn.runs import train_run

    config = from_options(options, TrainConfig)
    log = options.out / "tensorboard" if options.tensorboard else None
    with training_report(config, visible=not options.quiet) as shown, tensorboard_report(log, shown) as report:
        metrics = train_run(
            graphs,
            options.out,
            from_options(options, ModelConfig),
            config,
            test=options.test,
            about={"data": source, "read": asdict(from_options(options, ReadConfig))},
            resume=options.resume,
            overwrite=options.overwrite,
            report=report,
        )
    if options.json:
        _print_json(metrics)
    else:
        _print_scores(metrics, options.out)
    if metrics["interrupted"]:
        raise KeyboardInterrupt(f"stopped; the best model so far is in {options.out}, and --resume goes on from there")
    return metrics


def predict(options: argparse.Namespace) -> None:
    from egocnn.predictions import predictions, write_csv
    from egocnn.predictor import Predictor
    from egocnn.runs import test_scores

    _check_file(options.out, options.data)
    predictor = Predictor.load(options.run_folder)
    graphs = _read(options, predictor)
    rows = list(predictions(predictor, graphs, device=options.device))
    write_csv(rows, options.out)
    result: dict[str, Any] = {"graphs": len(rows), "file": str(options.out)}
    if graphs.target is not None and graphs.is_classification == bool(predictor.class_names):
        result |= test_scores(predictor, graphs, device=options.device)
    if options.json:
        _print_json(result)
    else:
        scores = ", ".join(f"{k.replace('_', ' ')} {v:.4f}" for k, v in result.items() if isinstance(v, float))
        print(f"{len(rows)} predictions in {options.out}" + (f" ({scores})" if scores else ""))


def demo(options: argparse.Namespace) -> None:
    from egocnn.predictions import predictions, write_csv
    from egocnn.predictor import Predictor
    from egocnn.reading import read

    source = "compounds:alcohols"
    graphs = read(source)
    if not options.json:
        held_out = len(graphs.select("test"))
        print(
            f"{len(graphs)} generated alkanes and alcohols; the {held_out} for the test are of sizes never trained on"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    run = options.out / "run"
    quick = argparse.Namespace(
        **vars(options) | {"out": run, "test": 0.2, "resume": False, "overwrite": True, "tensorboard": False}
    )
    _train(quick, graphs, source)
    rows = list(predictions(Predictor.load(run), graphs.select("test"), device=options.device))
    write_csv(rows, options.out / "predictions.csv")
    if not options.json:
        print(f"predictions for the test molecules: {options.out / 'predictions.csv'}")
        print(f"the model again on any data:        egocnn predict {run} DATA -o predictions.csv")


def reproduce(options: argparse.Namespace) -> None:
    from egocnn.reproduce import EXPERIMENTS, markdown, reproduce

    if options.list or options.name is None:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:16}{experiment.title} ({experiment.seeds} seeds)")
        return
    tell = (lambda text: print(text, file=sys.stderr, flush=True)) if not options.quiet else (lambda _: None)
    table = reproduce(options.name, folder=options.out, seeds=options.seeds, jobs=options.jobs, say=tell)
    if options.json:
        _print_json(table)
    else:
        print(markdown(table))


# ── the parser ────────────────────────────────────────────────────────────────────────────────────


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="egocnn", description="Train Ego-CNNs on graphs and see which part of a graph decided.")
    parser.add_argument("--version", action="version", version=f"egocnn {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = _command(
        commands, "demo", demo, "train on generated alcohols and score on sizes never seen: no data needed"
    )
    command.add_argument(
        "-o", "--out", type=Path, default=Path("runs/demo"), help="folder for the results [%(default)s]"
    )
    _set_defaults(command, ModelConfig, TrainConfig)

    command = _command(commands, "info", info, "what is in a data set, and what is wrong with it")
    _data_options(command)

    command = _command(commands, "train", train, "train a model and write a run folder")
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
    existing.add_argument("--overwrite", action="store_true", help="replace the run that is there")
    command.add_argument("--tensorboard", action="store_true", help="also log to RUN/tensorboard")
    add_options(command, ModelConfig)
    add_options(command, TrainConfig, skip=("seed", "device"))

    command = _command(commands, "predict", predict, "predict with a trained model")
    command.epilog = "Where nothing else is said here, columns and hydrogens are read as they were for the training."
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

    command = _command(commands, "reproduce", reproduce, "run a named experiment over several seeds")
    command.add_argument("name", nargs="?", metavar="NAME", help="which one; --list shows them")
    command.add_argument("--list", action="store_true", help="name the experiments")
    command.add_argument("-o", "--out", type=Path, default=Path("results"), help="folder for the tables [%(default)s]")
    command.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N-1 [the experiment's own number]")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time [1]")
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + "."
    )
    command.set_defaults(run=run)
    command.add_argument("--seed", type=int, default=0, metavar="N", help="every random choice follows from it [0]")
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute [auto]")
    command.add_argument("--json", action="store_true", help="print one JSON object for machines")
    command.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    command.add_argument("--debug", action="store_true", help="show the whole traceback of an error")
    return command


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


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of graphs must be 1 or more, got {text!r}")
    return int(text)


# ── in and out ────────────────────────────────────────────────────────────────────────────────────


def _read(options: argparse.Namespace, predictor: Predictor | None = None) -> Graphs:
    """The graphs of DATA, or the part of them that is asked for."""
    from egocnn.reading import read

    column, _, part = (options.split or "").partition("=")
    settings = {**vars(options), "split": column or None}
    said = {f.name: value for f in fields(ReadConfig) if (value := settings[f.name]) is not None}
    graphs = read(options.data, **said) if predictor is None else _read_as_trained(options.data, said, predictor)
    if part:
        graphs = graphs.select(part)
    if len(graphs) == 0:
        raise DataError(f"{options.data}: no graph is in the part {part!r}")
    return graphs if options.limit is None else graphs[: options.limit]


def _read_as_trained(source: str, said: dict[str, Any], predictor: Predictor) -> Graphs:
    """A model's own way of reading holds for what the user does not say."""
    from egocnn.reading import read

    trained = predictor.about.get("read", {})
    usual = {name: trained.get(name) for name in ("smiles", "target", "name", "hydrogens") if trained.get(name)}
    usual["task"] = "classification" if predictor.class_names else "regression"
    # new data need not have the target, nor name its graphs as the training data did
    for absent in ((), ("name",), ("target",), ("name", "target")):
        settings = {name: value for name, value in usual.items() if name not in absent} | said
        try:
            graphs = read(source, **settings)
        except MissingColumnError as error:
            missing = error
            continue
        is_other = "target" in absent and "target" in usual and "target" not in said
        return graphs.replace(target=None, class_names=()) if is_other else graphs
    raise missing


def _check_file(path: Path, data: str) -> None:
    """Refuse, before anything is computed, a path that no file can be written to, or that is the data itself."""
    if path.exists() and Path(data).exists() and path.samefile(data):
        raise DataError(f"{path}: is the data to be read; name another file to write")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name the file to write")
    for place in path.parents:
        if place.is_file():
            raise DataError(f"{place}: is a file, not a folder")


def _print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


def _print_scores(metrics: dict[str, Any], folder: Path) -> None:
    for name in ("validation_accuracy", "validation_r2", "test_accuracy", "test_r2", "test_mean_absolute_error"):
        if metrics.get(name) is not None:
            graphs = f" ({metrics['test_graphs']} graphs)" if name.startswith("test") else ""
            print(f"{name.replace('_', ' '):20} {metrics[name]:.4f}{graphs}")
    print(f"{metrics['parameters']:,} parameters, best of {metrics['epochs']} epochs: {metrics['best_epoch']}")
    print(f"run folder: {folder}")


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
